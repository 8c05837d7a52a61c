"""A Slurm cluster on this machine: a controller, and a daemon for each of its nodes.

The nodes are n1, n2, .. and all of them this machine; Debian builds slurmd so that it may run
several times.  Everything lies in one folder and ends with the block.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.interpreter import LIMIT_S, ran, shell

TOOLS = ("munged", "slurmctld", "slurmd", "salloc", "srun", "sinfo")
CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[2]}] CPUs=8 \
  Gres=gpu:8
PartitionName=all Nodes=ALL Default=YES
"""


def why_no_slurm() -> str:
    """Why Slurm cannot be started here; empty if it can."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"{missing[0]} is not installed (Debian: slurmctld slurmd slurm-client munge)"
    return "" if os.geteuid() == 0 else "slurmd needs root"


@dataclass(frozen=True)
class SlurmCluster:
    """A running cluster: its folder, and how many nodes it has."""

    folder: Path
    nodes: int

    @property
    def variables(self) -> dict[str, str]:
        """What Slurm's commands need to find it."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    @classmethod
    @contextmanager
    def started(cls, folder: Path, nodes: int) -> Iterator[SlurmCluster]:
        """A cluster as long as the block lasts."""
        cluster = cls(folder, nodes)
        ports = _free_ports(nodes)
        conf = CONF.format(host=socket.gethostname(), ports=ports, folder=folder, nodes=nodes)
        (folder / "slurm.conf").write_text(conf)
        (folder / "gres.conf").write_text(f"Name=gpu File={folder}/gpu[0-7]\n")
        for number in range(8):
            (folder / f"gpu{number}").touch()
        (folder / "munge.key").write_bytes(secrets.token_bytes(128))
        (folder / "munge.key").chmod(0o400)
        with ExitStack() as stack:
            for command in cluster._commands():
                stack.enter_context(_running(command, folder))
            cluster._wait()
            yield cluster

    def _commands(self) -> Iterator[Sequence[str]]:
        munge = ("key-file", "munge.key"), ("socket", "munge.sock"), ("pid-file", "munge.pid")
        files = (*munge, ("log-file", "munge.log"), ("seed-file", "munge.seed"))
        options = [f"--{name}={self.folder / file}" for name, file in files]
        yield ("munged", "--foreground", "--force", *options)
        conf = str(self.folder / "slurm.conf")
        yield ("slurmctld", "-D", "-f", conf)
        for number in range(1, self.nodes + 1):
            yield ("slurmd", "-D", "-N", f"n{number}", "-f", conf)

    def _wait(self) -> None:
        """Until all nodes are idle."""
        end_s = time.monotonic() + LIMIT_S
        while time.monotonic() < end_s:
            done = ran("sinfo", "-h", "-t", "idle", "-o", "%D", environment=self.variables)
            if done.stdout.strip() == str(self.nodes):
                return
            time.sleep(0.2)
        logs = "\n".join(path.read_text()[-2000:] for path in self.folder.glob("*.log"))
        raise AssertionError(f"Slurm did not start: {logs}")

    def step(self, command: str, cwd: Path) -> str:
        """What a command prints that runs in an allocation of all nodes."""
        allocation = f"salloc -Q -N {self.nodes} -n {8 * self.nodes} bash -c"
        quoted = command.replace("'", "'\\''")
        return shell(f"{allocation} '{quoted}'", cwd, self.variables)


def _free_ports(nodes: int) -> tuple[int, int, int]:
    """A port for the controller, and the first and last of as many in a row for the nodes."""
    for first in range(21_000 + os.getpid() % 5_000, 31_000, nodes + 1):
        with ExitStack() as stack:
            try:
                for port in range(first, first + nodes + 1):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first, first + 1, first + nodes
    raise AssertionError("no ports are free")


@contextmanager
def _running(command: Sequence[str], folder: Path) -> Iterator[None]:
    """A daemon as long as the block lasts."""
    with (folder / f"{command[0]}.out").open("ab") as out:
        daemon = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
    try:
        yield
    finally:
        daemon.terminate()
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

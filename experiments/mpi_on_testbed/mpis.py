"""Ranks of Open MPI and of MPICH on the nodes of a test cluster: `make mpi` installs both."""

from __future__ import annotations

import os
import shlex
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from experiments.testbed.spec import INTERFACE, NetworkSpec, nodes_of
from p2smt.errors import BackendError, ExecutionError

ROOT = Path(__file__).parents[2]
AGENT = Path(__file__).with_name("agent.sh")
OPEN_MPI, MPICH = "openmpi", "mpich"
MPIS = (OPEN_MPI, MPICH)
LIMIT_S = 1800.0
TITLES = {
    "allreduce": "Allreduce",
    "allgather": "Allgather",
    "alltoall": "All-to-All Personalized Exchange",
    "reduce_scatter_block": "Reduce_scatter_block",
}
"""Collectives, and how the OSU micro-benchmarks call their tests."""


def ran(
    mpi: str, spec: NetworkSpec, per_node: int, words: Sequence[str], more: Sequence[str] = ()
) -> str:
    """What a Python program prints on so many ranks of each node; ``more`` is for mpirun.

    Raises:
        BackendError: the MPI is not there.
        ExecutionError: it failed, or took too long.
    """
    folder = ROOT / "build" / "mpi" / mpi / "bin"
    if not (folder / "mpirun").exists():
        raise BackendError(f"no {mpi} in build/mpi: make mpi installs it")
    launcher = (str(folder / "mpirun"), *_hosts(mpi, spec, per_node), *more)
    line = shlex.join((*launcher, str(folder / "python"), *words))
    agent = (str(AGENT), nodes_of(spec)[0].host, f"cd {shlex.quote(str(ROOT))} && exec {line}")
    try:
        done = subprocess.run(
            agent,
            env={**os.environ, **_environment(spec, folder)},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise ExecutionError(f"{mpi}: no end within {LIMIT_S:g} s") from None
    if done.returncode:
        raise ExecutionError(f"{mpi}: {' | '.join(done.stderr.split(chr(10))[:4])}")
    return done.stdout


def _hosts(mpi: str, spec: NetworkSpec, per_node: int) -> tuple[str, ...]:
    """Ranks node by node, over the nodes' own interface, bound to no core: all share them."""
    hosts = [node.host for node in nodes_of(spec)]
    ranks = ("-n", str(per_node * len(hosts)))
    if mpi == OPEN_MPI:
        slots = ",".join(f"{host}:{per_node}" for host in hosts)
        start = ("--host", slots, "--prtemca", "plm_ssh_agent", str(AGENT), "--bind-to", "none")
        return (*ranks, *start, "--mca", "btl_tcp_if_include", INTERFACE)
    places = ("-hosts", ",".join(hosts), "-ppn", str(per_node), "-bind-to", "none")
    return (*ranks, *places, "-launcher", "ssh", "-launcher-exec", str(AGENT))


def _environment(spec: NetworkSpec, folder: Path) -> dict[str, str]:
    return {
        "P2SMT_TESTBED": spec.name,
        "PATH": os.pathsep.join((str(folder), os.environ["PATH"])),
        "PYTHONPATH": os.pathsep.join((str(ROOT), sysconfig.get_path("purelib"))),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",  # ranks that wait leave the cores to others
        "UCX_TLS": "tcp,self",  # MPICH's; it would find the shared memory of other nodes
        "UCX_NET_DEVICES": INTERFACE,
    }

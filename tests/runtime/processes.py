"""The command line as a process whose ranks can be found, killed and counted.

A process is known by a variable in its environment, which its children inherit: so it is
found even when its parent is dead.  Linux only, like what it looks into.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.cli.tools import Outcome, command

MARK = "P2SMT_TEST"
LIMIT_S = 600.0
"""How long a test waits for anything; far more than it takes, even where cores are few."""

PAIRS = """
name: pairs
library: none
algorithms: [ring]
levels:
  - {name: node, size: 2, link: {kind: switch, bandwidth: 10 GB/s, latency: 10 us}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 100 GB/s, latency: 2 us}}
"""
PAIR = """
name: pair
library: none
algorithms: [ring]
levels:
  - {name: node, size: 2, link: {kind: switch, bandwidth: 10 GB/s, latency: 10 us}}
"""
PROGRAM = "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node"
T = TypeVar("T")


def on_pairs(folder: Path, *more: str, program: str = PROGRAM) -> tuple[str, ...]:
    """Arguments of `run` for a program on four ranks."""
    path = folder / "pairs.yaml"
    path.write_text(PAIRS)
    place = ("--axes", "dp=4", "--placement", "[[2,2]]", "--reduce", "dp=1KiB")
    return ("run", "-t", str(path), *place, "--program", program, *more)


def on_two(folder: Path, *more: str) -> tuple[str, ...]:
    """Arguments of `run` for a program on two ranks."""
    path = folder / "pair.yaml"
    path.write_text(PAIR)
    place = ("--axes", "dp=2", "--placement", "[[2]]", "--reduce", "dp=1KiB")
    return ("run", "-t", str(path), *place, "--program", "all-reduce inside root", *more)


ENDLESS = ("--repeat", "100000")
"""Options of a run that does not end by itself while a test lasts."""


def endless(folder: Path, *more: str) -> tuple[str, ...]:
    """Such a run on four ranks."""
    return on_pairs(folder, *ENDLESS, *more)


@dataclass(frozen=True)
class Running:
    """A command under way; ``mark`` is in the environment of all its processes."""

    process: subprocess.Popen[str]
    mark: str
    environment: Mapping[str, str]

    def ranks(self) -> dict[int, int]:
        """The process ids of its ranks that are alive, by rank."""
        named = {name: pid for pid, name in _marked(self.mark).items()}
        prefix = "p2smt-rank-"
        return {int(n.removeprefix(prefix)): pid for n, pid in named.items() if prefix in n}

    def nodes(self) -> list[int]:
        """The processes that start ranks."""
        ranks = set(self.ranks().values())
        return [pid for pid in self.running("p2smt.runtime.ranks.node") if pid not in ranks]

    def running(self, module: str) -> list[int]:
        """The processes that have a module in their command line."""
        return [pid for pid in _marked(self.mark) if module.encode() in _read(pid, "cmdline")]

    def wait_until_busy(self, ranks: int = 4) -> None:
        """Until every rank has met the others and made a group of its own."""

        def busy() -> bool:
            return [_groups(pid) > 1 for pid in self.ranks().values()] == [True] * ranks

        wait_for(lambda: busy() or None, lambda: f"for {ranks} ranks: {_marked(self.mark)}")

    def groups(self) -> int:
        """Process groups of Gloo that the command itself has, where it is a rank."""
        return _groups(self.process.pid)

    def outcome(self) -> Outcome:
        """What it ended with."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        return Outcome(self.process.returncode, out, err)

    def assert_nothing_left(self) -> None:
        """Wait until none of its processes exists any more."""
        wait_for(lambda: not _marked(self.mark) or None, lambda: f"left: {_marked(self.mark)}")


def wait_for(found: Callable[[], T | None], why: Callable[[], str] = lambda: "") -> T:
    """Wait until something is there; no event tells of another process's children."""
    end = time.monotonic() + LIMIT_S
    while (value := found()) is None:
        assert time.monotonic() < end, f"waited for {LIMIT_S:g} s in vain {why()}"
        time.sleep(0.02)
    return value


def _read(pid: int, name: str) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def _marked(mark: str) -> dict[int, str]:
    """Living processes with the mark, and their names."""
    every = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdecimal()]
    wanted = f"{MARK}={mark}".encode()
    return {
        pid: _read(pid, "comm").decode().strip()
        for pid in every
        if wanted in _read(pid, "environ").split(b"\0")
    }


def _groups(pid: int) -> int:
    """Process groups of Gloo that a rank has: each has two threads."""
    threads = list(Path(f"/proc/{pid}/task").glob("*/comm"))
    names = []
    for thread in threads:
        with contextlib.suppress(OSError):
            names.append(thread.read_text().strip())
    return names.count("pt_gloo_runloop") // 2


@contextlib.contextmanager
def started(
    *arguments: str, environment: Mapping[str, str] | None = None, line: list[str] | None = None
) -> Iterator[Running]:
    """Start a command in a session of its own; whatever happens, nothing of it stays."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        line or command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {}), MARK: mark},
        start_new_session=True,
    )
    running = Running(process, mark, environment or {})
    try:
        yield running
    finally:
        for pid in _marked(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with process:  # closes the pipes
            process.kill()


def run_to_end(
    *arguments: str, environment: Mapping[str, str] | None = None, line: list[str] | None = None
) -> Outcome:
    """Run a command to its end; nothing of it is left behind."""
    with started(*arguments, environment=environment, line=line) as running:
        outcome = running.outcome()
        running.assert_nothing_left()
    return outcome


def that_end_on_a_signal(folder: Path, how: str) -> dict[str, str]:
    """An environment whose processes run a line of Python on SIGUSR1, between two others."""
    lines = f"import os, signal, sys\nsignal.signal(signal.SIGUSR1, lambda *_: {how})\n"
    (folder / "sitecustomize.py").write_text(lines)
    return {"PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}


def without_torch(folder: Path) -> dict[str, str]:
    """An environment in which torch cannot be imported."""
    text = "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"
    (folder / "torch.py").write_text(text)
    return {"PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}


def torchrun(ranks: int, *arguments: str) -> list[str]:
    """The command of `run` under torchrun."""
    start = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    return [*start, "--master-port", str(free_port()), "-m", "p2smt.cli", *arguments]


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])

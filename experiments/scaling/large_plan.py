"""A large plan over two Dask workers of which one is killed; its journal is verified.

    python -m experiments.scaling.large_plan [small]

405B on 16,384 GPUs (``pods.yaml``: levels of 8, 8, 32 and 8), each request with its best program.
Once some cubes are closed a worker is killed.  Held: the search ends with a proof, two other
processes than the killed one closed cubes after it, the plan is the one that a search in one piece
writes, byte for byte, and the journal verifies.  ``small``: on 64 GPUs of the same levels.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments.scaling import store
from experiments.scaling.family import family_of, helps_python
from experiments.scaling.store import ROOT
from experiments.testbed.script import ended
from p2smt.cli.codes import NOT_SETTLED, OK
from p2smt.errors import ExecutionError, InputError
from p2smt.parallel_search.journal.journal_text import read_journal
from p2smt.parallel_search.subproblem import Closure
from p2smt.report.progress import live_line

QUESTION = (
    *("plan", "--topology", "experiments/scaling/pods.yaml", "--prices", "programs"),
    *("--seq", "8192"),
)
LARGE = (*QUESTION, "--model", "llama-3-405b", "--global-batch", "2048")
SMALL = (
    *(*QUESTION, "--model", "llama-3-8b", "--global-batch", "64"),
    *("--use", "pod=2", "--use", "rack=2", "--use", "node=2"),
)
SPREAD = ("--engine", "dask", "--processes", "2", "--budget", "30s")
KILLED_AFTER = 5
"""Cubes that workers closed before one of them is killed."""


def command(*arguments: str) -> list[str]:
    """The product in a process of its own."""
    return [sys.executable, "-m", "p2smt.cli", *arguments]


def closures(path: Path) -> list[Closure]:
    """Cubes that workers closed so far."""
    if not path.exists():
        return []
    records = (entry.record for entry in read_journal(str(path)).entries)
    return [one for one in records if isinstance(one, Closure) and one.seconds > 0]


def kill_one(process: subprocess.Popen[bytes], path: Path) -> int:
    """Kill a worker while the search runs: its id.

    Raises:
        ExecutionError: the search ended before.
    """
    while len(closures(path)) < KILLED_AFTER:
        if process.poll() is not None:
            raise ExecutionError("the search ended before a worker could be killed")
        time.sleep(0.05)
    family = family_of(process.pid)
    killed = random.Random(0).choice(sorted(one for one in family if not helps_python(one)))
    os.kill(killed, signal.SIGKILL)
    return killed


def searched(question: Sequence[str], folder: Path) -> tuple[Path, Path, int, int]:
    """The journal and the plan of a search, the worker that was killed, the exit code."""
    journal, plan = folder / "search.jsonl", folder / "spread.json"
    options = (*SPREAD, "--journal", str(journal), "-o", str(plan))
    with subprocess.Popen(
        command(*question, *options), stdout=subprocess.DEVNULL, cwd=ROOT
    ) as process:
        try:
            killed = kill_one(process, journal)
            return journal, plan, killed, process.wait()
        finally:
            process.kill()


def faults(question: Sequence[str], folder: Path) -> tuple[list[str], dict[str, object]]:
    """What is wrong, in words, and what was seen."""
    started_s = time.monotonic()
    journal, plan, killed, code = searched(question, folder)
    wall_s = time.monotonic() - started_s
    found = [] if code == 0 else [f"the search ended with exit code {code}"]
    closed = closures(journal)
    workers = {int(one.worker.rpartition(":")[2]) for one in closed}
    if len(workers - {killed}) < 2:
        found.append("nobody took the place of the worker that was killed")
    whole = folder / "whole.json"
    subprocess.run(
        command(*question, "-o", str(whole)), stdout=subprocess.DEVNULL, check=True, cwd=ROOT
    )
    if not plan.exists() or plan.read_bytes() != whole.read_bytes():
        found.append("the plan is not the one of a search in one piece")
    verified = subprocess.run(command("verify", str(journal)), stdout=subprocess.PIPE, text=True)
    sys.stdout.write(verified.stdout)
    if verified.returncode not in (OK, NOT_SETTLED):  # a sample of the verdicts is solved again
        found.append(f"verify ended with exit code {verified.returncode}")
    seen: dict[str, object] = {
        "cubes": len(closed),
        "wall_s": round(wall_s, 1),
        "workers": len(workers),
    }
    return found, seen


def main(arguments: Sequence[str]) -> None:
    """Run it; the large one is stored.

    Raises:
        InputError: an argument is not ``small``.
        ExecutionError: something does not hold.
    """
    if list(arguments) not in ([], ["small"]):
        raise InputError(f"arguments {list(arguments)}", "must be none, or small")
    with TemporaryDirectory() as folder, live_line("a plan by two workers", ends=False):
        found, seen = faults(SMALL if arguments else LARGE, Path(folder))
    sys.stdout.write(f"{seen}\n")
    if found:
        raise ExecutionError("; ".join(found))
    if not arguments:
        store.write("large_plan", seen)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

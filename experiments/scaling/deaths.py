"""Searches whose worker or coordinator is killed at a random moment: their answers stay the same.

    python -m experiments.scaling.deaths [WORKERS COORDINATORS]

200 cubes of 50 ms on two processes.  ``kill -9`` of a random worker in WORKERS (100) runs, of the
coordinator in COORDINATORS (20); a killed search is started again with its journal.  Held for
each: the answer, that each cube is on record once, and that no process is left.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments.scaling import store
from experiments.scaling.family import family_of, helps_python, left_after
from experiments.scaling.overhead import Waits, engine_of
from experiments.testbed.script import ended
from p2smt.errors import InputError
from p2smt.parallel_search.coordinate import search
from p2smt.parallel_search.journal.journal import Journal
from p2smt.parallel_search.journal.journal_text import read_journal
from p2smt.parallel_search.journal.record import header_of
from p2smt.parallel_search.subproblem import Closure
from p2smt.report.progress import counted

TOY = Waits((0.05,) * 200)
LEFT_S = 2.0
"""Seconds within which workers end after their coordinator."""
ENGINES = ("processes", "dask")


def coordinate(name: str, path: str) -> None:
    """Search the toy with a journal; for a process of its own."""
    with Journal(path, header_of(TOY, "toy"), TOY.member) as journal:
        outcome = search(TOY, engine_of(name, TOY, 2), journal=journal)
    sys.stdout.write(f"{outcome.status.value} {outcome.best[0].witness} {outcome.deaths}\n")


def started(name: str, path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "experiments.scaling.deaths", name, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_for_cubes(path: Path, cubes: int) -> None:
    """Until so many are on record."""
    while not path.exists() or path.read_bytes().count(b'"closed"') < cubes:
        time.sleep(0.01)


def fault(process: subprocess.Popen[str], path: Path, family: set[int]) -> str:
    """What is wrong at the end of a search; empty if nothing is."""
    said, _ = process.communicate()
    if said.split()[:2] != ["optimal", "000000"]:
        return f"it says {said.strip()!r}"
    records = [entry.record for entry in read_journal(str(path)).entries]
    closed = Counter(record.cube for record in records if isinstance(record, Closure))
    if set(closed) != set(TOY.roots()) or set(closed.values()) != {1}:
        return f"{len(closed)} cubes are closed, {closed.total()} times"
    return left(family)


def left(family: set[int]) -> str:
    """Which of these processes are there after a while; empty if none is."""
    alive = left_after(family, LEFT_S)
    return f"{len(alive)} processes are left after {LEFT_S:.0f} s" if alive else ""


def killed_worker(name: str, path: Path, chance: random.Random) -> str:
    """Kill one of the workers at a random moment, and let the search go on."""
    process = started(name, path)
    wait_for_cubes(path, chance.randrange(1, 150))
    time.sleep(chance.uniform(0.0, 0.1))
    family = family_of(process.pid)
    workers = sorted(pid for pid in family if not helps_python(pid))
    os.kill(chance.choice(workers), signal.SIGKILL)
    return fault(process, path, family)


def killed_coordinator(name: str, path: Path, chance: random.Random) -> str:
    """Kill the coordinator at a random moment, and start it again."""
    process = started(name, path)
    wait_for_cubes(path, chance.randrange(1, 150))
    time.sleep(chance.uniform(0.0, 0.1))
    family = family_of(process.pid)
    process.kill()
    process.communicate()
    return left(family) or fault(started(name, path), path, family)


def study(name: str, workers: int, coordinators: int) -> dict[str, object]:
    """Runs and faults on an engine."""
    faults, chance = [], random.Random(0)
    with TemporaryDirectory() as folder:
        for number in counted(range(workers + coordinators), f"deaths, {name}"):
            kill = killed_worker if number < workers else killed_coordinator
            if found := kill(name, Path(folder) / f"{number}.jsonl", chance):
                faults.append(f"{kill.__name__} {number}: {found}")
    return {"workers": workers, "coordinators": coordinators, "faults": faults}


def main(arguments: Sequence[str]) -> None:
    """Run the study and store it; or, for the study itself, be one of its coordinators.

    Raises:
        InputError: the arguments are no two numbers.
    """
    if len(arguments) == 2 and arguments[0] in ENGINES:
        return coordinate(*arguments)
    with suppress(ValueError):
        workers, coordinators = map(int, arguments or ("100", "20"))
        return store.write("deaths", {n: study(n, workers, coordinators) for n in ENGINES})
    raise InputError(f"arguments {list(arguments)}", "must be two numbers of runs")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

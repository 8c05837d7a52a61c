"""The cubes of a search, timed one by one without any incumbent, in CPU seconds.

    python -m experiments.scaling.cubes

The search is the ``plan`` of ``QUESTION``.  Each time is that of a process forked for it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from experiments.scaling import store
from experiments.scaling.simulate import MeasuredCube
from experiments.scaling.store import HERE
from experiments.testbed.script import ended
from p2smt.api.planning import launcher_lacks
from p2smt.errors import InputError
from p2smt.parallel_search.journal.journal_text import read_journal
from p2smt.parallel_search.subproblem import Closure, Member, Space, Subproblem, SubproblemTask
from p2smt.report.progress import counted, live_line
from p2smt.training.search.subproblems import plan_space

T = TypeVar("T")
CUBES = HERE / "cubes.json"
QUESTION = (
    *("plan", "--model", "llama-3-405b", "--topology", "dgx-h100:256", "--prices", "programs"),
    *("--global-batch", "2048", "--seq", "8192", "--within", "30%"),
)
SPLIT_FROM_S = 0.25
"""Children are timed of cubes that take at least so long."""


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """Signals of a search that never stops and finds nothing."""

    def stopped(self) -> bool:
        return False

    def cutoff(self) -> Member | None:
        return None


def space_of_question() -> Space:
    """The space of the question, from a journal that the command writes."""
    with TemporaryDirectory() as folder:
        journal = str(Path(folder) / "journal.jsonl")
        options = ("--engine", "in-process", "--journal", journal)
        command = [sys.executable, "-m", "p2smt.cli", *QUESTION, *options]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        header = read_journal(journal).header
    if header is None:
        raise InputError("the journal of the question", "has no header")
    return plan_space(header.description, launcher_lacks)


Bounded = tuple[int, Subproblem]


def in_order(space: Space) -> list[tuple[Bounded, list[Bounded]]]:
    """The first cubes with their bounds, as a coordinator hands them out, and their children."""
    firsts = sorted((space.bound(cube), cube) for cube in space.roots())
    return [(first, [(space.bound(p), p) for p in space.split(first[1])]) for first in firsts]


def timed(space: Space, cubes: Sequence[Subproblem]) -> list[tuple[float, int | None]]:
    """CPU seconds of each of these, closed one after another, and the value of its best member."""
    found = []
    for cube in cubes:
        started_s = time.process_time()
        ended = space.close(SubproblemTask(cube), Undisturbed())
        seconds = time.process_time() - started_s
        if not isinstance(ended, Closure):
            raise InputError(f"cube {cube}", "was given back without a budget")
        found.append((seconds, ended.best[0].value if ended.best else None))
    return found


def apart(function: Callable[..., T], *arguments: Any) -> T:
    """What a function gives in a process forked for it, whose tables are empty."""
    with get_context("fork").Pool(1) as pool:
        return pool.apply(function, arguments)


def measured(space: Space) -> list[MeasuredCube]:
    """All first cubes, and the children of those that take long."""
    frame = apart(in_order, space)
    with live_line("first cubes", ends=False):
        warm = apart(timed, space, [cube for (_, cube), _ in frame])
    found, rows = [], zip(frame, warm, strict=True)
    for ((bound, cube), parts), (seconds, value) in counted(rows, "cubes", len(warm)):
        ((first_s, _),) = apart(timed, space, [cube])
        children = _children(space, parts) if seconds >= SPLIT_FROM_S else ()
        found.append(MeasuredCube(seconds, first_s, bound, value, children))
    return found


def _children(space: Space, parts: list[Bounded]) -> tuple[MeasuredCube, ...]:
    times = apart(timed, space, [cube for _, cube in parts]) if parts else []
    return tuple(
        MeasuredCube(seconds, seconds, bound, value)
        for (bound, _), (seconds, value) in zip(parts, times, strict=True)
    )


def write(cubes: Sequence[MeasuredCube]) -> None:
    """Store them, one a line."""
    lines = ",\n".join(json.dumps(_plain(cube)) for cube in cubes)
    CUBES.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def read() -> list[MeasuredCube]:
    """The stored ones."""
    return [_cube(row) for row in json.loads(CUBES.read_text(encoding="utf-8"))]


def _plain(cube: MeasuredCube) -> list[Any]:
    times = (round(cube.seconds, 5), round(cube.first_s, 5))
    return [*times, cube.bound, cube.value, [_plain(child) for child in cube.children]]


def _cube(row: list[Any]) -> MeasuredCube:
    seconds, first_s, bound, value, children = row
    return MeasuredCube(seconds, first_s, bound, value, tuple(map(_cube, children)))


def main(arguments: Sequence[str]) -> None:
    """Time the cubes and store them.

    Raises:
        InputError: arguments are given.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    write(measured(space_of_question()))
    store.write("question", list(QUESTION))


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

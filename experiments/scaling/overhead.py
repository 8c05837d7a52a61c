"""What a cube costs beside its own time, on each engine; one worker, so that nothing is hidden.

    python -m experiments.scaling.overhead

Cubes here wait and compute nothing.  Wall seconds beside theirs are those of messages and of the
coordinator, CPU seconds of this process those of the coordinator alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from experiments.scaling import store
from experiments.testbed.script import ended
from p2smt.errors import InputError
from p2smt.parallel_search.coordinate import search
from p2smt.parallel_search.engine import Engine
from p2smt.parallel_search.engines.dask import DaskEngine
from p2smt.parallel_search.engines.processes import Processes
from p2smt.parallel_search.parallel_options import InProcess
from p2smt.parallel_search.shared_table import new_table
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    SearchKind,
    Signals,
    Space,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from p2smt.report.progress import counted

ENGINES = ("in-process", "processes", "dask")
CUBES, LENGTH_S, RUNS = 40, 0.05, 3


@dataclass(frozen=True, slots=True)
class Waits:
    """A space whose cubes take so many seconds, and have one member each, their number."""

    seconds: tuple[float, ...]
    skeleton: SearchKind = field(default=SearchKind.OPTIMISE)

    def description(self) -> Mapping[str, object]:
        return {"seconds": list(self.seconds)}

    def roots(self) -> tuple[Subproblem, ...]:
        return tuple(Subproblem((f"{number:06}",)) for number in range(len(self.seconds)))

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:  # noqa: ARG002 (of the protocol)
        return ()

    def bound(self, cube: Subproblem) -> int:  # noqa: ARG002 (of the protocol)
        return 0

    def close(self, task: SubproblemTask, signals: Signals) -> Closure:
        left_s = self.seconds[int(task.cube.path[0])]
        end_s = time.monotonic() + left_s
        while (left_s := end_s - time.monotonic()) > 0:
            if signals.stopped():
                return Closure(task.cube, SubproblemVerdict.UNKNOWN)
            time.sleep(min(left_s, 0.1))
        member = self.member(task.cube.path[0])
        return Closure(task.cube, SubproblemVerdict.SOLVED, member.value, (member,))

    def member(self, witness: str) -> Member:
        return Member(int(witness), (), witness)


def engine_of(name: str, space: Space, workers: int) -> Engine:
    """The engine of a name.

    Raises:
        InputError: there is none.
    """
    match name:
        case "in-process":
            return InProcess(space)
        case "processes":
            return Processes(space, workers)
        case "dask":
            return DaskEngine(space, workers)
        case _:
            raise InputError(f"engine {name!r}", f"must be one of {', '.join(ENGINES)}")


class Timed:
    """An engine that notes when its workers were there, and when they were let go."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.entered_s = self.left_s = self.cpu_s = 0.0
        self.submit, self.wait = engine.submit, engine.wait
        self.tell, self.stop = engine.tell, engine.stop

    @property
    def workers(self) -> int:
        return self._engine.workers

    @property
    def ahead(self) -> int:
        return self._engine.ahead

    def __enter__(self) -> Engine:
        self._engine.__enter__()
        self.entered_s, self.cpu_s = time.monotonic(), -time.process_time()
        return self

    def __exit__(self, *exc: object) -> None:
        self.left_s, self.cpu_s = time.monotonic(), self.cpu_s + time.process_time()
        self._engine.__exit__(*exc)

    @property
    def wall_s(self) -> float:
        """Between the two."""
        return self.left_s - self.entered_s


def timed_search(name: str, space: Space, workers: int) -> Timed:
    """A search to its end, without the start and the end of its workers.

    Raises:
        InputError: it was not settled.
    """
    engine = Timed(engine_of(name, space, workers))
    with new_table() as table:
        outcome = search(space, engine, table=table)
    if not outcome.status.settled:
        raise InputError("a search for its time", f"was not settled: {outcome.reason}")
    return engine


def per_cube(name: str) -> dict[str, float]:
    """Least wall and CPU seconds beside a cube's own over several runs."""
    runs = [timed_search(name, Waits((LENGTH_S,) * CUBES), 1) for _ in range(RUNS)]
    wall_s = min(run.wall_s for run in runs) / CUBES - LENGTH_S
    return {"wall_s": round(wall_s, 6), "cpu_s": round(min(r.cpu_s for r in runs) / CUBES, 6)}


def main(arguments: Sequence[str]) -> None:
    """Time all engines and store it.

    Raises:
        InputError: arguments are given.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    store.write("overhead", {name: per_cube(name) for name in counted(ENGINES, "engines")})


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

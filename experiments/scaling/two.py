"""One and two worker processes on the same cubes, and what the simulation said of it before.

    python -m experiments.scaling.two

``plans``: the whole command of ``PLAN``.  ``beside``: two copies of it that share nothing, at once,
against one alone: what two cores of this machine give at all.  ``real``: the cubes of
``cubes.json`` closed by the real engine, all of them without any incumbent.  ``waited``: cubes that
wait as long as those took, on 1 to 16 workers; waiting needs no core, so it tries the simulation
beyond the cores there are.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from experiments.scaling import cubes, store
from experiments.scaling.cubes import Undisturbed
from experiments.scaling.overhead import Waits, timed_search
from experiments.scaling.simulate import MeasuredCube, simulate
from experiments.scaling.study import delays_of
from experiments.testbed.script import ended
from p2smt.errors import InputError
from p2smt.parallel_search.best import cutoff_of
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    SearchKind,
    Signals,
    Space,
    Subproblem,
    SubproblemTask,
)
from p2smt.report.progress import counted

PLAN = (
    *("plan", "--model", "llama-3-405b", "--topology", "experiments/scaling/pods.yaml"),
    *("--prices", "programs", "--global-batch", "2048", "--seq", "8192", "--within", "60%"),
)
"""More than a minute of one core: less would time the start of the workers.  Its paths are relative
to ``store.ROOT``."""
RUNS, BESIDE_RUNS = 5, 3
WAITING = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Whole:
    """A space whose cubes are all closed to their ends: no bound, no incumbent helps.

    Members above the ceiling that it was made with stay unsought.
    """

    space: Space

    @property
    def skeleton(self) -> SearchKind:
        return self.space.skeleton

    def description(self) -> Mapping[str, object]:
        return self.space.description()

    def roots(self) -> tuple[Subproblem, ...]:
        return tuple(cube for (_, cube), _ in cubes.in_order(self.space))

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:  # noqa: ARG002 (of the protocol)
        return ()

    def bound(self, cube: Subproblem) -> int:  # noqa: ARG002 (of the protocol)
        return 0

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:  # noqa: ARG002
        mine = SubproblemTask(task.cube, seed=task.seed, table=task.table)
        return self.space.close(mine, Undisturbed())

    def member(self, witness: str) -> Member:
        return self.space.member(witness)

    def cutoff_of(self, members: Sequence[Member], top: int) -> Member | None:  # noqa: ARG002
        return cutoff_of(self.space, (), top)


def predicted(measured: Sequence[MeasuredCube], workers: int, engine: str) -> float:
    """Seconds, by simulation."""
    delays = delays_of(engine, store.read()["overhead"])
    return simulate(measured, workers, delays).makespan_s


def slowed(cube: MeasuredCube, times: float) -> MeasuredCube:
    """A cube on a slower core."""
    return MeasuredCube(cube.seconds * times, cube.first_s * times, cube.bound, cube.value)


def waited(measured: Sequence[MeasuredCube], engine: str) -> list[dict[str, Any]]:
    """Cubes that wait, on more and more workers."""
    plain = [MeasuredCube(cube.seconds, cube.seconds) for cube in measured]
    space = Waits(tuple(cube.seconds for cube in measured))
    return [
        {
            "engine": engine,
            "workers": workers,
            "predicted_s": round(predicted(plain, workers, engine), 4),
            "measured_s": round(timed_search(engine, space, workers).wall_s, 4),
        }
        for workers in counted(WAITING, f"cubes that wait, {engine}")
    ]


def real(measured: Sequence[MeasuredCube]) -> list[dict[str, Any]]:
    """The cubes themselves, on one and two processes in turn; medians.

    A machine is not as fast today as it was when the cubes were timed.  So of two processes those
    are simulated as much slower or faster as one process was.
    """
    space = Whole(cubes.apart(cubes.space_of_question))
    runs = [
        [timed_search("processes", space, w).wall_s for w in (1, 2)]
        for _ in counted(range(RUNS), "cubes")
    ]
    one_s, two_s = (median(walls) for walls in zip(*runs, strict=True))
    known_s = predicted(measured, 1, "processes")
    today = [slowed(cube, one_s / known_s) for cube in measured]
    rows = ((1, one_s, known_s), (2, two_s, predicted(today, 2, "processes")))
    return [
        {"workers": workers, "measured_s": round(wall_s, 3), "predicted_s": round(simulated_s, 3)}
        for workers, wall_s, simulated_s in rows
    ]


def plans() -> dict[str, Any]:
    """The whole command, with its start and its incumbents, on one and two processes; medians.

    In turn, since the speed of a machine drifts.
    """
    load = round(os.getloadavg()[0], 1)
    pairs = [(_plan_s(1), _plan_s(2)) for _ in counted(range(RUNS), "plans")]
    walls = dict(zip(("1", "2"), map(median, zip(*pairs, strict=True)), strict=True))
    wall_s = {workers: round(seconds, 2) for workers, seconds in walls.items()}
    machine = {"load": load, "cores": os.cpu_count()}
    return {"question": list(PLAN), **machine, "runs": RUNS, "wall_s": wall_s}


def beside() -> dict[str, Any]:
    """A search in one piece alone, and two at once, in turn; medians."""
    command = [sys.executable, "-m", "p2smt.cli", *PLAN]
    runs = [
        (_walls_s(command), _walls_s(command, command))
        for _ in counted(range(BESIDE_RUNS), "searches")
    ]
    alone, both = (median(walls) for walls in zip(*runs, strict=True))
    return {"alone_s": round(alone, 2), "both_s": round(both, 2)}


def _plan_s(workers: int) -> float:
    spread = ("--engine", "processes", "--processes", str(workers))
    return _walls_s([sys.executable, "-m", "p2smt.cli", *PLAN, *spread])


def _walls_s(*commands: Sequence[str]) -> float:
    """Seconds until all commands, started at once, have ended.

    Raises:
        InputError: one of them fails.
    """
    started_s, quiet = time.monotonic(), subprocess.DEVNULL
    running = [
        subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd=store.ROOT)
        for command in commands
    ]
    codes = [one.wait() for one in running]
    if any(codes):
        raise InputError(f"{len(commands)} searches at once", "one of them fails")
    return time.monotonic() - started_s


def main(arguments: Sequence[str]) -> None:
    """Run all of it, or one part, and store it with the load of the machine before.

    Raises:
        InputError: an argument is none of the parts.
    """
    if set(arguments) - {"real", "waited", "plans", "beside"}:
        raise InputError(f"arguments {list(arguments)}", "must be of real, waited, plans, beside")
    measured = cubes.read()
    if "waited" in (arguments or ("waited",)):
        store.write(
            "waited", [row for name in ("processes", "dask") for row in waited(measured, name)]
        )
    if "plans" in (arguments or ("plans",)):
        store.write("plans", plans())
    if "beside" in (arguments or ("beside",)):
        store.write("beside", beside())
    if "real" in (arguments or ("real",)):
        load = round(os.getloadavg()[0], 1)
        store.write("two", {"load": load, "cores": os.cpu_count(), "rows": real(measured)})


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

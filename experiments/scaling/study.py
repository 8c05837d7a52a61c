"""The simulated searches: from the cubes' times and the engines' delays, nothing is run.

    python -m experiments.scaling.study

Needs ``cubes.json`` (``cubes``) and the part ``overhead`` of the results.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from itertools import product
from statistics import mean, quantiles
from typing import Any

from experiments.scaling import cubes, store
from experiments.scaling.overhead import ENGINES
from experiments.scaling.simulate import Delays, MeasuredCube, SimulatedRun, simulate, work_of
from experiments.testbed.script import ended
from p2smt.errors import InputError
from p2smt.report.progress import counted

WORKERS = (16, 64, 256, 1024)
CLUSTERS = tuple(product(ENGINES[1:], WORKERS))
"""Engines with workers of their own, by how many."""
RESAMPLINGS = 20
DRAWN = 20_000
"""Cubes of a resampled search: enough for 1,024 workers to have twenty each."""
BUDGET_OF_MEAN = 4.0
"""The budget, in mean times of a cube."""
LONGER = (1, 10, 100)
"""How many times as long cubes take in the search that asks how long they must be."""


def delays_of(engine: str, found: dict[str, Any]) -> Delays:
    """The measured delays: what is no work of the coordinator is on the way, there and back.

    Workers that have their next cube at hand wait for neither: what they lose is their own.
    """
    one = found[engine]
    if engine == "dask":
        return Delays(0.0, one["cpu_s"], one["cpu_s"] / 10, one["wall_s"], 1)
    message_s = max(0.0, one["wall_s"] - one["cpu_s"]) / 2
    return Delays(message_s, one["cpu_s"], one["cpu_s"] / 10)


def resampled(measured: Sequence[MeasuredCube], chance: random.Random) -> list[MeasuredCube]:
    """A search of cubes drawn from the measured ones, each with its children."""
    return chance.choices(measured, k=DRAWN)


def longer(cube: MeasuredCube, times: float) -> MeasuredCube:
    """A cube that takes so many times as long; tables that are empty take as long to fill."""
    seconds = cube.seconds * times
    return MeasuredCube(seconds, seconds + max(0.0, cube.first_s - cube.seconds))


def efficiencies(
    measured: Sequence[MeasuredCube], delays: Delays, workers: int, splits: bool
) -> list[float]:
    """Of each resampled search: all its cubes are closed, none is dropped."""
    found, chance = [], random.Random(workers)
    for _ in range(RESAMPLINGS):
        drawn = resampled(measured, chance)
        budget_s = BUDGET_OF_MEAN * work_of(drawn) / len(drawn) if splits else None
        run = simulate(drawn, workers, delays, budget_s)
        found.append(run.efficiency(work_of(drawn), workers))
    return found


def interval(values: Sequence[float]) -> list[float]:
    """Mean, and the 5th and 95th percentile: 90 % of the resamplings lie between."""
    parts = quantiles(values, n=20, method="inclusive")
    return [round(v, 4) for v in (mean(values), parts[0], parts[-1])]


def rows(measured: Sequence[MeasuredCube], overhead: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each engine with workers of its own and number of workers."""
    return [
        {
            "engine": engine,
            "workers": workers,
            "whole": interval(efficiencies(measured, delays_of(engine, overhead), workers, False)),
            "split": interval(efficiencies(measured, delays_of(engine, overhead), workers, True)),
        }
        for engine, workers in counted(CLUSTERS, "clusters")
    ]


def lengths(measured: Sequence[MeasuredCube], overhead: dict[str, Any]) -> list[dict[str, Any]]:
    """The efficiency of whole cubes as they are, and where each takes longer."""
    return [
        {
            "engine": engine,
            "workers": workers,
            "efficiency": [
                interval(
                    efficiencies(
                        [longer(cube, times) for cube in measured],
                        delays_of(engine, overhead),
                        workers,
                        False,
                    )
                )
                for times in LONGER
            ],
        }
        for engine, workers in counted(CLUSTERS, "lengths of cubes")
    ]


def pruning(measured: Sequence[MeasuredCube], delays: Delays) -> list[dict[str, Any]]:
    """The measured search itself, in which incumbents drop cubes: more or less work by luck."""

    def run(workers: int) -> SimulatedRun:
        return simulate(measured, workers, delays, prunes=True)

    alone = run(1)
    found = []
    for workers in (1, 2, 4, 8, 16):
        one = run(workers)
        found.append(
            {
                "workers": workers,
                "closed": one.closed,
                "dropped": one.dropped,
                "work": round(one.busy_s / alone.busy_s, 4),
                "speedup": round(alone.makespan_s / one.makespan_s, 3),
            }
        )
    return found


def main(arguments: Sequence[str]) -> None:
    """Simulate and store.

    Raises:
        InputError: arguments are given, or the overhead was not measured.
    """
    data = store.read()
    if arguments or "overhead" not in data:
        raise InputError("the study", "takes no argument and needs the overhead", "measure it")
    measured = cubes.read()
    delays = delays_of("processes", data["overhead"])
    store.write("simulated", rows(measured, data["overhead"]))
    store.write("lengths", lengths(measured, data["overhead"]))
    store.write("pruning", pruning(measured, delays))


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

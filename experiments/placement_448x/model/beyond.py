"""Beyond the paper: longer programs, shared iterations, several axes, choosing together.

    python -m experiments.placement_448x.model.beyond

writes ``beyond.json`` from the modelled results and some searches of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from experiments.placement_448x.cases import Case
from experiments.placement_448x.model.iterations import (
    ITERATIONS,
    choices_data,
    iteration_data,
    pairs,
    singles,
)
from experiments.placement_448x.model.solving import LENGTH, LIBRARY, LIMITS, Solver, longer
from experiments.placement_448x.model.study import SMALLER
from experiments.placement_448x.model.summary import Outcome, Results, by_case, by_name, gains, load
from experiments.placement_448x.model.systems import system
from experiments.placement_448x.store import HERE, computed_header, rounded
from experiments.testbed.written.results import write
from p2smt.cost.loads.footprint import Digits
from p2smt.report.progress import counted

RESULTS = HERE / "beyond.json"


@dataclass(frozen=True, slots=True)
class Longer:
    """Programs of more than five steps on the scenes of a system that are split at every level.

    ``only`` limits the scenes, the largest groups first, where a search takes long.
    """

    system: str
    length: int
    pipelined: bool
    only: int | None = None


LONGER = (
    Longer("paper-gcp-a100-4", 8, pipelined=False),
    Longer("paper-gcp-a100-4", 8, pipelined=True),
    Longer("paper-gcp-v100-4", 8, pipelined=False),
    Longer("paper-gcp-v100-4", 8, pipelined=True),
    Longer("dgx1-v100-4", 6, pipelined=False),
    Longer("dgx1-v100-4", 6, pipelined=True),
    Longer("racks-2x4x8", 6, pipelined=False),
    Longer("racks-2x4x8", 6, pipelined=True),
    Longer("sockets-2x2x2x4", 6, pipelined=False, only=1),
    Longer("sockets-2x2x2x4", 6, pipelined=True, only=1),
)


def longer_data(one: Longer) -> dict[str, Any]:
    """How many optima are faster with more steps, and by how much."""
    topology = system(one.system).topology()
    short, long = Solver(topology), longer(Solver(topology), one.length)
    gain = [
        _best(short, digits, payload, one) / _best(long, digits, payload, one)
        for digits in _deep_scenes(by_name(one.system))[: one.only]
        for payload in SMALLER
    ]
    return {
        "system": one.system,
        "length": one.length,
        "pipelined": one.pipelined,
        "optima": len(gain),
        "faster": sum(value > 1 + 1e-9 for value in gain),
        "largest_gain": rounded(max(gain), 6),
        "largest_by_payload": [
            rounded(max(gain[n :: len(SMALLER)]), 6) for n in range(len(SMALLER))
        ],
    }


def _best(solver: Solver, digits: tuple[Digits, ...], payload: int, one: Longer) -> float:
    if one.pipelined:
        return solver.run(digits, payload, LIBRARY).pipelined_s
    return solver.proved(digits, payload).seconds


def _deep_scenes(results: Results) -> list[tuple[Digits, ...]]:
    """Scenes that are split at every level, the largest groups first."""
    scenes = [s for s in results.data["scenes"] if min(s["factors"]) > 1]
    scenes.sort(key=lambda s: -math.prod(s["factors"]))
    return [tuple(tuple(tuple(d) for d in level) for level in s["digits"]) for s in scenes]


def multi_axis(results: Results) -> dict[str, Any]:
    """Gains by number of reduced axes; and one program over two axes against one after another."""
    outcomes = results.outcomes(results.headline)
    by_count = {}
    for count in (1, 2, 3):
        chosen = [one for one in outcomes if len(one.case.reduced) == count]
        found = gains(chosen)
        by_count[str(count)] = {
            "requests": found.requests,
            "gaining": found.gaining,
            "mean_of_gaining": rounded(found.mean_of_gaining, 4),
            "largest": rounded(found.largest, 4),
        }
    merged = list(_merged(outcomes))
    return {
        "system": results.label,
        "by_reduced_axes": by_count,
        "pairs": len(merged),
        "mean_of_one_after_another": rounded(sum(merged) / len(merged), 4),
        "largest_of_one_after_another": rounded(max(merged), 4),
    }


def _merged(outcomes: list[Outcome]) -> Iterator[float]:
    """Time of two all-reduces after one another over that of one over both axes."""
    cases = by_case(outcomes)
    for case, group in cases.items():
        if len(case.reduced) == 2:
            first, second = (cases[Case(case.axes, (axis,))] for axis in case.reduced)
            for both, one, other in zip(group, first, second, strict=True):
                yield (one.best_s + other.best_s) / both.best_s


def together(results: Results) -> dict[str, Any]:
    """Placement and program chosen together against one after the other."""
    ways: dict[str, Callable[[Outcome], float]] = {
        "plain": lambda one: one.best_s,
        "pipelined": lambda one: one.pipelined_s,
    }
    return {
        "system": results.label,
        **{
            f"{name}_{way}": choices_data(list(pick(results, seconds)))
            for name, pick in (("single_request", singles), ("two_requests", pairs))
            for way, seconds in ways.items()
        },
    }


def main() -> None:
    """Run everything and write it."""
    searched = {
        "longer": [longer_data(one) for one in counted(LONGER, "longer programs")],
        "iterations": [iteration_data(one) for one in counted(ITERATIONS, "iterations")],
    }
    every = load()
    write(
        RESULTS,
        {
            "header": computed_header(LIMITS.seed),
            "length": LENGTH,
            **searched,
            "multi_axis": [multi_axis(results) for results in every],
            "together": [together(results) for results in every],
        },
    )


if __name__ == "__main__":
    main()

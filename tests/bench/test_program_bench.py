"""Programs of length <= 5: all of them, checked; and the optimum with proof."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.encodings.program import reachable
from p2smt.parallelism.placement import Placement
from p2smt.programs.program import Hierarchy
from p2smt.result import SearchLimits, Status
from p2smt.search.program_synthesis import Task, best_program, list_programs
from tests.strategies.clusters import switches

LENGTH = 5
FACTORS = [(16, 8), (16, 32, 8), (16, 16, 32, 8)]
DEEP = [(4, 4, 8, 16, 8), (2, 4, 4, 8, 16, 8), (2, 2, 2, 2, 4, 4, 8, 8)]
COUNTS = {2: 61, 3: 848, 4: 3611}
by_depth = pytest.mark.parametrize("factors", FACTORS, ids=lambda f: f"{len(f)}-levels")


Round = tuple[tuple[Any, ...], dict[str, Any]]


def fresh(*arguments: Any) -> Callable[[], Round]:
    """A set-up that forgets the tables, so that every round pays for its own."""

    def setup() -> Round:
        reachable._raw_table.cache_clear()
        reachable._table.cache_clear()
        reachable._merged_table.cache_clear()
        return arguments, {}

    return setup


def scene(factors: tuple[int, ...]) -> Scene:
    """One axis over all devices of a tree of switches, ten times slower per level outwards."""
    names = ("earth", "land", "region", "hall", "pod", "rack", "node", "gpu")[-len(factors) :]
    named = zip(names, factors, strict=True)
    levels = [(name, size, 1e9 * 10**j) for j, (name, size) in enumerate(named)]
    return Scene.of(switches(*levels), Placement((factors,)), [0])


@by_depth
def test_all_programs(benchmark: BenchmarkFixture, factors: tuple[int, ...]) -> None:
    task = Task(RequestKind.ALL_REDUCE, Hierarchy.plain(factors), LENGTH)
    setup = fresh(task, SearchLimits())
    result, _ = benchmark.pedantic(list_programs, setup=setup, rounds=3)
    assert (result.status, len(result.value or ())) == (Status.COMPLETE, COUNTS[len(factors)])


@pytest.mark.parametrize("factors", [*FACTORS, *DEEP], ids=lambda f: f"{len(f)}-levels")
def test_best_program(benchmark: BenchmarkFixture, factors: tuple[int, ...]) -> None:
    place = scene(factors)
    task = Task(RequestKind.ALL_REDUCE, place.hierarchy, LENGTH)
    setup = fresh(task, place, 2**30, SearchLimits())
    found = benchmark.pedantic(best_program, setup=setup, rounds=3)
    assert found.status is Status.OPTIMAL

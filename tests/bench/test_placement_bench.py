"""Placements of 65,536 devices: all of them, and the cheapest."""

from __future__ import annotations

from types import ModuleType

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from p2smt.encodings.placement import cpsat as placement_cpsat
from p2smt.encodings.placement import z3 as placement_z3
from p2smt.problems.placement import CostTable, LevelTerm, PlacementProblem
from p2smt.result import SearchLimits, Status
from tests.oracles.placements import all_matrices

LEVELS, AXES = (16, 16, 32, 8), (8, 64, 16, 8)
both = pytest.mark.parametrize(
    "solver", [placement_cpsat, placement_z3], ids=lambda s: s.__name__.rsplit(".", 1)[1]
)


def axis_table(axis: int) -> CostTable:
    """Ticks that grow with the split of an axis, a hundred times faster per level outwards."""
    rows = {
        matrix[axis]: sum((n - 1) * 10 ** (12 - 2 * j) // n for j, n in enumerate(matrix[axis]))
        for matrix in all_matrices(LEVELS, AXES)
    }
    return CostTable(tuple(LevelTerm(level, (axis,)) for level in range(len(LEVELS))), rows)


@both
def test_all_placements(benchmark: BenchmarkFixture, solver: ModuleType) -> None:
    problem = PlacementProblem(LEVELS, AXES)
    found = benchmark.pedantic(solver.enumerate_placements, (problem, SearchLimits()), rounds=1)
    assert (found.status, len(found.value)) == (Status.COMPLETE, 6434)


@both
@pytest.mark.parametrize("worst", [False, True], ids=["sum", "max"])
def test_optimum(benchmark: BenchmarkFixture, solver: ModuleType, worst: bool) -> None:
    costs = tuple(axis_table(axis) for axis in range(len(AXES)))
    problem = PlacementProblem(LEVELS, AXES, costs=costs, worst=worst)
    found = benchmark.pedantic(solver.optimal_placement, (problem, SearchLimits()), rounds=3)
    assert found.status is Status.OPTIMAL

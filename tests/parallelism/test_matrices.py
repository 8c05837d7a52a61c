"""All placement matrices: listed and counted alike, as brute force and the solver list them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.parallelism.matrices import count_matrices, factorisations, matrices
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix
from p2smt.problems.placement import PlacementProblem
from p2smt.result import SearchLimits, Status
from p2smt.search.placements import placements
from tests.oracles.placements import all_matrices, obeys
from tests.strategies.placements import rules, sizes
from tests.tiers import examples_of

Rules = tuple[AxisRule | FixedEntry, ...]


def listed(found: np.ndarray) -> list[Matrix]:
    return [tuple(tuple(row) for row in matrix) for matrix in found.tolist()]


@st.composite
def spaces(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], Rules]:
    """Levels, axes, and rules that some matrix obeys, mostly."""
    levels, axes = draw(sizes())
    witness = next(all_matrices(levels, axes), None)
    few = draw(st.integers(0, 2)) if witness else 0
    return levels, axes, tuple(draw(rules(witness)) for _ in range(few) if witness)


@settings(max_examples=examples_of(100))
@given(spaces())
def test_lists_are_those_of_brute_force(
    space: tuple[tuple[int, ...], tuple[int, ...], Rules],
) -> None:
    levels, axes, given_rules = space
    every = all_matrices(levels, axes)
    expected = [one for one in every if all(obeys(one, rule) for rule in given_rules)]
    assert listed(matrices(levels, axes, given_rules)) == expected
    assert count_matrices(levels, len(axes), given_rules).get(axes, 0) == len(expected)


def test_lists_are_those_of_the_solver() -> None:
    for axes in ((2, 4, 1, 4), (1, 16, 2, 1), (8, 2, 2, 1)):
        found = placements(PlacementProblem((4, 2, 4), axes), SearchLimits())
        assert found.status is Status.COMPLETE
        assert found.value == tuple(listed(matrices((4, 2, 4), axes)))


def test_counts_of_all_sizes_are_those_of_the_columns() -> None:
    levels, counts = (8, 6, 4), count_matrices((8, 6, 4), 4)
    product = 1
    for size in levels:
        product *= len(factorisations(size, 4))
    assert sum(counts.values()) == product
    assert set(counts) == set(factorisations(8 * 6 * 4, 4))

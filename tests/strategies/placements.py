"""Hypothesis strategies for placements: small hierarchies, side constraints, cost tables."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from p2smt.parallelism.matrices import factorisations
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix
from p2smt.problems.placement import CostTable, LevelTerm, PlacementProblem
from tests.oracles.placements import all_rows

_MAX_TICKS = 2**45
_PRIMES = st.sampled_from([2, 2, 2, 2, 3, 3, 5, 7])


@st.composite
def sizes(draw: st.DrawFn, most: int = 4) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Level and axis sizes with equal products: primes shared out twice, ones included."""
    few = draw(st.integers(0, 3)) == 0
    primes = draw(
        st.lists(_PRIMES, max_size=2) if few else st.lists(_PRIMES, min_size=4, max_size=7)
    )
    both = []
    for _ in range(2):
        found = [1] * draw(st.integers(1 if few else 2, most))
        for prime in primes:
            found[draw(st.integers(0, len(found) - 1))] *= prime
        both.append(tuple(found))
    return both[0], both[1]


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    """A small parallelism matrix with any entries."""
    axes, levels = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    entry = st.sampled_from([1, 1, 2, 3, 4])
    row = st.tuples(*[entry] * levels)
    return draw(st.tuples(*[row] * axes))


@st.composite
def rules(draw: st.DrawFn, witness: Matrix) -> AxisRule | FixedEntry:
    """A rule that mostly holds for the witness; a fixed value may be one that no matrix has."""
    axis = draw(st.integers(0, len(witness) - 1))
    level = draw(st.integers(0, len(witness[0]) - 1))
    holds = draw(st.integers(0, 5)) > 0
    if draw(st.booleans()):
        return AxisRule(axis, level, inside=(max(witness[axis][: level + 1]) == 1) is holds)
    value = witness[axis][level]
    return FixedEntry(axis, level, value if holds else draw(st.sampled_from([1, 2, 3, 4, 11])))


@st.composite
def cost_tables(
    draw: st.DrawFn, levels: tuple[int, ...], axes: tuple[int, ...], folded: int = 0
) -> CostTable:
    """A table over some terms; costs tie often, and some combinations may not be allowed."""
    subset = st.sets(st.integers(0, len(axes) - 1), max_size=2).map(lambda s: tuple(sorted(s)))
    term = st.builds(LevelTerm, st.integers(0, len(levels) - 1), subset)
    terms = tuple(draw(st.lists(term, min_size=1, max_size=3)))
    keys = {
        tuple(math.prod(matrix[i][term.level] for i in term.axes) for term in terms)
        for matrix in all_rows(PlacementProblem(levels, axes, folded=folded))
    }
    ticks = st.integers(0, draw(st.sampled_from([0, 2, _MAX_TICKS])))
    missing = draw(st.sets(st.sampled_from(sorted(keys)), max_size=1))
    rows = {key: draw(ticks) for key in sorted(keys - missing)}
    return CostTable(terms, {**rows, (11,) * len(terms): 0})


@st.composite
def folded_sizes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Levels, the axes of two matrices as one, and how many are the second's alone."""
    levels, axes = draw(sizes(most=3))
    entries = list(factorisations(math.prod(levels) // axes[0], draw(st.integers(1, 3))))
    others = draw(st.sampled_from(entries))
    return levels, (*axes, *others), len(others)


@st.composite
def problems(draw: st.DrawFn, fold: bool = False) -> PlacementProblem:
    """A small problem with any side constraints; most have an answer, many have several."""
    levels, axes, folded = draw(folded_sizes()) if fold else (*draw(sizes(most=3)), 0)
    known = list(all_rows(PlacementProblem(levels, axes, folded=folded)))
    matrix = st.sampled_from(known)
    return PlacementProblem(
        levels,
        axes,
        folded=folded,
        rules=tuple(draw(st.lists(rules(draw(matrix)), max_size=2))),
        costs=tuple(draw(st.lists(cost_tables(levels, axes, folded), max_size=3))),
        worst=draw(st.booleans()),
        excluded=draw(st.frozensets(matrix, max_size=max(1, len(known) // 3))),
        at_most=draw(st.one_of(st.none(), st.sampled_from([0, 1, 2, 4, 2**44, 2**47]))),
    )

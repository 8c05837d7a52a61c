"""Placement encodings: one body for both solvers, against brute force."""

from __future__ import annotations

import math
from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.encodings.placement import cpsat as placement_cpsat
from p2smt.encodings.placement import z3 as placement_z3
from p2smt.errors import TooLarge
from p2smt.parallelism.folded import pair_count, pairs
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix
from p2smt.problems.placement import CostTable, LevelTerm, PlacementProblem
from p2smt.result import SearchLimits, Status
from tests.oracles.placements import all_matrices, best_matrix, valid_matrices
from tests.strategies.draws import Draws, draws
from tests.strategies.placements import cost_tables, problems, sizes
from tests.tiers import examples_of

SOLVERS = [placement_cpsat, placement_z3]
RUNNING = PlacementProblem((1, 2, 2, 4), (4, 4))
LARGE = PlacementProblem((16, 16, 32, 8), (8, 64, 16, 8))
NO_LIMIT = SearchLimits()
both = pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.__name__.rsplit(".", 1)[1])
examples = settings(max_examples=examples_of(60), deadline=None, derandomize=True)


def answers(problem: PlacementProblem) -> list[Matrix]:
    """All answers by brute force."""
    return [matrix for matrix, _ in valid_matrices(problem)]


def column_table(level: int, axis: int, rows: dict[int, int]) -> CostTable:
    """A table over one entry."""
    return CostTable((LevelTerm(level, (axis,)),), {(n,): ticks for n, ticks in rows.items()})


def tied() -> PlacementProblem:
    """A large problem with 2^40 ticks or none at the outermost level: many optima."""
    rows = {2**k: 2**40 if k in (0, 3) else 0 for k in range(4)}
    return replace(LARGE, costs=(column_table(0, 0, rows), column_table(1, 2, rows)))


def agree(solver: ModuleType, problem: PlacementProblem) -> None:
    """The solver's enumeration and optimum are those of brute force, with their statuses."""
    found = solver.enumerate_placements(problem, NO_LIMIT)
    assert (found.status, list(found.value)) == (Status.COMPLETE, answers(problem))
    best, expected = solver.optimal_placement(problem, NO_LIMIT), best_matrix(problem)
    if expected is None:
        assert (best.status, best.value, best.bound) == (Status.INFEASIBLE, None, None)
    else:
        assert (best.status, best.value, best.bound) == (Status.OPTIMAL, *expected)
        assert dict(best.stats.counters)["objective"] == expected[1]


@both
@given(problem=problems())
@examples
def test_set_and_optimum_are_those_of_brute_force(
    solver: ModuleType, problem: PlacementProblem
) -> None:
    agree(solver, problem)


@both
@given(problem=problems(fold=True))
@examples
def test_folded_set_and_optimum_are_those_of_brute_force(
    solver: ModuleType, problem: PlacementProblem
) -> None:
    agree(solver, problem)


@both
@pytest.mark.parametrize(
    ("levels", "axes", "count"),
    [
        ((3, 4, 8), (2, 1, 16, 3, 2, 4, 6), 7),
        ((2, 4), (2, 1, 2, 2, 2, 1, 2), 5),
        ((2, 2, 2, 2), (1, 2, 2, 4, 2, 4, 2), 144),
        ((2, 4), (1, 1, 1, 8, 2, 2, 2), 3),
        ((2, 6), (1, 1, 2, 6, 1, 6, 2), 4),
        ((2, 2, 4), (1, 1, 16, 1, 2, 2, 4), 7),
        ((6, 6, 6), (6, 1, 6, 6, 2, 3, 6), 144),
        ((3, 4), (2, 1, 6, 1, 3, 2, 1), 1),
    ],
)
def test_pairs_are_as_many_as_are_counted(
    solver: ModuleType, levels: tuple[int, ...], axes: tuple[int, ...], count: int
) -> None:
    """By both solvers, by brute force, by the lists of pairs and by the formula."""
    problem = PlacementProblem(levels, axes, folded=3)
    agree(solver, problem)
    attention, experts = axes[:4], axes[:1] + axes[4:]
    listed = [one.rows for row in pairs(levels, attention, experts) for one in row.placements()]
    assert sorted(listed) == answers(problem)
    assert len(listed) == pair_count(levels, attention, experts) == count


@both
@given(data=draws())
@settings(examples, max_examples=examples_of(40))
def test_sum_and_worst_optimum_of_several_axes(solver: ModuleType, data: Draws) -> None:
    levels, axes = data.draw(sizes(most=4))
    tables = data.draw(st.lists(cost_tables(levels, axes), min_size=2, max_size=3))
    agree(solver, PlacementProblem(levels, axes, costs=tuple(tables)))
    agree(solver, PlacementProblem(levels, axes, costs=tuple(tables), worst=True))


@both
@pytest.mark.parametrize(
    ("levels", "axes"),
    [
        ((1,), (1,)),
        ((1, 1), (1, 1, 1)),
        ((7,), (7,)),
        ((7, 1), (1, 7)),
        ((2, 3), (1, 6)),
        ((6, 6), (4, 9)),
        ((8, 9), (72,)),
        ((6, 10, 15), (30, 30)),
        ((101, 103), (103, 101)),
    ],
)
def test_ones_primes_and_several_primes(
    solver: ModuleType, levels: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    agree(solver, PlacementProblem(levels, axes))


@both
@pytest.mark.parametrize(
    ("problem", "count"),
    [
        (RUNNING, 4),
        (replace(RUNNING, rules=(AxisRule(0, 1, inside=True),)), 2),
        (replace(RUNNING, rules=(AxisRule(0, 1, inside=False),)), 2),
        (replace(RUNNING, rules=(AxisRule(0, 0, inside=False),)), 0),
        (replace(RUNNING, rules=(FixedEntry(1, 3, 2),)), 2),
        (replace(RUNNING, rules=(FixedEntry(1, 3, 3),)), 0),
        (replace(RUNNING, rules=(FixedEntry(1, 3, 0),)), 0),
        (replace(RUNNING, excluded=frozenset({((1, 1, 1, 4), (1, 2, 2, 1))})), 3),
        (replace(RUNNING, excluded=frozenset({((9, 9),), ((1, 1, 1, 1), (1, 1, 1, 7))})), 4),
        (replace(RUNNING, costs=(column_table(3, 0, {1: 5, 2: 5, 3: 1}),)), 3),
        (replace(RUNNING, costs=(column_table(3, 0, {}),)), 0),
        (replace(RUNNING, costs=(column_table(3, 0, {1: 5, 2: 6, 4: 7}),), at_most=6), 3),
        (replace(RUNNING, costs=(column_table(0, 0, {1: 5}),), at_most=5), 4),
        (replace(RUNNING, costs=(column_table(0, 0, {1: 5}),), at_most=4), 0),
        (replace(RUNNING, costs=(column_table(0, 0, {1: 5}),) * 2, at_most=5, worst=True), 4),
        (replace(RUNNING, at_most=-1), 0),
        (PlacementProblem((1,), (1,), excluded=frozenset({((1,),)})), 0),
        (PlacementProblem((1,), (1,), rules=(AxisRule(0, 0, inside=False),)), 0),
        (PlacementProblem((6, 6), (6, 6), rules=(AxisRule(0, 0, inside=False),)), 3),
        (PlacementProblem((6, 6), (6, 6), rules=(AxisRule(0, 0, inside=True),)), 1),
        (PlacementProblem((6, 6), (6, 6), rules=(FixedEntry(0, 0, 2),)), 1),
        (PlacementProblem((6, 6), (6, 6), rules=(FixedEntry(0, 0, 5),)), 0),
    ],
)
def test_each_side_constraint_alone(
    solver: ModuleType, problem: PlacementProblem, count: int
) -> None:
    assert len(answers(problem)) == count
    agree(solver, problem)


@both
def test_a_term_over_several_axes_is_their_product(solver: ModuleType) -> None:
    problem = PlacementProblem((4, 4), (2, 2, 4))
    rows: dict[tuple[int, ...], int] = {(4,): 3, (2,): 1, (1,): 2}
    agree(solver, replace(problem, costs=(CostTable((LevelTerm(0, (0, 1)),), rows),)))
    agree(solver, replace(problem, costs=(CostTable((LevelTerm(0, (0, 1, 2)),), rows),)))
    agree(solver, replace(problem, costs=(CostTable((LevelTerm(0, ()),), rows),)))
    twice = CostTable((LevelTerm(0, (0, 1)),) * 2, {(4, 4): 3, (2, 1): 0, (1, 1): 2})
    agree(solver, replace(problem, costs=(twice,)))


@both
def test_tables_that_share_a_term_do_not_repeat_answers(solver: ModuleType) -> None:
    table = CostTable((LevelTerm(0, (0, 1)),), {(8,): 0, (4,): 1})
    agree(solver, PlacementProblem((8, 2), (8, 1, 2), costs=(table, table)))


@both
def test_infeasible_is_proved_just_below_the_optimum(solver: ModuleType) -> None:
    rows = {1: 2**59 + 3, 2: 2**59 + 2, 4: 2**59 + 1}
    for worst, optimum in ((False, 2**60 + 4), (True, 2**59 + 2)):
        tables = (column_table(3, 0, rows), column_table(3, 1, rows))
        problem = replace(RUNNING, costs=tables, worst=worst)
        at = solver.optimal_placement(replace(problem, at_most=optimum), NO_LIMIT)
        below = solver.optimal_placement(replace(problem, at_most=optimum - 1), NO_LIMIT)
        assert (at.status, at.bound) == (Status.OPTIMAL, optimum)
        assert (below.status, below.value) == (Status.INFEASIBLE, None)


@both
@pytest.mark.parametrize("limit_s", [0.0, 1e-9, -1.0])
def test_without_time_nothing_is_proved(solver: ModuleType, limit_s: float) -> None:
    limits = SearchLimits(time_limit_s=limit_s)
    for problem in (LARGE, RUNNING, replace(RUNNING, at_most=-1)):
        best = solver.optimal_placement(problem, limits)
        assert (best.status, best.value, best.bound) == (Status.UNKNOWN, None, None)
        found = solver.enumerate_placements(problem, limits)
        assert (found.status, found.value) == (Status.TRUNCATED, ())


@both
@pytest.mark.parametrize("limit_s", [0.002, 0.01, 0.1])
def test_what_a_short_time_finds_is_valid_and_a_proof_is_true(
    solver: ModuleType, limit_s: float
) -> None:
    problem, limits = tied(), SearchLimits(time_limit_s=limit_s)
    known = set(all_matrices(problem.levels, problem.axes))
    found = solver.enumerate_placements(LARGE, limits)
    assert list(found.value) == sorted(set(found.value) & known)
    assert found.status is Status.TRUNCATED or set(found.value) == known
    best, expected = solver.optimal_placement(problem, limits), best_matrix(problem)
    assert expected is not None
    match best.status:
        case Status.OPTIMAL:
            assert (best.value, best.bound) == expected
        case Status.FEASIBLE:
            assert best.bound <= expected[1] <= dict(best.stats.counters)["objective"]
            assert best.value in known
        case _:
            assert (best.status, best.value) == (Status.UNKNOWN, None)


@both
def test_an_enumeration_stops_at_its_limit(solver: ModuleType) -> None:
    problems = [(RUNNING, 4), (PlacementProblem((6, 6), (6, 6)), 4)]
    for problem, count in [*problems, (replace(RUNNING, at_most=-1), 0)]:
        for most in range(6):
            found = solver.enumerate_placements(problem, SearchLimits(max_answers=most))
            assert len(found.value) == min(most, count)
            assert found.status is (Status.COMPLETE if most >= count else Status.TRUNCATED)
            assert set(found.value) <= set(answers(problem))


@both
def test_seed_and_workers_do_not_change_the_optimum(solver: ModuleType) -> None:
    problem = tied()
    expected = best_matrix(problem)
    assert expected is not None
    for seed, workers in ((0, 1), (1, 1), (2**40, 1), (0, 2), (7, 4)):
        best = solver.optimal_placement(problem, SearchLimits(seed=seed, workers=workers))
        assert (best.status, best.value, best.bound) == (Status.OPTIMAL, *expected)


def test_the_tie_break_goes_from_block_to_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_cpsat, "MAX_BLOCK", 3)
    for problem in (tied(), PlacementProblem((6, 6, 6), (6, 6, 6)), LARGE):
        expected = best_matrix(problem)
        assert expected is not None
        best = placement_cpsat.optimal_placement(problem, NO_LIMIT)
        assert (best.status, best.value, best.bound) == (Status.OPTIMAL, *expected)
        assert best.stats.calls > 2


@both
def test_a_level_beyond_factorisation_is_refused(solver: ModuleType) -> None:
    with pytest.raises(TooLarge, match="level size"):
        solver.enumerate_placements(PlacementProblem((2**41,), (2**41,)), NO_LIMIT)


def test_ticks_beyond_the_integers_of_cpsat_are_refused() -> None:
    problem = replace(RUNNING, costs=(column_table(0, 0, {1: 2**62}),))
    with pytest.raises(TooLarge, match="ticks"):
        placement_cpsat.optimal_placement(problem, NO_LIMIT)
    assert placement_z3.optimal_placement(problem, NO_LIMIT).bound == 2**62


@pytest.mark.exhaustive
def test_both_solvers_agree_on_65536_devices() -> None:
    axes = range(len(LARGE.axes))
    tables = []
    for axis in axes:
        rows = {
            matrix[axis]: sum((n - 1) * 10 ** (9 - 2 * j) for j, n in enumerate(matrix[axis]))
            for matrix in all_matrices(LARGE.levels, LARGE.axes)
        }
        tables.append(CostTable(tuple(LevelTerm(j, (axis,)) for j in range(4)), rows))
    problem = replace(LARGE, costs=tuple(tables))
    assert math.prod(problem.levels) == 65536
    results = [solver.optimal_placement(problem, NO_LIMIT) for solver in SOLVERS]
    for result in results:
        assert (result.value, result.bound) == best_matrix(problem)

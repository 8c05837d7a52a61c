"""Parts of the placement encodings: prime exponents, and each constraint on its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from p2smt.encodings.placement import cpsat
from p2smt.encodings.placement import z3 as smt
from p2smt.encodings.placement.primes import (
    Cell,
    ExponentTable,
    PartAnswers,
    PrimeSizes,
    combine,
    independent_parts,
    prime_factors,
)
from p2smt.encodings.run_cpsat import run
from p2smt.encodings.run_z3 import new_solver, solution
from p2smt.parallelism.placement import AxisRule, FixedEntry
from p2smt.problems.placement import CostTable, LevelTerm, PlacementProblem
from p2smt.result import SearchLimits, Status, StopWatch
from tests.oracles.placements import all_matrices, all_rows
from tests.strategies.placements import folded_sizes, sizes

SQUARE = PrimeSizes.of(PlacementProblem((4, 4), (4, 4)))
FOLDED = PrimeSizes.of(PlacementProblem((4, 4), (4, 4, 4), folded=1))
CELLS = list(SQUARE.cells([0]))
TABLE = ExponentTable((((0, 0, 0), (1, 0, 0)), ((0, 1, 0),)), (((3, 1), 5), ((2, 0), 7)))
WITHIN, ACROSS = AxisRule(0, 0, inside=True), AxisRule(0, 1, inside=False)
ONES = ((1, 1), (1, 1))
Exponents = Mapping[Cell, int]

Cpsat = Callable[[cp_model.CpModel, cpsat.Vars], None]
Smt = Callable[[z3.Solver, smt.Vars], None]


def cpsat_solutions(constraint: Cpsat, cells: Sequence[Cell] = CELLS) -> set[tuple[int, ...]]:
    """Exponents and cost of all solutions of one constraint, each exponent 0 to 2."""
    model = cp_model.CpModel()
    e = {cell: model.new_int_var(0, 2, str(cell)) for cell in cells}
    total, cost = model.new_int_var(0, 4, "s"), model.new_int_var(4, 8, "c")
    columns = dict(zip(TABLE.columns, (total, e[0, 1, 0]), strict=True))
    variables = cpsat.Vars(e, columns, (cost,))
    constraint(model, variables)
    cpsat.c7_term_sums(model, variables)
    noted = cpsat._Collector([*e.values(), cost], None)
    run(model, SearchLimits(), noted, every=True)
    return {tuple(row) for row in noted.found}


def smt_allows(constraint: Smt, cells: Sequence[Cell] = CELLS) -> Callable[[tuple[int, ...]], bool]:
    """Whether one constraint, stated once, allows exponents and a cost."""
    solver = new_solver(0)
    e = {cell: z3.Int(f"e{cell}") for cell in cells}
    variables = smt.Vars(e, (z3.Int("c"),))
    constraint(solver, variables)

    def allows(values: tuple[int, ...]) -> bool:
        solver.push()
        solver.add([x == v for x, v in zip([*e.values(), *variables.costs], values, strict=True)])
        found = solution(solver, StopWatch.start(SearchLimits()))
        solver.pop()
        return found is not None

    return allows


def smt_holds(constraint: Smt, values: tuple[int, ...], cells: Sequence[Cell] = CELLS) -> bool:
    """Whether one constraint allows these exponents and cost."""
    return smt_allows(constraint, cells)(values)


@pytest.mark.parametrize(
    ("in_cpsat", "in_z3", "meaning"),
    [
        (
            lambda m, v: cpsat.c1_row_sums(m, SQUARE, v),
            lambda s, v: smt.c1_row_sums(s, SQUARE, v),
            lambda a, b, c, d, _: a + b == 2 and c + d == 2,
        ),
        (
            lambda m, v: cpsat.c2_column_sums(m, SQUARE, v),
            lambda s, v: smt.c2_column_sums(s, SQUARE, v),
            lambda a, b, c, d, _: a + c == 2 and b + d == 2,
        ),
        (
            lambda m, v: cpsat.c3_inside(m, v, WITHIN),
            lambda s, v: smt.c3_inside(s, v, WITHIN),
            lambda a, *_: a == 0,
        ),
        (
            lambda m, v: cpsat.c4_across(m, v, ACROSS),
            lambda s, v: smt.c4_across(s, v, ACROSS),
            lambda a, b, *_: a > 0 or b > 0,
        ),
        (
            lambda m, v: cpsat.c5_fixed_entry(m, SQUARE, v, FixedEntry(1, 0, 4)),
            lambda s, v: smt.c5_fixed_entry(s, SQUARE, v, FixedEntry(1, 0, 4)),
            lambda _a, _b, c, *_: c == 2,
        ),
        (
            lambda m, v: cpsat.c6_excluded(m, SQUARE, v, [ONES]),
            lambda s, v: smt.c6_excluded(s, SQUARE, v, [ONES]),
            lambda *values: any(values[:4]),
        ),
        (
            lambda m, v: cpsat.c8_cost_tables(m, v, [TABLE]),
            lambda s, v: smt.c7_cost_tables(s, v, [TABLE]),
            lambda a, b, c, _, cost: (a + c, b, cost) in {(3, 1, 5), (2, 0, 7)},
        ),
        (
            lambda m, v: cpsat.c9_at_most(m, v, False, 6),
            lambda s, v: smt.c8_at_most(s, v, False, 6),
            lambda *values: values[4] <= 6,
        ),
        (
            lambda m, v: cpsat.c9_at_most(m, v, True, 6),
            lambda s, v: smt.c8_at_most(s, v, True, 6),
            lambda *values: values[4] <= 6,
        ),
    ],
    ids=["rows", "columns", "inside", "across", "fixed", "excluded", "table", "sum", "worst"],
)
def test_each_constraint_alone(in_cpsat: Cpsat, in_z3: Smt, meaning: Callable[..., bool]) -> None:
    space = itertools.product(*[range(3)] * 4, range(4, 9))
    expected = {values for values in space if meaning(*values)}
    assert cpsat_solutions(in_cpsat) == expected
    allowed = smt_allows(in_z3)
    for values in itertools.product(*[range(3)] * 4, (5, 7)):
        assert allowed(values) == (values in expected)


def test_two_matrices_share_the_exponents_of_their_first_row() -> None:
    """C2 alone on rows pp, dp, ed of a folded problem: each of the two sums of a column is 2."""
    cells = list(FOLDED.cells([0]))
    space = [*itertools.product(range(3), repeat=6)]
    expected = {
        (a, b, c, d, e, f) for a, b, c, d, e, f in space if a + c == a + e == 2 == b + d == b + f
    }
    found = cpsat_solutions(lambda m, v: cpsat.c2_column_sums(m, FOLDED, v), cells)
    assert {values[:6] for values in found} == expected
    for values in {*space[::11], *expected}:
        held = smt_holds(lambda s, v: smt.c2_column_sums(s, FOLDED, v), (*values, 5), cells)
        assert held == (values in expected)


def test_the_maximum_is_the_largest_cost() -> None:
    model = cp_model.CpModel()
    costs = tuple(model.new_int_var(k, k, f"c{k}") for k in (3, 9, 4))
    most = cpsat.c10_maximum(model, cpsat.Vars({}, {}, costs), model.new_int_var(0, 99, "m"))
    solver, _ = run(model, SearchLimits())
    assert solver.value(most) == 9


@given(st.integers(1, 5000))
def test_prime_factors(number: int) -> None:
    found = prime_factors(number)
    assert list(found) == [
        p for p in range(2, number + 1) if number % p == 0 and all(p % d for d in range(2, p))
    ]


@given(sizes())
def test_bounds_and_entry_values_hold_for_every_matrix(
    both: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    primed = PrimeSizes.of(PlacementProblem(*both))
    primes = range(len(primed.primes))
    for matrix in all_matrices(*both):
        exponents = primed.split(matrix)
        assert exponents is not None
        assert primed.matrix(exponents) == matrix
        for cell, exponent in exponents.items():
            low, high = primed.bounds(cell)
            assert low <= exponent <= high
        for i, row in enumerate(matrix):
            for j, entry in enumerate(row):
                assert entry in [value for value, _ in primed.entry_values(i, j, primes)]


@given(folded_sizes())
def test_bounds_hold_for_every_pair(
    question: tuple[tuple[int, ...], tuple[int, ...], int],
) -> None:
    problem = PlacementProblem(question[0], question[1], folded=question[2])
    primed = PrimeSizes.of(problem)
    columns = [
        tuple((i, j, p) for i in rows)
        for j in range(len(problem.levels))
        for p in range(len(primed.primes))
        for size in (1, 2, 3)
        for rows in itertools.combinations(range(len(problem.axes)), size)
    ]
    for matrix in all_rows(problem):
        exponents = primed.split(matrix)
        assert exponents is not None
        for column in columns:
            low, high = primed.column_bounds(column)
            assert low <= sum(exponents[cell] for cell in column) <= high


def test_a_column_of_a_matrix_cannot_vary() -> None:
    for rows in ((0, 1), (0, 2)):
        assert FOLDED.column_bounds(tuple((i, 1, 0) for i in rows)) == (2, 2)
    assert FOLDED.column_bounds(((1, 1, 0), (2, 1, 0))) == (0, 4)


def test_a_table_keeps_only_what_can_vary() -> None:
    primed = PrimeSizes.of(PlacementProblem((1, 4, 6), (4, 6)))
    terms = (LevelTerm(0, (0,)), LevelTerm(1, (0, 1)), LevelTerm(2, (1,)), LevelTerm(2, (1,)))
    keys: list[tuple[int, ...]] = [(1, 4, 3, 3), (1, 4, 6, 6), (1, 4, 6, 3), (1, 2, 6, 6)]
    rows = dict(zip([*keys, (5, 4, 6, 6)], [7, 8, 9, 9, 9], strict=True))
    table = primed.table(CostTable(terms, rows))
    assert table == ExponentTable((((1, 2, 0),),), (((0,), 7), ((1,), 8)))


def test_primes_are_solved_apart_unless_a_constraint_couples_them() -> None:
    levels, axes = (6, 6), (6, 6)
    table = CostTable((LevelTerm(0, (0,)),), {(1,): 0})
    apart = [
        PlacementProblem(levels, axes),
        PlacementProblem(levels, axes, rules=(WITHIN, FixedEntry(0, 0, 1)), at_most=1),
    ]
    together = [
        PlacementProblem(levels, axes, rules=(ACROSS,)),
        PlacementProblem(levels, axes, costs=(table,)),
        PlacementProblem(levels, axes, excluded=frozenset({((6, 1), (1, 6))})),
    ]
    for problem in apart:
        assert independent_parts(problem, PrimeSizes.of(problem)) == [(0,), (1,)]
    for problem in together:
        assert independent_parts(problem, PrimeSizes.of(problem)) == [(0, 1)]


def test_parts_combine_to_products_and_an_empty_part_proves_all() -> None:
    two = PartAnswers((((1, 2),), ((2, 1),)), complete=True)
    three = PartAnswers((((3, 1),), ((1, 3),)), complete=True)
    cut, empty = PartAnswers(three.matrices, complete=False), PartAnswers((), complete=True)
    four = (((1, 6),), ((2, 3),), ((3, 2),), ((6, 1),))
    assert combine([two, three], None, lambda: False) == (Status.COMPLETE, four)
    assert combine([two, three], 4, lambda: False) == (Status.COMPLETE, four)
    assert combine([two, cut], None, lambda: False) == (Status.TRUNCATED, four)
    assert combine([cut, empty], None, lambda: False) == (Status.COMPLETE, ())
    assert combine([two, three], None, lambda: True) == (Status.TRUNCATED, ())
    status, some = combine([two, three], 3, lambda: False)
    assert (status, len(some)) == (Status.TRUNCATED, 3)


def test_the_exponents_of_65536_devices_are_few() -> None:
    primed = PrimeSizes.of(PlacementProblem((16, 16, 32, 8), (8, 64, 16, 8)))
    assert primed.primes == (2,)
    assert math.prod(high - low + 1 for low, high in map(primed.bounds, primed.cells([0]))) > 6434

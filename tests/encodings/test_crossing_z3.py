"""Where one cost is less than others: z3 against points and multipliers, each constraint alone."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from p2smt.encodings.crossing import z3 as encoding
from p2smt.errors import InputError
from p2smt.plans.crossings.proofs import broken
from p2smt.problems.crossing import Coefficients, CrossingProblem, SumOfMaxima, cases
from p2smt.result import SearchLimits, Status
from p2smt.solvers.ask import Multipliers, Optimum, Solver, Witness, ask

LIMITS = SearchLimits()
GRID = [tuple(map(Fraction, point)) for point in product((0, 1, 2, 5), repeat=3)]


def cost(fixed: tuple[int, ...], *maxima: tuple[int, ...]) -> SumOfMaxima:
    return SumOfMaxima(fractions(fixed), tuple(map(fractions, maxima)))


def fractions(numbers: tuple[int, ...]) -> Coefficients:
    return tuple(map(Fraction, numbers))


rows = st.tuples(*[st.integers(0, 4)] * 3)
costs = st.builds(
    lambda fixed, maxima: cost(fixed, *maxima), rows, st.lists(rows.filter(any), max_size=2)
)


@given(costs, st.lists(costs, min_size=1, max_size=3))
def test_either_there_is_a_point_or_there_are_multipliers(
    candidate: SumOfMaxima, others: list[SumOfMaxima]
) -> None:
    problem = CrossingProblem(candidate, tuple(others))
    where = ask(problem, Witness(), Solver.Z3, LIMITS)
    why = ask(problem, Multipliers(), Solver.Z3, LIMITS)
    on_grid = [
        point
        for point in GRID
        if all(candidate.value(point) < other.value(point) for other in others)
    ]
    if where.status is Status.FEASIBLE:
        assert where.value is not None
        assert min(where.value) >= 0
        assert all(candidate.value(where.value) < other.value(where.value) for other in others)
        assert why.status is Status.INFEASIBLE
    else:
        assert where.status is Status.INFEASIBLE
        assert on_grid == []
        assert why.status is Status.COMPLETE
        assert why.value is not None
        assert broken(candidate, problem.others, why.value) is None


def test_two_together_refute_what_neither_does_alone() -> None:
    middle, ends = cost((2, 2)), (cost((1, 3)), cost((3, 1)))
    found = ask(CrossingProblem(middle, ends), Multipliers(), Solver.Z3, LIMITS)
    assert found.value is not None
    assert found.value.by == (0, 1)
    for end in ends:
        one = ask(CrossingProblem(middle, (end,)), Witness(), Solver.Z3, LIMITS)
        assert one.status is Status.FEASIBLE


def test_an_equal_cost_is_not_cheaper() -> None:
    same = cost((1, 0), (2, 3))
    found = ask(CrossingProblem(same, (same,)), Witness(), Solver.Z3, LIMITS)
    assert found.status is Status.INFEASIBLE


def test_no_time_is_no_proof() -> None:
    problem, limits = CrossingProblem(cost((1,)), (cost((2,)),)), SearchLimits(time_limit_s=0.0)
    assert ask(problem, Witness(), Solver.Z3, limits).status is Status.UNKNOWN
    assert ask(problem, Multipliers(), Solver.Z3, limits).status is Status.UNKNOWN


def variables(problem: CrossingProblem) -> tuple[encoding.Vars, z3.Solver]:
    return encoding.Vars.of(problem), z3.Solver()


PAIR = CrossingProblem(cost((1, 0), (2, 3)), (cost((0, 1), (4, 1)),))


def test_c1_refuses_a_negative_number() -> None:
    v, solver = variables(PAIR)
    encoding.c1_numbers(solver, v)
    assert solver.check(v.x[0] == 0) == z3.sat
    assert solver.check(v.x[0] == -1) == z3.unsat


def test_c2_keeps_t_above_every_part() -> None:
    v, solver = variables(PAIR)
    encoding.c2_candidate(solver, v, PAIR.candidate)
    solver.add(v.x[0] == 1, v.x[1] == 1)
    assert solver.check(v.t[0] == 3) == z3.sat
    assert solver.check(v.t[0] < 3) == z3.unsat


def test_c3_keeps_m_below_some_part() -> None:
    v, solver = variables(PAIR)
    encoding.c3_other(solver, v, PAIR.others[0], 0)
    solver.add(v.x[0] == 1, v.x[1] == 1)
    assert solver.check(v.m[0][0] == 4) == z3.sat
    assert solver.check(v.m[0][0] > 4) == z3.unsat


def test_c4_compares_strictly() -> None:
    v, solver = variables(PAIR)
    encoding.c4_cheaper(solver, v, PAIR, 0)
    solver.add(v.x[0] == 1, v.x[1] == 1, v.m[0][0] == 4)
    assert solver.check(v.t[0] == 3) == z3.sat
    assert solver.check(v.t[0] == 4) == z3.unsat


def test_c5_and_c6_mix_lines() -> None:
    solver, w = z3.Solver(), [z3.Real("w0"), z3.Real("w1")]
    encoding.c5_weights(solver, w, [])
    assert solver.check(w[0] == 2) == z3.unsat
    lines = [fractions((1, 3)), fractions((3, 1))]
    encoding.c6_mixture(solver, w, [], cost((2, 2)), lines)
    assert solver.check(w[0] == z3.Q(1, 2)) == z3.sat
    assert solver.check(w[0] == 1) == z3.unsat


def test_cases_leave_out_what_is_zero() -> None:
    assert list(cases([cost((0, 0), (1, 0), (2, 3)), cost((1, 1))])) == [(0, 0), (0, 1)]


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: cost((1, 1), (1,)), "different unknowns"),
        (lambda: cost((1, -1)), "negative"),
        (lambda: cost((1, 1), (0, 0)), "maximum of zeros"),
        (lambda: CrossingProblem(cost((1,)), ()), "another cost"),
        (lambda: CrossingProblem(cost((1,)), (cost((1, 1)),)), "different unknowns"),
    ],
)
def test_a_malformed_problem_is_refused(make: object, rule: str) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=rule):
        make()


def test_other_questions_and_solvers_are_refused() -> None:
    with pytest.raises(InputError, match="must be z3"):
        ask(PAIR, Witness(), Solver.CPSAT, LIMITS)  # type: ignore[call-overload]
    with pytest.raises(InputError, match="Witness or Multipliers"):
        ask(PAIR, Optimum(), Solver.Z3, LIMITS)  # type: ignore[call-overload]

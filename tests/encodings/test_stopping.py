"""Solvers that are stopped because they became useless prove nothing more than they have."""

from __future__ import annotations

import random
import threading
import time

import pytest
from ortools.sat.python import cp_model

from p2smt.encodings.run_cpsat import bound_without_answer, run
from p2smt.encodings.run_z3 import new_solver, solution
from p2smt.errors import OutOfTimeError
from p2smt.parallelism.placement import Matrix
from p2smt.problems.placement import CostTable, LevelTerm, PlacementProblem
from p2smt.result import STOPPED, SearchLimits, Status, StopWatch
from p2smt.solvers.ask import Every, Optimum, Solver, ask, stopping_when
from tests.encodings.test_solver_runs import pigeons, split_evenly

NO_LIMIT = SearchLimits()
TEN_MINUTES = SearchLimits(time_limit_s=600)
"""So long a search goes on that nobody stops."""


class After:
    """Useless from the n-th time on that it is asked; notes the bounds that it is told."""

    def __init__(self, times: int) -> None:
        self.times, self.bounds = times, list[int | None]()

    def __call__(self, bound: int | None) -> bool:
        self.bounds.append(bound)
        return len(self.bounds) >= self.times


def hard_minimum() -> cp_model.CpModel:
    """Five market-split equations of forty Booleans: bounds come at once, answers hardly ever."""
    model, draw = cp_model.CpModel(), random.Random(1)
    flags = [model.new_bool_var(f"x{k}") for k in range(40)]
    for _ in range(5):
        weights = [draw.randint(0, 99) for _ in flags]
        model.add(sum(w * x for w, x in zip(weights, flags, strict=True)) == sum(weights) // 2)
    model.minimize(sum(draw.randint(1, 9) * x for x in flags))
    return model


def few_asked(useless: After) -> bool:
    """Whether it ended soon after it was found useless: ten minutes have 12,000 questions."""
    return useless.times <= len(useless.bounds) < useless.times + 6000


def test_what_is_useless_from_the_start_is_not_begun() -> None:
    with stopping_when(lambda _: True):
        solver, status = run(cp_model.CpModel(), NO_LIMIT)
        with pytest.raises(OutOfTimeError, match=STOPPED):
            solution(new_solver(0), StopWatch.start(NO_LIMIT))
    assert status == cp_model.UNKNOWN
    assert bound_without_answer(solver) is None


def test_cpsat_is_stopped_while_it_works() -> None:
    with stopping_when(useless := After(4)):
        _, status = run(split_evenly(), TEN_MINUTES)
    assert status == cp_model.UNKNOWN
    assert few_asked(useless)
    assert set(useless.bounds) == {None}


def test_z3_is_stopped_while_it_works() -> None:
    watch = StopWatch.start(TEN_MINUTES)
    with stopping_when(useless := After(4)), pytest.raises(OutOfTimeError, match=STOPPED):
        solution(pigeons(), watch)
    assert few_asked(useless)
    solver = new_solver(0)
    assert solution(solver, watch) is not None, "the next check is not stopped"


def test_a_bound_in_ticks_stops_cpsat_and_is_kept() -> None:
    """A bound that is asked about was proved: the solve's own is no smaller."""
    seen: list[int] = []

    def beyond(bound: int | None) -> bool:
        seen.extend(() if bound is None else (bound,))
        return bound is not None and bound >= 60

    with stopping_when(beyond):
        solver, status = run(hard_minimum(), TEN_MINUTES, in_ticks=True)
    assert status == cp_model.UNKNOWN
    proved = bound_without_answer(solver)
    assert proved is not None
    assert proved >= seen[-1] >= 60


def test_bounds_of_other_objectives_are_not_shown() -> None:
    with stopping_when(useless := After(8)):
        run(hard_minimum(), TEN_MINUTES)
    assert set(useless.bounds) == {None}


def test_an_optimum_is_not_lost_to_a_question_that_says_no() -> None:
    model = cp_model.CpModel()
    x = model.new_int_var(3, 9, "x")
    model.minimize(x)
    with stopping_when(lambda _: False):
        solver, status = run(model, NO_LIMIT, in_ticks=True)
    assert (status, solver.value(x)) == (cp_model.OPTIMAL, 3)


def test_without_it_nothing_is_asked() -> None:
    with stopping_when(useless := After(1)):
        pass
    assert run(cp_model.CpModel(), NO_LIMIT)[1] == cp_model.OPTIMAL
    assert useless.bounds == []


def test_the_inner_question_is_asked_and_the_outer_one_again_after_it() -> None:
    with stopping_when(lambda _: True):
        with stopping_when(lambda _: False):
            assert run(cp_model.CpModel(), NO_LIMIT)[1] == cp_model.OPTIMAL
        assert run(cp_model.CpModel(), NO_LIMIT)[1] == cp_model.UNKNOWN


def test_other_threads_are_not_stopped() -> None:
    found: list[object] = []
    with stopping_when(lambda _: True):
        other = threading.Thread(
            target=lambda: found.append(run(cp_model.CpModel(), NO_LIMIT)[1]), daemon=True
        )
        other.start()
        other.join()
    assert found == [cp_model.OPTIMAL]


def test_a_question_that_fails_ends_the_search_first() -> None:
    def fails(_: int | None) -> bool:
        if threading.active_count() > before:
            raise ZeroDivisionError
        return False

    before = threading.active_count()
    with stopping_when(fails), pytest.raises(ZeroDivisionError):
        run(split_evenly(), TEN_MINUTES)
    for _ in range(30_000):  # the solver's thread has ended, or is about to
        if threading.active_count() == before:
            return
        time.sleep(0.01)
    raise AssertionError("the solver's thread goes on")


@pytest.mark.parametrize("solver", Solver)
def test_an_encoding_that_is_stopped_claims_no_proof(solver: Solver) -> None:
    """Not infeasible, not complete, not optimal: as if its time had run out."""
    rows: dict[tuple[int, ...], int] = {(2**k,): 2**k for k in range(4)}
    tables = tuple(CostTable((LevelTerm(j, (0,)),), rows) for j in range(3))
    problem = PlacementProblem((2, 4, 4), (8, 4), costs=tables)
    whole = ask(problem, Optimum(), solver, NO_LIMIT)
    assert whole.status is Status.OPTIMAL
    seen: set[Matrix | None] = set()
    for times in range(1, 9):
        with stopping_when(After(times)):
            listed = ask(problem, Every(), solver, NO_LIMIT)
        with stopping_when(After(times)):
            best = ask(problem, Optimum(), solver, NO_LIMIT)
        assert listed.status in (Status.TRUNCATED, Status.COMPLETE)
        assert best.status in (Status.UNKNOWN, Status.FEASIBLE, Status.OPTIMAL)
        assert best.status is not Status.OPTIMAL or best.value == whole.value
        seen.add(best.value)
    assert seen >= {None, whole.value}, "some were stopped, some were not"

"""Placements near the optimum, against brute force over all matrices and all programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.parallelism.placement import Matrix
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import NearOptimal, RequestAnswer, Solution
from p2smt.result import Result, SearchLimits, Status
from p2smt.search import bound_table, placements
from p2smt.search.joint import JointSearch
from p2smt.search.near_optimal import BRIEFLY, Nearness
from p2smt.search.one_request import RequestAnswers
from p2smt.solvers import ask as solvers
from p2smt.solvers.questions import Every
from tests.oracles.placements import obeys
from tests.search.solve.test_solve import brute_force, problem, problems
from tests.search.solve.test_solve_limits import ask, cluster, deep
from tests.strategies.draws import Draws, draws
from tests.strategies.placements import rules
from tests.tiers import examples_of

GAPS = st.sampled_from([0.0, 0.05, 0.3, 1.0, 10.0])
EDGE, TIE = 1e-6, 1e-12
"""Relative: closer to the limit than the first, rounding may decide, but for what is equal."""


def near_of(solution: Solution) -> NearOptimal:
    assert solution.near is not None
    return solution.near


def agrees(solution: Solution, expected: list[tuple[float, Matrix]], within: float) -> None:
    """Exactly the matrices of the brute force within the gap, in its order of costs."""
    assert solution.best is not None
    limit_s = (1 + within) * solution.best.objective_s
    off = [abs(cost - limit_s) for cost, _ in expected]
    assume(all(gap > EDGE * limit_s or (gap <= TIE * limit_s and not within) for gap in off))
    near = near_of(solution)
    assert near.status is Status.COMPLETE
    costs = {matrix: cost for cost, matrix in expected if cost <= limit_s * (1 + EDGE)}
    assert {one.matrix for one in near.alternatives} == set(costs)
    for one in near.alternatives:
        assert one.matrix is not None
        assert one.objective_s == pytest.approx(costs[one.matrix], rel=1e-9)
    found = [one.objective_s for one in near.alternatives]
    assert found == sorted(found)


@settings(max_examples=examples_of(60))
@given(problems(), GAPS, st.sampled_from([1, 3, 1000]))
def test_all_of_the_brute_force_are_found(question: Problem, within: float, top: int) -> None:
    solution = p2smt.solve(question, top=top, within=within)
    agrees(solution, brute_force(question), within)
    assert near_of(solution).listed


@pytest.mark.exhaustive
@settings(max_examples=examples_of(10))
@given(problems(devices=8), GAPS)
def test_z3_finds_the_same(question: Problem, within: float) -> None:
    agrees(p2smt.solve(question, top=1, within=within, solver="z3"), brute_force(question), within)


@settings(max_examples=examples_of(25))
@given(problems(), GAPS, draws())
def test_rules_hold(question: Problem, within: float, data: Draws) -> None:
    every = brute_force(question)
    rule = data.draw(rules(data.draw(st.sampled_from([matrix for _, matrix in every]))))
    expected = [(cost, matrix) for cost, matrix in every if obeys(matrix, rule)]
    assume(expected)
    solution = p2smt.solve(replace(question, rules=(rule,)), top=1, within=within)
    agrees(solution, expected, within)


@settings(max_examples=examples_of(25))
@given(problems(), GAPS)
def test_the_brief_count_is_never_too_large(question: Problem, within: float) -> None:
    briefly = Nearness(within, most=3, share=0.2)
    solution = p2smt.solve(question, top=1, within=briefly)
    everyone = near_of(p2smt.solve(question, top=1, within=within))
    near = near_of(solution)
    assert not near.listed
    assert {one.matrix for one in near.alternatives} <= {
        one.matrix for one in everyone.alternatives
    }
    if near.status is Status.COMPLETE:
        assert len(near.alternatives) == len(everyone.alternatives)


def flat(**more: Any) -> Problem:
    """Three levels alike, so that many placements cost the same."""
    levels = (("a", 4, 1e9), ("b", 4, 1e9), ("c", 4, 1e9))
    return ask(cluster(*levels), "dp=4,tp=4,pp=4", "dp=1MiB", "tp=1MiB", "pp=1MiB", **more)


def test_a_ranking_that_goes_beyond_the_gap_needs_no_second_search() -> None:
    question = problem("dp=1MiB", "tp=1MiB*100")
    search = JointSearch(question, SearchLimits(), nearness=BRIEFLY).run(2)
    assert search.alternatives[1].objective_s > 1.05 * search.alternatives[0].objective_s
    assert near_of(search).status is Status.COMPLETE
    assert near_of(search).alternatives == search.alternatives[:1]


def test_the_count_stops_where_it_is_cut() -> None:
    whole = near_of(p2smt.solve(flat(), top=1, within=10.0))
    assert whole.status is Status.COMPLETE
    some = near_of(p2smt.solve(flat(), top=1, within=Nearness(10.0, most=5)))
    assert some.status is Status.TRUNCATED
    assert len(some.alternatives) == 5 < len(whole.alternatives)


@pytest.mark.parametrize("reason", [p2smt.errors.OutOfTimeError, KeyboardInterrupt])
def test_an_end_in_the_middle_keeps_what_was_found(
    monkeypatch: pytest.MonkeyPatch, reason: type[BaseException]
) -> None:
    whole = p2smt.solve(flat(), top=1, within=10.0)
    first = JointSearch(flat(), SearchLimits()).run(1)
    answered, enough = RequestAnswers.of, dict(first.stats.counters)["programs"] + 1

    def until(
        self: RequestAnswers, request: Request, scene: Any, limits: SearchLimits
    ) -> RequestAnswer | None:
        if len(self) == enough:
            raise reason
        return answered(self, request, scene, limits)

    monkeypatch.setattr(RequestAnswers, "of", until)
    found = p2smt.solve(flat(), top=1, within=10.0)
    near = near_of(found)
    assert (found.status, near.status) == (Status.OPTIMAL, Status.TRUNCATED)
    assert found.interrupted is (reason is KeyboardInterrupt)
    assert 1 <= len(near.alternatives) < len(near_of(whole).alternatives)
    assert set(near.alternatives) <= set(near_of(whole).alternatives)


def test_a_list_that_the_solver_did_not_finish_is_no_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cut(asked: Any, question: Any, solver: Any, limits: SearchLimits) -> Result[Any]:
        found: Result[Any] = solvers.ask(asked, question, solver, limits)
        if isinstance(question, Every):
            return Result(Status.TRUNCATED, found.value[:2] if found.value else ())
        return found

    monkeypatch.setattr(bound_table, "listed", lambda *_: None)  # a solver lists what is near
    monkeypatch.setattr(placements, "ask", cut)
    near = near_of(p2smt.solve(flat(), top=1, within=10.0))
    assert near.status is Status.TRUNCATED
    assert near.alternatives


def test_without_a_proved_optimum_only_what_is_proved_near_counts() -> None:
    question = ask(deep(), "dp=256", "dp=1GiB")
    found = p2smt.solve(question, limits=SearchLimits(time_limit_s=0.3), within=0.05)
    assert found.status is Status.FEASIBLE
    assert found.best is not None
    near = near_of(found)
    assert near.status is Status.TRUNCATED
    assert all(one.objective_s <= 1.05 * found.bound_s * 1.000001 for one in near.alternatives)


def test_no_matrix_at_all_is_none_near_by_proof() -> None:
    names = (["dp", "tp"], ["node", "gpu"])
    both = tuple(p2smt.parse_rule(f"{name} within node", True, *names) for name in names[0])
    near = near_of(p2smt.solve(problem("dp=1MiB", rules=both), within=0.05))
    assert (near.status, near.alternatives) == (Status.COMPLETE, ())


def test_near_a_rank_order_are_the_matrices_within_its_gap() -> None:
    """Levels 6,6 with axes 4,9: no matrix expresses the default layout, which is faster."""
    topology = cluster(("node", 6, 1e9), ("gpu", 6, 1e11))
    found = p2smt.solve(ask(topology, "dp=9,tp=4", "tp=64MiB"), within=10.0)
    assert found.best is not None
    assert found.best.matrix is None
    least = near_of(found).alternatives
    assert least
    gap = least[0].objective_s / found.best.objective_s - 1
    closer = p2smt.solve(found.problem, within=gap / 2)
    assert near_of(closer).alternatives == ()


def test_nothing_is_looked_for_unless_it_is_asked() -> None:
    assert p2smt.solve(problem("dp=1MiB")).near is None


@pytest.mark.parametrize("within", [-0.01, 10.1, float("nan"), float("inf")])
def test_a_gap_out_of_range_is_refused(within: float) -> None:
    with pytest.raises(p2smt.InputError, match="must be from 0 to 10"):
        p2smt.solve(problem("dp=1MiB"), within=within)

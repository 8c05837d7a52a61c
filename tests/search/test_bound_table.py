"""The refined table: what it says of each matrix, and what it proposes, against brute force."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings

from p2smt.errors import OutOfTimeError
from p2smt.parallelism.placement import Matrix
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import RequestAnswer
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.bound_table import BoundTable, OpenEntry, Proposal
from p2smt.search.one_request import RequestAnswers
from p2smt.search.programs_pipelined import Catalogs
from p2smt.solvers.ask import Solver
from tests.search.solve.test_solve import brute_force, problem, problems
from tests.tiers import examples_of

NONE: frozenset[Matrix] = frozenset()
UNLIMITED = SearchLimits()


def watch() -> StopWatch:
    return StopWatch.start(UNLIMITED)


def filled(question: Problem) -> BoundTable:
    table = BoundTable(question, Solver.CPSAT)
    table.fill(watch())
    return table


def answers_to(question: Problem) -> RequestAnswers:
    return RequestAnswers(question, Solver.CPSAT, Catalogs())


def answer(answers: RequestAnswers, entry: OpenEntry) -> RequestAnswer | None:
    return answers.of(entry.request, entry.scene, UNLIMITED)


def matrix_of(proposal: Proposal) -> Matrix:
    assert proposal.matrix is not None
    return proposal.matrix


@settings(max_examples=examples_of(25))
@given(problems(devices=16))
def test_the_table_never_exceeds_the_true_objective(question: Problem) -> None:
    """Neither at first, nor after any of its entries is refined; what is proposed is its least."""
    true_s = {matrix: cost for cost, matrix in brute_force(question)}
    table, answers = filled(question), answers_to(question)
    while True:
        said_s = {matrix: table.bound_s(matrix) for matrix in true_s}
        assert all(said_s[matrix] <= cost * (1 + 1e-9) for matrix, cost in true_s.items())
        proposal = table.propose(NONE, watch())
        assert said_s[matrix_of(proposal)] == pytest.approx(min(said_s.values()), rel=1e-6)
        assert proposal.bound_s is not None
        assert proposal.bound_s <= min(said_s.values()) * (1 + 1e-9)
        if not proposal.open:
            break
        table.refine(proposal.open[0], answer(answers, proposal.open[0]))
    least_s = min(true_s.values())
    assert true_s[matrix_of(proposal)] == pytest.approx(least_s, rel=1e-6)


@settings(max_examples=examples_of(25))
@given(problems(devices=16))
def test_no_proposal_is_repeated(question: Problem) -> None:
    """A matrix comes up once to be refined and once with its price, in order of the prices."""
    table, answers = filled(question), answers_to(question)
    found: list[tuple[float, Matrix]] = []
    seen: set[tuple[Matrix, tuple[OpenEntry, ...]]] = set()
    while True:
        proposal = table.propose(frozenset(matrix for _, matrix in found), watch())
        if proposal.matrix is None:
            break
        assert (proposal.matrix, proposal.open) not in seen
        assert sum(matrix == proposal.matrix for matrix, _ in seen) < 2
        seen.add((proposal.matrix, proposal.open))
        for entry in proposal.open:
            table.refine(entry, answer(answers, entry))
        priced = table.price(proposal.matrix)
        assert priced is not None
        if not proposal.open:
            found.append((priced.objective_s, proposal.matrix))
    assert proposal.status is Status.INFEASIBLE
    expected = brute_force(question)
    assert {matrix for _, matrix in found} == {matrix for _, matrix in expected}
    assert [cost for cost, _ in found] == pytest.approx([cost for cost, _ in expected], rel=1e-6)
    assert table.calls >= len(seen) + 1


def test_a_matrix_has_no_price_before_each_entry_has_an_answer() -> None:
    question = problem("dp=1MiB", "tp=1MiB*100")
    table, answers = filled(question), answers_to(question)
    proposal = table.propose(NONE, watch())
    first, second = proposal.open
    table.refine(first, answer(answers, first))
    assert table.price(matrix_of(proposal)) is None
    table.refine(second, answer(answers, second))
    priced = table.price(matrix_of(proposal))
    assert priced is not None
    assert [found.request for found in priced.requests] == list(question.requests)
    assert priced.objective_s == pytest.approx(table.bound_s(matrix_of(proposal)), rel=1e-9)


def test_what_is_forbidden_is_not_proposed() -> None:
    table = filled(problem("dp=1MiB"))
    cut: set[Matrix] = set()
    while (proposal := table.propose(NONE, watch())).matrix is not None:
        assert proposal.matrix not in cut
        (entry,) = proposal.open
        table.refine(entry, None)
        assert table.bound_s(proposal.matrix) == math.inf
        assert table.price(proposal.matrix) is None
        cut.add(proposal.matrix)
    assert proposal.status is Status.INFEASIBLE
    assert cut == {matrix for _, matrix in brute_force(problem("dp=1MiB"))}


def test_proposals_go_out_while_answers_are_awaited() -> None:
    """Refining in another order than was proposed ends at the same optimum."""
    question = problem("dp=1MiB*8", "tp=1MiB*9")
    table, answers, out = filled(question), answers_to(question), dict[Matrix, Proposal]()
    while (proposal := table.propose(frozenset(out), watch())).matrix is not None:
        out[proposal.matrix] = proposal
    for late in reversed(out.values()):
        for entry in late.open:
            table.refine(entry, answer(answers, entry))
    best = table.propose(NONE, watch())
    assert not best.open
    priced = table.price(matrix_of(best))
    assert priced is not None
    assert priced.objective_s == pytest.approx(brute_force(question)[0][0], rel=1e-9)


def test_an_unproved_answer_is_a_price_but_no_more_than_its_bound() -> None:
    question = problem("dp=1GiB")
    table = filled(question)
    proposal = table.propose(NONE, watch())
    (entry,) = proposal.open
    right = answer(answers_to(question), entry)
    assert right is not None
    table.refine(entry, replace(right, status=Status.FEASIBLE, bound_s=right.seconds / 2))
    assert table.bound_s(matrix_of(proposal)) == right.seconds / 2
    priced = table.price(matrix_of(proposal))
    assert priced is not None
    assert (priced.status, priced.objective_s) == (Status.FEASIBLE, right.seconds)


def test_without_time_the_table_is_not_filled() -> None:
    table = BoundTable(problem("dp=1GiB"), Solver.CPSAT)
    with pytest.raises(OutOfTimeError):
        table.fill(StopWatch.start(SearchLimits(time_limit_s=0.0)))
    assert table.calls == 0

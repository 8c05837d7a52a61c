"""Restrictions that exclude each other: the core is infeasible, and no rule in it can go."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.collectives.names import Form
from p2smt.parallelism.placement import AxisRule, FixedEntry
from p2smt.parallelism.request import Problem
from p2smt.plans.restrictions import restriction_text
from p2smt.problems.placement import PlacementProblem
from p2smt.report.outputs.shape import json_of
from p2smt.report.solution_data import solution_data
from p2smt.result import Result, SearchLimits, Status
from p2smt.search.conflict import conflict, list_placements, rule_conflict
from p2smt.search.joint import JointSearch
from p2smt.solvers.ask import Conflict, Solver, ask
from tests.cli.tools import cli
from tests.oracles.placements import all_matrices, obeys
from tests.search.solve.test_solve import problem, problems
from tests.search.solve.test_without_proof import text_of
from tests.search.test_scene_table import rules_on
from tests.strategies.draws import Draws, draws
from tests.strategies.placements import sizes
from tests.tiers import examples_of

UNLIMITED = SearchLimits()


def answers(question: PlacementProblem, rules: tuple[AxisRule | FixedEntry, ...]) -> int:
    """How many matrices obey the rules, by brute force."""
    every = all_matrices(question.levels, question.axes)
    return sum(all(obeys(matrix, rule) for rule in rules) for matrix in every)


@st.composite
def questions(draw: st.DrawFn) -> PlacementProblem:
    """Small ones with many rules, of which few have an answer."""
    levels, axes = draw(sizes(most=3))
    rules = [*draw(rules_on(len(axes), len(levels))), *draw(rules_on(len(axes), 1))]
    return PlacementProblem(levels, axes, tuple(rules))


def left(question: PlacementProblem) -> tuple[AxisRule | FixedEntry, ...]:
    """What remains of the rules when each, in their order, is left out that need not be there."""
    kept = list(dict.fromkeys(question.rules))
    for rule in tuple(kept):
        rest = [other for other in kept if other != rule]
        kept = kept if answers(question, tuple(rest)) else rest
    return tuple(kept)


@settings(max_examples=examples_of(200))
@given(questions(), st.sampled_from(Solver))
def test_a_core_is_infeasible(question: PlacementProblem, solver: Solver) -> None:
    found = ask(question, Conflict(), solver, UNLIMITED)
    if answers(question, question.rules):
        assert (found.status, found.value) == (Status.FEASIBLE, None)
        return
    assert found.status is Status.INFEASIBLE
    assert found.value is not None
    assert not answers(question, tuple(question.rules[n] for n in found.value))


PAIRS = PlacementProblem(
    (4, 8),
    (8, 4),
    (
        AxisRule(0, 0, inside=True),
        AxisRule(1, 0, inside=True),
        AxisRule(0, 0, inside=False),
        FixedEntry(0, 1, 8),
    ),
)
"""Of these rules the first excludes the second and the third, the last the second and the third."""


@settings(max_examples=examples_of(100))
@given(questions())
@example(PAIRS)
def test_solvers_and_seeds_name_the_same_rules(question: PlacementProblem) -> None:
    """None of them can go, as all without any one of them have an answer."""
    wanted = () if answers(question, question.rules) else left(question)
    for solver, seed in product(Solver, (0, 1, 2**40)):
        assert rule_conflict(question, SearchLimits(seed=seed), solver) == wanted
    for rule in wanted:
        assert answers(question, tuple(other for other in wanted if other != rule))


def test_whatever_core_a_solver_names_the_conflict_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for core in ((0, 1), (0, 2), (1, 3), (2, 3), (0, 1, 2, 3)):
        named = Result(Status.INFEASIBLE, core)
        monkeypatch.setattr("p2smt.search.conflict.ask", lambda *_, named=named: named)
        assert rule_conflict(PAIRS) == PAIRS.rules[2:]


def test_no_time_names_no_core() -> None:
    rules = (AxisRule(0, 0, inside=True), AxisRule(0, 0, inside=False))
    question = PlacementProblem((4, 8), (8, 4), rules)
    assert rule_conflict(question, SearchLimits(time_limit_s=0.0)) == ()
    for solver in Solver:
        question = PlacementProblem((4, 8), (8, 4), rules)
        found = ask(question, Conflict(), solver, SearchLimits(time_limit_s=0.0))
        assert (found.status, found.value) == (Status.UNKNOWN, None)


CASES: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    (
        {
            "rules": (
                AxisRule(0, 0, inside=True),
                AxisRule(1, 0, inside=True),
                FixedEntry(1, 1, 4),
                AxisRule(0, 1, inside=False),
            )
        },
        ("dp within node", "tp=gpu:4"),
    ),
    ({"rules": (FixedEntry(1, 0, 3),)}, ("tp=node:3",)),
    (
        {"step_limits": (("node", 0), ("gpu", 5)), "axes": p2smt.parse_axes("dp=32")},
        ("at most 0 steps across node",),
    ),
    (
        {
            "rules": (AxisRule(0, 0, inside=False), AxisRule(1, 1, inside=False)),
            "step_limits": (("node", 0),),
            "forbidden_forms": frozenset({Form.MASTER}),
        },
        ("dp across node", "at most 0 steps across node"),
    ),
    (
        {
            "forbidden_forms": frozenset({Form.INSIDE_GROUP, Form.MASTER, Form.PARALLEL}),
            "max_length": 2,
        },
        ("no inside",),
    ),
]


@pytest.mark.parametrize(("restricted", "expected"), CASES)
def test_seeds_name_the_same_restrictions(
    restricted: dict[str, Any], expected: tuple[str, ...]
) -> None:
    for seed in (1, 2**40):
        limits = SearchLimits(seed=seed, workers=2)
        assert conflict(problem("dp=1MiB", **restricted), limits, Solver.CPSAT) == expected


@pytest.mark.parametrize(("restricted", "expected"), CASES)
def test_an_infeasible_problem_names_what_excludes_each_other(
    restricted: dict[str, Any], expected: tuple[str, ...]
) -> None:
    found = p2smt.solve(problem("dp=1MiB", **restricted))
    assert found.status is Status.INFEASIBLE
    assert found.conflict == expected
    assert json_of(solution_data(found))["conflict"] == list(expected)
    said = f"these restrictions exclude each other: {'; '.join(expected)}"
    alone = f"nothing obeys the restriction {expected[0]}"
    assert text_of(found) == f"infeasible: {said if len(expected) > 1 else alone}"


@settings(max_examples=examples_of(60), deadline=None)
@given(problems(12), draws())
def test_the_length_of_programs_leaves_no_request_without_one(
    question: Problem, data: Draws
) -> None:
    """Where some program is allowed, so is one collective: no core needs to name the length."""
    level = st.sampled_from(question.topology.names)
    limited = data.draw(st.lists(st.tuples(level, st.integers(0, 1)), max_size=2))
    forms = data.draw(st.frozensets(st.sampled_from(Form), max_size=2))
    none = []
    for length in (1, 4):
        under: dict[str, Any] = {
            "max_length": length,
            "step_limits": tuple(limited),
            "forbidden_forms": forms,
        }
        search = JointSearch(replace(question, **under), UNLIMITED)
        none.append(search.run(1).status is Status.INFEASIBLE)
    assert none[0] is none[1]


def test_a_restriction_of_no_known_kind_has_no_text() -> None:
    with pytest.raises(AssertionError, match="at-most"):
        restriction_text({"kind": "at-most", "chunks": 8})


def test_a_feasible_problem_has_no_conflict() -> None:
    found = p2smt.solve(problem("dp=1MiB", rules=(AxisRule(0, 0, inside=True),)))
    assert found.conflict == ()


FORBIDDEN = ("dp within l1 (dp across l1 forbidden)", "tp within l1 (tp across l1 forbidden)")


def test_forbidden_rules_are_named_as_given() -> None:
    given = ("--forbid", "dp across l1", "--forbid", "tp across l1", "--require", "dp across l2")
    options = ("placements", "--levels", "4,8", "--axes", "dp=8,tp=4", *given)
    assert f"exclude each other: {'; '.join(FORBIDDEN)}" in cli(*options, "--details").out
    assert cli(*options, "--json").json()["conflict"] == list(FORBIDDEN)


def test_solve_names_forbidden_rules_as_given(tiny: str) -> None:
    forbidden = ("--forbid", "dp across node", "--fix", "dp=node:2")
    done = cli(
        "solve", "-t", tiny, "--axes", "dp=2,tp=4", "--reduce", "dp=1MiB", *forbidden, "--details"
    )
    assert done.code == 4
    assert "exclude each other: dp within node (dp across node forbidden); dp=node:2" in done.out


def test_placements_names_the_rules() -> None:
    wanted = ("tp within l1", "dp=l2:8")
    rules = (*("--require", "dp within l1"), *("--require", wanted[0]), *("--fix", wanted[1]))
    options = ("placements", "--levels", "4,8", "--axes", "dp=8,tp=4", *rules)
    done = cli(*options)
    assert done.code == 0
    assert "these rules exclude each other: tp within l1; dp=l2:8" in done.out
    data = cli(*options, "--json").json()
    assert data["conflict"] == list(wanted)
    alone = cli("placements", "--levels", "4,8", "--axes", "dp=8,tp=4", "--fix", "dp=l1:3")
    assert "\nnothing obeys the rule dp=l1:3\n" in alone.out
    free = cli(*options[:5], "--json").json()
    assert free["conflict"] == []


def test_listing_and_conflict_share_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is asked as it would be, and the time that passes before the conflict is counted."""
    left: list[float] = []

    def slow(problem: Any, question: Any, solver: Any, limits: SearchLimits) -> Any:
        left.append(limits.time_limit_s or 0.0)
        time.sleep(0.2)
        return ask(problem, question, solver, limits)

    for module in ("placements", "conflict"):
        monkeypatch.setattr(f"p2smt.search.{module}.ask", slow)
    rules = ("--require", "dp within l1", "--require", "tp within l1")
    options = ("--levels", "4,8", "--axes", "dp=8,tp=4", *rules, "--time-limit", "100")
    assert cli("placements", *options).code == 0
    assert left[0] - left[1] >= 0.2


def test_a_list_that_is_not_empty_has_no_conflict() -> None:
    question = PlacementProblem((4, 8), (8, 4), (AxisRule(0, 0, inside=True),))
    found = list_placements(question, UNLIMITED)
    assert found.status is Status.COMPLETE
    assert found.matrices
    assert not found.conflict
    assert list_placements(question, SearchLimits(time_limit_s=0.0)).conflict == ()

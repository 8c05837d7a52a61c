"""Rank orders beside matrices: the default one is the answer, or what it breaks is said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.collectives.names import Form
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import AxisRule, FixedEntry, Placement
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem
from p2smt.plans.check.check_plan import check_plan
from p2smt.plans.check.check_restrictions import broken_by_singles
from p2smt.plans.file import plan_data, read_plan
from p2smt.plans.solution import ProofStatus
from p2smt.report.outputs.shape import json_of
from p2smt.report.solution_data import solution_data
from p2smt.result import SearchLimits, Status
from p2smt.search.one_request import single_answer
from p2smt.search.prove import prove
from p2smt.solvers.ask import Solver
from tests.oracles.placements import all_matrices
from tests.search.solve.test_solve import brute_force, problems
from tests.search.solve.test_solve_limits import ask, cluster
from tests.search.solve.test_without_proof import NO_TIME, text_of
from tests.strategies.draws import Draws, draws
from tests.tiers import examples_of


def unequal(**more: Any) -> Problem:
    """Sizes that do not divide: no matrix puts all of b into one node, the default layout does."""
    return ask(cluster(("node", 6, 1e9), ("gpu", 6, 1e12)), "a=9,b=4", "b=1GiB", **more)


def test_a_faster_default_that_no_matrix_expresses_is_the_answer() -> None:
    found = p2smt.solve(unequal(), top=2)
    assert found.best is not None
    assert found.default is not None
    assert (found.status, found.ranking) == (Status.FEASIBLE, Status.TRUNCATED)
    assert (found.best.matrix, found.default.matrix) == (None, None)
    assert found.best.ranks == tuple(range(36))
    assert found.best.objective_s == pytest.approx(found.default.objective_s, rel=1e-12)
    assert (found.bound_s, found.physical_bound_s) == (0.0, 0.0)
    second = found.alternatives[1]
    least_s = min(cost for cost, _ in brute_force(unequal(max_length=3)))
    assert second.objective_s == pytest.approx(least_s, rel=1e-9)
    data = json_of(solution_data(found))
    assert data["faster_layouts"] == []
    assert (data["bound_s"], data["physical_bound_s"]) == (None, None)
    assert (data["plan"]["bound_s"], data["plan"]["physical_bound_s"]) == (0.0, 0.0)
    assert "proved bound none" in text_of(found)
    assert "which no matrix expresses; the best matrix takes" in text_of(found)


@pytest.mark.parametrize(
    ("restricted", "broken"),
    [
        ({"rules": (FixedEntry(0, 0, 3),)}, "a=node:3: no matrix expresses the ranks"),
        ({"rules": (AxisRule(1, 0, inside=False),)}, "b across node: some group lies in one"),
    ],
)
def test_rules_that_a_faster_rank_order_breaks_keep_it_out(
    restricted: dict[str, Any], broken: str
) -> None:
    found = p2smt.solve(unequal(**restricted))
    assert found.best is not None
    assert found.default is not None
    assert found.default.breaks == (broken,)
    assert found.status is Status.OPTIMAL
    assert all(alternative.matrix is not None for alternative in found.alternatives)
    assert found.default.objective_s < found.best.objective_s * 0.99
    assert f"but the restrictions exclude it: {broken}" in text_of(found)
    assert "no matrix expresses it" not in text_of(found)


@pytest.mark.parametrize(
    ("restricted", "broken"),
    [
        ({"forbidden_forms": frozenset({Form.INSIDE_GROUP})}, "no inside: its one step"),
        ({"step_limits": (("node", 0),)}, "at most 0 steps across node: it has 1"),
    ],
)
def test_restrictions_of_programs_keep_a_rank_order_out(
    restricted: dict[str, Any], broken: str
) -> None:
    """No matrix has an answer either, so that the default order is all that could be told."""
    found = p2smt.solve(unequal(**restricted))
    assert found.default is not None
    assert [text.startswith(f"all-reduce b: {broken}") for text in found.default.breaks] == [True]
    assert (found.status, found.best) == (Status.INFEASIBLE, None)


def podded(**more: Any) -> Problem:
    """As above in two pods, which no group of b in the default layout leaves."""
    levels = ("pod", 2, 1e9), ("node", 6, 1e9), ("gpu", 6, 1e12)
    return ask(cluster(*levels), "p=2,a=9,b=4", "b=1GiB", **more)


@pytest.mark.parametrize(
    "question",
    [
        unequal(rules=(AxisRule(0, 0, inside=False),)),
        podded(step_limits=(("pod", 0),)),
        podded(rules=(AxisRule(2, 0, inside=True),), step_limits=(("pod", 0),)),
    ],
)
def test_a_default_that_obeys_the_restrictions_is_the_answer(
    question: Problem, tmp_path: Path
) -> None:
    """Its groups decide whether it does, not that no matrix expresses it."""
    found = p2smt.solve(question, top=2)
    assert found.default is not None
    assert found.default.breaks == ()
    listed, best = found.alternatives
    assert (found.status, listed.matrix) == (Status.FEASIBLE, None)
    assert listed.objective_s < best.objective_s * 0.99
    for alternative, status in ((listed, ProofStatus.OPEN), (best, ProofStatus.REFUTED)):
        (tmp_path / "plan.json").write_text(json.dumps(plan_data(found, alternative)))
        plan = read_plan(str(tmp_path / "plan.json"))
        assert check_plan(plan, "plan").valid
        assert prove(plan).status is status


def test_a_default_is_the_answer_where_no_matrix_is_left() -> None:
    """a=3 does not fit two nodes; in the default order each of its groups lies in both."""
    rules = (AxisRule(0, 0, inside=False),)
    topology = cluster(("node", 2, 1e9), ("gpu", 6, 1e12))
    found = p2smt.solve(ask(topology, "a=3,b=4", "b=1GiB", rules=rules))
    assert found.status is Status.FEASIBLE
    assert found.best is not None
    assert (found.best.matrix, found.best.ranks) == (None, tuple(range(12)))
    assert "no matrix obeys the restrictions" in text_of(found)


@settings(max_examples=examples_of(100))
@given(problems(), draws())
def test_a_matrix_and_its_rank_list_break_the_same(question: Problem, data: Draws) -> None:
    """Rules on axes, forms and steps across levels are held against groups, however given."""
    axis, level = (
        st.sampled_from(range(len(question.axes))),
        st.sampled_from(question.topology.names),
    )
    rule = st.builds(AxisRule, axis, level.map(question.topology.names.index), st.booleans())
    question = replace(
        question,
        rules=tuple(data.draw(st.lists(rule, max_size=2))),
        forbidden_forms=data.draw(st.frozensets(st.sampled_from(Form), max_size=1)),
        step_limits=tuple(data.draw(st.lists(st.tuples(level, st.integers(0, 1)), max_size=2))),
    )
    for matrix in all_matrices(question.topology.sizes, question.axis_sizes):
        placement = Placement(matrix)
        devices = tuple(placement.rank_tensor().ravel().tolist())
        listed = RankList(devices, question.axis_sizes)
        broken = list(broken_by_singles(question, placement))
        assert broken == list(broken_by_singles(question, listed))
        programs = replace(question, rules=())
        allowed = all(
            single_answer(
                programs,
                request,
                Scene.of(question.topology, placement, question.axis_indices(request)),
                Solver.CPSAT,
            )
            for request in question.requests
        )
        assert (not list(broken_by_singles(programs, placement))) is allowed


def test_the_default_matrix_is_no_answer_where_a_rule_excludes_it() -> None:
    question = ask(
        cluster(("node", 4, 1e9), ("gpu", 8, 1e10)),
        "dp=8,tp=4",
        "tp=1GiB",
        rules=(AxisRule(1, 0, inside=False),),
    )
    for limits in (NO_TIME, SearchLimits()):
        found = p2smt.solve(question, limits=limits)
        assert found.best is not None
        assert found.best.matrix is not None
        assert found.best.matrix[1][0] > 1
        assert "but the restrictions exclude it" in text_of(found)
        assert json_of(solution_data(found))["faster_layouts"] == ["default"]


def test_a_given_order_that_no_matrix_expresses_is_no_answer() -> None:
    question = ask(cluster(("node", 6, 1e9), ("gpu", 6, 1e12)), "b=4,a=9", "b=1GiB")
    contiguous = [4 * a + b for b in range(4) for a in range(9)]
    found = p2smt.solve(question, compare=contiguous)
    assert found.compared is not None
    assert found.compared.matrix is None
    assert found.alternatives == p2smt.solve(question).alternatives
    assert json_of(solution_data(found))["faster_layouts"] == ["given"]
    assert "but no matrix expresses it, and of such orders only the default" in text_of(found)

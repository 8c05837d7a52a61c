"""Answers where the search ends before it has a proof: never worse than what is known."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import p2smt
from p2smt.parallelism.expressed import matrix_of
from p2smt.parallelism.placement import AxisRule, Matrix, Placement, default_ranks
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import Solution
from p2smt.report.solution_data import solution_data
from p2smt.report.solution_tables import solution_tables
from p2smt.result import SearchLimits, SolveStats, Status, StopWatch
from p2smt.search import bound_table
from p2smt.search import bound_table as scene_table
from p2smt.search.joint import Estimate, Estimates, neighbours, packed, start_matrices
from p2smt.search.solve import rank_order
from tests.oracles.placements import all_matrices, obeys
from tests.search.solve.test_solve import brute_force, problems
from tests.search.solve.test_solve_limits import ask, cluster
from tests.search.test_scene_table import large
from tests.strategies.draws import Draws, draws
from tests.strategies.topologies import placements
from tests.tiers import examples_of

NO_TIME = SearchLimits(time_limit_s=0.0)


def text_of(solution: Solution) -> str:
    """What `solve` prints, on one line."""
    console = Console(width=300)
    with console.capture() as capture:
        console.print(solution_tables(solution))
    return " ".join(capture.get().split())


@given(placements(48), draws())
def test_a_rank_order_has_the_matrix_that_expresses_it(placement: Placement, data: Draws) -> None:
    sizes, axes = placement.level_sizes, placement.axis_sizes
    assert matrix_of(placement.rank_tensor(), sizes) == placement.matrix
    other = data.draw(st.permutations(range(placement.rank_tensor().size)))
    for ranks in (default_ranks(axes), np.array(other).reshape(axes)):
        equal = [
            matrix
            for matrix in all_matrices(sizes, axes)
            if np.array_equal(Placement(matrix).rank_tensor(), ranks)
        ]
        assert matrix_of(ranks, sizes) == (equal[0] if equal else None)


@given(placements(48))
def test_axes_are_packed_in_every_order(placement: Placement) -> None:
    sizes, axes = placement.level_sizes, placement.axis_sizes
    every = list(all_matrices(sizes, axes))
    for order in permutations(range(len(axes))):
        assert packed(sizes, axes, order) in every
    default = matrix_of(default_ranks(axes), sizes)
    if default is not None:
        assert default == packed(sizes, axes, range(len(axes))[::-1])


@given(problems(), draws())
def test_known_matrices_and_their_neighbours_obey_the_rules(question: Problem, data: Draws) -> None:
    axes, levels = len(question.axes), len(question.topology.levels)
    axis, level = st.integers(0, axes - 1), st.integers(0, levels - 1)
    rule = data.draw(st.builds(AxisRule, axis, level, st.booleans()))
    question = Problem(question.topology, question.axes, question.requests, rules=(rule,))
    every = set(all_matrices(question.topology.sizes, question.axis_sizes))
    allowed = {matrix for matrix in every if obeys(matrix, rule)}
    found = start_matrices(question, [default_ranks(question.axis_sizes)])
    assert set(found) <= allowed
    for matrix in allowed:
        near = list(neighbours(question, matrix))
        assert set(near) <= allowed - {matrix}
        assert len(set(near)) == len(near)


@settings(max_examples=examples_of(60))
@given(problems())
def test_without_any_time_the_answer_is_no_worse_than_the_default(question: Problem) -> None:
    found = p2smt.solve(question, limits=NO_TIME)
    assert found.best is not None
    assert found.default is not None
    assert found.best.objective_s <= found.default.objective_s * (1 + 1e-9)
    assert found.status is Status.FEASIBLE
    assert "default" not in solution_data(found)["faster_layouts"]
    if found.best.matrix is not None:
        true_s = {matrix: cost for cost, matrix in brute_force(question)}
        assert found.best.objective_s >= true_s[found.best.matrix] * (1 - 1e-9)
        assert found.bound_s <= min(true_s.values()) * (1 + 1e-9)


@settings(max_examples=examples_of(40))
@given(problems(), st.integers(0, 4))
def test_without_tables_the_answer_is_no_worse_than_the_default(
    question: Problem, most: int
) -> None:
    """Requests with more scenes than that have no table; bounds still hold, notes are true."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bound_table, "listed", lambda *_: None)
        patch.setattr(scene_table, "MAX_SCENES", most)
        found = p2smt.solve(question)
    true_s = min(cost for cost, _ in brute_force(question))
    assert found.best is not None
    assert found.default is not None
    assert found.best.objective_s <= found.default.objective_s * (1 + 1e-9)
    if found.best.matrix is not None:
        assert found.best.objective_s >= true_s * (1 - 1e-9)
        assert found.bound_s <= true_s * (1 + 1e-9)
        limits = [note for note in found.notes if not note.startswith("by ring, as the topology")]
        assert bool(limits) is (found.status is not Status.OPTIMAL)
        if not limits:
            assert found.best.objective_s == pytest.approx(true_s, rel=1e-9)


def pods() -> p2smt.Topology:
    """2,048 devices on five levels."""
    speeds = (2, 1e9), (4, 1.25e10), (8, 2.5e10), (4, 5e10), (8, 3e11)
    return cluster(*((f"l{j}", n, speed) for j, (n, speed) in enumerate(speeds)))


@pytest.mark.parametrize("limit_s", [0.0, 1.5])
def test_2048_devices_on_five_levels_in_little_time(limit_s: float) -> None:
    question = ask(
        pods(), "pp=8,dp=8,ep=4,tp=8", "dp=4GiB", "tp=64MiB*128", "ep=64MiB*16", "dp+ep=1GiB"
    )
    found = p2smt.solve(question, limits=SearchLimits(time_limit_s=limit_s))
    assert found.best is not None
    assert found.default is not None
    assert found.default.matrix is not None
    assert found.best.objective_s <= found.default.objective_s
    assert "note" not in text_of(found)


def test_an_interrupt_at_the_start_leaves_the_known_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bound_table.BoundTable, "fill", interrupted)
    found = p2smt.solve(ask(pods(), "dp=256,tp=8", "dp=1GiB", "tp=1GiB"))
    assert found.interrupted
    assert found.best is not None
    assert found.default is not None
    assert found.best.objective_s <= found.default.objective_s * (1 + 1e-9)


def test_an_interrupt_of_the_known_matrices_leaves_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time is over, and the signal comes when the second matrix is looked at."""
    estimate = Estimates.of

    def interrupted(estimates: Estimates, matrix: Matrix) -> Estimate:
        if estimates.met and matrix not in estimates.met:
            raise KeyboardInterrupt
        return estimate(estimates, matrix)

    monkeypatch.setattr(Estimates, "of", interrupted)
    found = p2smt.solve(ask(pods(), "dp=256,tp=8", "dp=1GiB", "tp=1GiB"), limits=NO_TIME)
    assert found.interrupted
    assert found.best is not None
    assert found.default is not None
    assert found.best.matrix == found.default.matrix
    assert found.best.objective_s == pytest.approx(found.default.objective_s, rel=1e-9)


def test_a_matrix_to_compare_with_is_an_answer_too() -> None:
    """Without time only what is known beforehand is; the caller's matrix is."""
    topology = cluster(("node", 4, 1e9), ("rack", 4, 1e10), ("gpu", 4, 1e11))
    question = ask(topology, "a=8,b=8", "a=1GiB", "b=1GiB")
    best = p2smt.solve(question).best
    assert best is not None
    assert best.matrix is not None
    given_rows = [list(row) for row in best.matrix]
    found = p2smt.solve(question, limits=NO_TIME, compare=given_rows)
    assert found.best is not None
    assert found.compared is not None
    assert found.compared.matrix == best.matrix
    assert found.best.objective_s <= found.compared.objective_s * (1 + 1e-9)


@pytest.mark.exhaustive
def test_too_many_scenes_end_in_a_weaker_answer_with_the_remedy() -> None:
    question = ask(large(), "a=16,b=16,c=16,d=16,e=8", "b+c=1GiB", "a=1MiB*64")
    found = p2smt.solve(question, limits=SearchLimits(time_limit_s=600.0), top=1)
    assert found.status is Status.FEASIBLE
    assert found.best is not None
    assert found.default is not None
    assert found.best.objective_s <= found.default.objective_s * (1 + 1e-9)
    assert 0 < found.bound_s <= found.best.objective_s
    (note,) = found.notes
    assert note.startswith("'all-reduce b+c 1 GiB' has more than 50000 ways to lie on the levels")
    assert "--fix" in note
    assert note in text_of(found)
    assert solution_data(found)["notes"] == [note]


@settings(max_examples=examples_of(30))
@given(problems())
def test_estimates_are_those_of_single_collectives_and_links(question: Problem) -> None:
    estimates = Estimates(question)
    for cost, matrix in brute_force(question):
        found = estimates.of(matrix)
        order = rank_order(question, Placement(matrix).rank_tensor(), "given")
        assert found.single_s == pytest.approx(order.objective_s, rel=1e-9)
        assert found.bound_s <= cost * (1 + 1e-9)
        assert cost <= found.single_s * (1 + 1e-9)


def test_descent_ends_where_no_neighbour_is_better() -> None:
    question = ask(pods(), "pp=8,dp=8,ep=4,tp=8", "dp=4GiB", "tp=64MiB*128", "ep=64MiB*16")
    estimates = Estimates(question)
    worst = packed(question.topology.sizes, question.axis_sizes, (0, 1, 2, 3))
    estimates.descend([worst], StopWatch.start(SearchLimits()))
    least = min(estimates.met, key=lambda matrix: estimates.of(matrix).single_s)
    assert estimates.of(least).single_s < estimates.of(worst).single_s
    for near in neighbours(question, least):
        assert estimates.of(near).single_s >= estimates.of(least).single_s


def test_no_plan_without_a_time_limit_blames_no_limit() -> None:
    question = ask(pods(), "dp=256,tp=8", "dp=1GiB")
    found = Solution(question, Status.UNKNOWN, (), 0.0, 0.0, Status.TRUNCATED, SolveStats("none"))
    assert text_of(found) == "unknown: no plan was found, nor a proof that there is none"
    limited = replace(found, limits=NO_TIME)
    assert text_of(limited) == "unknown: no plan was found within the time limit; give it more"

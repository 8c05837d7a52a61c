"""Matrices in a list: they are all, their rows are their scenes, and a solver proposes the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import AxisRule, Placement
from p2smt.parallelism.request import Problem
from p2smt.problems.placement import CostTable, LevelTerm, PlacementProblem
from p2smt.result import Status
from p2smt.search import bound_table
from p2smt.search.bound_table import FORBIDDEN, at_most, least, scene_rows
from p2smt.search.matrix_list import listed
from p2smt.solvers.questions import Solver
from tests.oracles import placements as oracle
from tests.search.solve.test_solve import problems
from tests.search.solve.test_solve_limits import ask, cluster
from tests.search.test_scene_table import rules_on
from tests.strategies.draws import Draws, draws
from tests.strategies.topologies import placements, topologies
from tests.tiers import examples_of


@contextmanager
def by_a_solver() -> Iterator[None]:
    """No list is made, so that a solver proposes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bound_table, "listed", lambda *_: None)
        yield


@settings(max_examples=examples_of(150))
@given(draws())
def test_the_list_is_that_of_brute_force(data: Draws) -> None:
    drawn = data.draw(placements(96))
    levels, axes = drawn.level_sizes, drawn.axis_sizes
    rules = data.draw(rules_on(len(axes), len(levels)))
    every = list(oracle.all_matrices(levels, axes))
    wanted = [matrix for matrix in every if all(oracle.obeys(matrix, rule) for rule in rules)]
    found = listed(levels, axes, rules, most=len(every))
    assert found is not None
    assert [found.matrix(n) for n in range(len(found))] == wanted
    for matrix in every:
        assert found.number(matrix) == (wanted.index(matrix) if matrix in wanted else None)
    assert listed(levels, axes, most=len(every) - 1) is None


def test_more_matrices_than_can_be_listed() -> None:
    found = listed((8,) * 5, (8,) * 5, most=153_040)
    assert found is not None
    assert len(found) == 153_040, "5 by 5 tables of non-negative integers whose lines sum to 3"
    assert listed((8,) * 5, (8,) * 5, most=153_039) is None
    assert listed((2**20,) * 3, (2**12,) * 5) is None


def test_axes_that_must_lie_across_and_inside_leave_nothing() -> None:
    found = listed((4, 8), (8, 4), [AxisRule(0, 0, inside=True), AxisRule(0, 0, inside=False)])
    assert found is not None
    assert len(found) == 0
    assert least(found, [np.zeros(0, dtype=np.int64)], False, frozenset()).status is (
        Status.INFEASIBLE
    )


@settings(max_examples=examples_of(100))
@given(draws())
def test_matrices_share_a_row_if_they_share_a_scene(data: Draws) -> None:
    drawn = data.draw(placements(48))
    topology = data.draw(topologies(drawn.level_sizes))
    axes = drawn.axis_sizes
    chosen = sorted(data.draw(st.sets(st.integers(0, len(axes) - 1), min_size=1, max_size=3)))
    matrices = listed(topology.sizes, axes)
    assert matrices is not None
    rows = scene_rows(topology, matrices, chosen)
    assert len(set(rows.scenes)) == len(rows.scenes)
    for n, row in enumerate(rows.of_matrix):
        placement = Placement(matrices.matrix(n))
        assert rows.scenes[row] == Scene.of(topology, placement, chosen)
        assert rows.number(placement, chosen) == row


@settings(max_examples=examples_of(100))
@given(draws())
def test_the_least_of_a_list_is_that_of_brute_force(data: Draws) -> None:
    """With forbidden and excluded matrices; ties go to the smallest."""
    drawn = data.draw(placements(24))
    levels, axes = drawn.level_sizes, drawn.axis_sizes
    matrices = listed(levels, axes)
    assert matrices is not None
    every = [matrices.matrix(n) for n in range(len(matrices))]
    terms = tuple(LevelTerm(j, (i,)) for i in range(len(axes)) for j in range(len(levels)))
    ticks = st.lists(
        st.sampled_from([0, 1, 2, 2**46, FORBIDDEN]), min_size=len(every), max_size=len(every)
    )
    costs = data.draw(st.lists(ticks, min_size=1, max_size=3))
    excluded = frozenset(data.draw(st.lists(st.sampled_from(every), max_size=2)))
    tables = tuple(
        CostTable(
            terms,
            {
                tuple(entry for row in matrix for entry in row): cost
                for matrix, cost in zip(every, column, strict=True)
                if cost < FORBIDDEN
            },
        )
        for column in costs
    )
    worst = data.draw(st.booleans())
    question = PlacementProblem(levels, axes, (), tables, worst, excluded)
    arrays = [np.array(column, dtype=np.int64) for column in costs]
    found, wanted = least(matrices, arrays, worst, excluded), oracle.best_matrix(question)
    assert (found.value, found.bound) == (wanted or (None, None))
    limit = data.draw(st.sampled_from([0, 1, 3, 2**47]))
    below = oracle.valid_matrices(replace(question, at_most=limit))
    near = at_most(matrices, arrays, worst, excluded, limit, len(every))
    assert (near.status, near.value) == (Status.COMPLETE, tuple(matrix for matrix, _ in below))
    if below:
        cut = at_most(matrices, arrays, worst, excluded, limit, len(below) - 1)
        dearest = max(below, key=lambda pair: (pair[1], pair[0]))[0]
        assert (cut.status, cut.value) == (
            Status.TRUNCATED,
            tuple(matrix for matrix, _ in below if matrix != dearest),
        )


@settings(max_examples=examples_of(25))
@given(problems(devices=16))
def test_a_solver_ranks_the_same(question: Problem) -> None:
    """Matrices, prices, programs, bounds: nothing tells which of the two has proposed."""
    by_list = p2smt.solve(question, top=3)
    with by_a_solver():
        by_solver = p2smt.solve(question, top=3)
    assert by_list.alternatives == by_solver.alternatives
    assert (by_list.status, by_list.bound_s) == (by_solver.status, by_solver.bound_s)
    assert by_list.physical_bound_s == by_solver.physical_bound_s
    assert by_list.ranking is by_solver.ranking


def wide() -> Problem:
    """512 devices on four levels, the inner two under several ports; six requests."""
    topology = cluster(("pod", 4, 1e9), ("rack", 4, 1e10), ("node", 4, 2e10), ("gpu", 8, 1e11))
    node = topology.levels[2]
    levels = (*topology.levels[:2], replace(node, link=replace(node.link, ports=4)))
    topology = replace(topology, levels=(*levels, topology.levels[3]))
    texts = ("dp=1GiB", "tp=64MiB*9", "cp=32MiB*8", "dp+cp=512MiB", "pp=1MiB*9", "cp+tp=2MiB*9")
    return ask(topology, "pp=4,dp=8,cp=4,tp=4", *texts, max_length=2)


def test_of_four_levels_and_six_requests_too() -> None:
    by_list = p2smt.solve(wide(), top=1)
    with by_a_solver():
        by_solver = p2smt.solve(wide(), top=1)
    assert by_list.status is Status.OPTIMAL
    assert by_list.alternatives == by_solver.alternatives
    assert by_list.bound_s == by_solver.bound_s


def test_z3_is_asked_whatever_could_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the cross-check of all that is found without it."""

    def made(*_: object) -> None:
        raise AssertionError("a list was made")

    monkeypatch.setattr(bound_table, "listed", made)
    topology = cluster(("node", 2, 1e9), ("gpu", 4, 1e10))
    found = p2smt.solve(ask(topology, "dp=4,tp=2", "dp=1MiB"), top=1, solver=Solver.Z3)
    assert found.status is Status.OPTIMAL

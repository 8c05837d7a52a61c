"""Rows of a cost table: those of all matrices, fewer under rules, and counted before they exist."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.cost.scene import Scene
from p2smt.errors import TooLarge
from p2smt.parallelism.placement import AxisRule, FixedEntry, Placement
from p2smt.search import bound_table as module
from p2smt.search.bound_table import scene_table
from p2smt.search.scene_columns import Columns, across_levels, fixed_values
from tests.oracles.placements import all_matrices, obeys
from tests.search.solve.test_solve_limits import cluster
from tests.strategies.draws import Draws, draws
from tests.strategies.topologies import placements, topologies
from tests.tiers import examples_of

Rules = list[AxisRule | FixedEntry]


def rules_on(axes: int, levels: int) -> st.SearchStrategy[Rules]:
    axis, level = st.integers(0, axes - 1), st.integers(0, levels - 1)
    rule = st.builds(AxisRule, axis, level, st.booleans()) | st.builds(
        FixedEntry, axis, level, st.sampled_from([1, 2, 3, 4])
    )
    return st.lists(rule, max_size=3)


@settings(max_examples=examples_of(150))
@given(draws())
def test_matrices_that_obey_have_their_rows_and_there_are_no_others(data: Draws) -> None:
    drawn = data.draw(placements(48))
    topology = data.draw(topologies(drawn.level_sizes))
    axes = drawn.axis_sizes
    chosen = sorted(data.draw(st.sets(st.integers(0, len(axes) - 1), min_size=1, max_size=3)))
    rules = data.draw(rules_on(len(axes), drawn.width))
    free, ruled = scene_table(topology, axes, chosen), scene_table(topology, axes, chosen, rules)
    assert ruled.terms == free.terms
    assert ruled.scenes.items() <= free.scenes.items()
    every = [Placement(matrix) for matrix in all_matrices(topology.sizes, axes)]
    assert free.scenes.keys() == {free.values(placement) for placement in every}
    for placement in every:
        scene = Scene.of(topology, placement, chosen)
        assert free.scenes[free.values(placement)] == scene
        if all(obeys(placement.matrix, rule) for rule in rules):
            assert ruled.scenes[ruled.values(placement)] == scene


@settings(max_examples=examples_of(150))
@given(draws())
def test_the_count_is_that_of_the_rows(data: Draws) -> None:
    drawn = data.draw(placements(48))
    axes = drawn.axis_sizes
    chosen = sorted(data.draw(st.sets(st.integers(0, len(axes) - 1), min_size=1, max_size=3)))
    exact = data.draw(st.tuples(*[st.booleans()] * drawn.width))
    rules = data.draw(rules_on(len(axes), drawn.width))
    columns = Columns(
        drawn.level_sizes, axes, tuple(chosen), exact, fixed_values(rules), across_levels(rules)
    )
    rows = {tuple(c.values for c in split) for split in columns.splits()}
    assert not columns.more_than(len(rows))
    if rows:
        assert columns.more_than(len(rows) - 1)


def large() -> p2smt.Topology:
    """Five levels with several ports: positions matter everywhere below the first."""
    switch = p2smt.LinkKind.SWITCH
    sizes = (("dc", 8), ("pod", 16), ("rack", 16), ("node", 16), ("gpu", 16))
    link = p2smt.Link(switch, (p2smt.Piece("one", 1e-6, 1e10),), ports=4)
    return p2smt.Topology("made", tuple(p2smt.Level(n, s, link) for n, s in sizes))


def test_too_many_rows_are_told_before_any_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: object) -> Scene:
        raise AssertionError("a scene was built")

    monkeypatch.setattr(module, "_scene", build)
    with pytest.raises(TooLarge, match="more than 50000 ways to lie on the levels; fix entries"):
        scene_table(large(), (16, 16, 16, 16, 8), (1, 2))


def test_what_the_error_advises_helps() -> None:
    fixed: Rules = [FixedEntry(axis, level, 1) for axis in (1, 2) for level in (0, 1)]
    inside: Rules = [AxisRule(axis, 1, inside=True) for axis in (1, 2)]
    choices: tuple[Rules, ...] = (fixed, inside)
    for rules in choices:
        table = scene_table(large(), (16, 16, 16, 16, 8), (1, 2), rules)
        assert 0 < len(table.scenes) < module.MAX_SCENES


def test_rules_that_exclude_each_other_leave_no_row() -> None:
    topology = cluster(("node", 4, 1e9), ("gpu", 8, 1e10))
    rules: Rules = [AxisRule(0, 0, inside=True), FixedEntry(0, 0, 2)]
    assert not scene_table(topology, (8, 4), (0,), rules).scenes

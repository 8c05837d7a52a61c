"""Prices of placements: those of the scene of each one, whichever was priced."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.collectives.dispatch import AnyKind
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.parallelism.matrices import matrices
from p2smt.parallelism.placement import Placement, as_matrix
from p2smt.training.search.prices import PlacedAxes, SceneCache, front
from tests.strategies.topologies import Case, cases
from tests.tiers import examples_of


@settings(max_examples=examples_of(100))
@given(cases(24), st.sampled_from(list(RequestKind)), st.integers(1, 2**20))
def test_each_placement_has_the_price_of_its_scene(
    case: Case, kind: RequestKind, payload_bytes: int
) -> None:
    topology, axes = case.topology, case.axes
    if kind is RequestKind.SEND:
        axes = axes[:1]
    sizes = case.placement.axis_sizes
    shared_cache = SceneCache(topology)
    placed = PlacedAxes.of(shared_cache, sizes, (), [axes])
    classes = set()
    for matrix in matrices(topology.sizes, sizes):
        scene = Scene.of(topology, Placement(as_matrix(matrix)), axes)
        found = placed.class_of(matrix)
        classes.add(found)
        number = placed.scenes[axes].each[found]
        expected = scene.fixed_time(kind, payload_bytes).seconds
        assert shared_cache.seconds(int(number), kind, payload_bytes) == expected
    assert classes == set(range(len(placed)))


@settings(max_examples=examples_of(30))
@given(cases(24))
def test_each_scene_is_priced_once(case: Case) -> None:
    asked: list[Scene] = []

    def seconds_of(scene: Scene, kind: AnyKind, payload_bytes: int) -> float:
        asked.append(scene)
        return float(payload_bytes if kind is RequestKind.ALL_REDUCE else 0)

    shared_cache = SceneCache(case.topology, seconds_of)
    for _ in range(2):
        placed = PlacedAxes.of(shared_cache, case.placement.axis_sizes, (), [case.axes])
        for number in placed.scenes[case.axes].numbers:
            assert shared_cache.seconds(number, RequestKind.ALL_REDUCE, 7) == 7.0
    assert len(asked) == len(set(asked)) == len(shared_cache)


@settings(max_examples=examples_of(100))
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=30))
def test_a_front_undercuts_all_others(rows: list[tuple[int, int, int]]) -> None:
    table = np.array(rows, dtype=np.float64)
    found = front(table).tolist()
    for i, row in enumerate(table):
        others = [j for j in found if j != i]
        beaten = any((table[j] <= row).all() for j in others)
        assert (i in found) is not beaten

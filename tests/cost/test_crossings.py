"""Crossings of uplinks: counted pair by pair, and in step with what the cost model loads."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import single_time
from p2smt.cost.loads.rings import crossings
from p2smt.parallelism.placement import IntArray
from tests.cluster.test_hosts import uneven
from tests.strategies.draws import Draws, draws

SPLITS = [(32,), (16, 2), (8, 4), (4, 4, 2)]


@st.composite
def ranks_of_uneven(draw: st.DrawFn) -> IntArray:
    """Any order of the devices of a cluster with three unequal leaves under two spines."""
    places = draw(st.permutations(sorted(uneven().places)))
    return np.array(places).reshape(draw(st.sampled_from(SPLITS)))


def connections(ranks: IntArray, axis: int, kind: RequestKind) -> list[tuple[int, int]]:
    """The connections of a request along one axis, written out."""
    found: list[tuple[int, int]] = []
    for line in np.moveaxis(ranks, axis, -1).reshape(-1, ranks.shape[axis]).tolist():
        if kind is RequestKind.SEND:
            found += pairwise(line)
        elif kind is RequestKind.ALL_TO_ALL:
            found += permutations(line, 2)
        else:
            nodes = dict.fromkeys(device // 2 for device in line)
            ring = [device for node in nodes for device in sorted(line) if device // 2 == node]
            found += zip(ring, [*ring[1:], ring[0]], strict=True)
    return found


@given(ranks_of_uneven(), st.sampled_from(RequestKind), draws())
def test_connections_are_counted_one_by_one(
    ranks: IntArray, kind: RequestKind, data: Draws
) -> None:
    topology, axis = uneven(), data.draw(st.integers(0, ranks.ndim - 1))
    found = crossings(topology, ranks, (axis,), kind)
    assert [level.shape for level in found] == [(2, 2), (2, 4), (2, 28)]
    for j, counted in enumerate(found):
        under = topology.devices_under(j)
        pairs = [(a // under, b // under) for a, b in connections(ranks, axis, kind)]
        entities = range(counted.shape[1])
        assert counted[0].tolist() == [sum(a == e != b for a, b in pairs) for e in entities]
        assert counted[1].tolist() == [sum(a != e == b for a, b in pairs) for e in entities]


@given(ranks_of_uneven(), draws())
def test_the_busiest_uplink_is_the_one_that_is_priced(ranks: IntArray, data: Draws) -> None:
    """A send's bottleneck carries as many messages as the busiest uplink of its level."""
    topology, axis = uneven(), data.draw(st.integers(0, ranks.ndim - 1))
    step = single_time(topology, ranks, (axis,), RequestKind.SEND, 2**20)
    if step.level is None or step.level > 1:
        return
    parts = topology.uplink_parts(step.level)
    assert parts is not None
    counts = crossings(topology, ranks, (axis,), RequestKind.SEND)[step.level].max(axis=0)
    assert step.load_bytes == pytest.approx(2**20 * (counts / np.array(parts)).max())

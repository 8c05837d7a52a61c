"""Costs device by device: the closed form on a matrix, every message on a rank list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.bounds import regular_model, step_model
from p2smt.cost.loads.footprint import regular_footprint
from p2smt.cost.loads.footprint_explicit import explicit_footprint, explicit_send
from p2smt.cost.loads.level_use import Along, Footprint
from p2smt.programs.parts import by_size
from tests.cost.steps import OPERATIONS, PAYLOADS, SHUFFLES, only, pieces, same, same_ways, steps
from tests.oracles import cost as oracle
from tests.strategies.topologies import Case, cases
from tests.tiers import examples_of

Walks = Sequence[Sequence[int]]
"""Groups of devices, each in the order in which a library walks through it."""


def cost_their_messages(
    topology: Topology,
    footprint: Footprint,
    walked: Walks,
    operations: Iterable[Operation],
    payload: float,
) -> None:
    for operation in operations:
        seconds = step_model(topology, footprint, operation).time(payload).seconds
        best, ways = oracle.best_seconds(topology, walked, operation, payload)
        if operation in (Collective.REDUCE, Collective.BROADCAST):
            # both directions of every port are charged, though a chain's ends use one
            assert seconds >= best * (1 - 1e-9), (operation, ways)
        else:
            assert same(seconds, best), (operation, ways)


def load_these_links(topology: Topology, footprint: Footprint, walked: Walks) -> None:
    for operation in (Collective.ALL_REDUCE, Collective.ALL_GATHER):
        time = step_model(topology, footprint, operation).time(997.0)
        if max(map(len, walked)) == 1:
            assert time.wire_s == 0
            continue
        way = Algorithm(time.algorithm)
        expected = oracle.level_seconds(topology, walked, operation, way, time.protocol, 997.0)
        assert time.level_wire_s == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=examples_of(100))
@given(cases(), PAYLOADS, st.booleans())
def test_device_by_device_agrees_with_the_closed_form(
    case: Case, payload: float, joins_nodes: bool
) -> None:
    """In device order it does not matter whether a library joins nodes."""
    for digits, grouping, groups in steps(case):
        footprint = explicit_footprint(case.topology, groups, joins_nodes)
        assert footprint.regular
        for operation in OPERATIONS:
            model = step_model(case.topology, footprint, operation)
            closed = regular_model(case.topology, digits, grouping, operation)
            assert same_ways(model, closed, payload), (grouping, operation)


@settings(max_examples=examples_of(100))
@given(cases())
def test_both_footprints_say_the_same_of_a_matrix(case: Case) -> None:
    for digits, grouping, groups in steps(case):
        closed = regular_footprint(case.topology, digits, grouping)
        explicit = explicit_footprint(case.topology, groups)
        assert (closed.nodes, closed.local) == (explicit.nodes, explicit.local)
        assert (closed.profiles, closed.chains) == (explicit.profiles, explicit.chains)
        for one, other in zip(closed.uses, explicit.uses, strict=True):
            for along in Along:
                assert same(one.carried(along), other.carried(along)), (one, other)
                assert same(one.drawn(along), other.drawn(along)), (one, other)


@settings(max_examples=examples_of(100))
@given(cases(), PAYLOADS, SHUFFLES)
def test_sends_of_any_rank_order_cost_their_messages(
    case: Case, payload: float, shuffle: Random
) -> None:
    devices = shuffle.sample(range(case.topology.devices), case.topology.devices)
    groups = np.array(devices).reshape(-1, case.placement.axis_sizes[0])
    footprint = explicit_send(case.topology, groups[:, :-1].ravel(), groups[:, 1:].ravel())
    time = step_model(case.topology, footprint, RequestKind.SEND).time(payload)
    best, _ = oracle.best_seconds(case.topology, groups.tolist(), RequestKind.SEND, payload)
    assert same(time.seconds, best)


@settings(max_examples=examples_of(100))
@given(cases(), PAYLOADS, st.booleans(), SHUFFLES)
def test_groups_of_any_rank_order_cost_their_messages(
    case: Case, payload: float, joins_nodes: bool, shuffle: Random
) -> None:
    """The groups need not be even: some members in one entity, one member in another."""
    devices = list(range(case.topology.devices))
    for order in (devices, shuffle.sample(devices, len(devices))):
        groups = np.array(order).reshape(-1, case.placement.axis_sizes[case.axes[0]])
        footprint = explicit_footprint(case.topology, groups, joins_nodes)
        walked = [oracle.walk(case.topology, row, joins_nodes) for row in groups.tolist()]
        cost_their_messages(case.topology, footprint, walked, OPERATIONS, payload)


@settings(max_examples=examples_of(60))
@given(cases(), st.sampled_from([Algorithm.RING, Algorithm.TREE]), st.booleans(), SHUFFLES)
def test_rings_and_trees_of_any_rank_order_load_these_links(
    case: Case, algorithm: Algorithm, joins_nodes: bool, shuffle: Random
) -> None:
    topology = only(case.topology, algorithm)
    devices = shuffle.sample(range(topology.devices), topology.devices)
    groups = np.array(devices).reshape(-1, case.placement.axis_sizes[case.axes[0]])
    footprint = explicit_footprint(topology, groups, joins_nodes)
    walked = [oracle.walk(topology, row, joins_nodes) for row in groups.tolist()]
    load_these_links(topology, footprint, walked)


@settings(max_examples=examples_of(150))
@given(cases(), PAYLOADS, st.booleans(), SHUFFLES)
def test_groups_of_several_sizes_share_links(
    case: Case, payload: float, joins_nodes: bool, shuffle: Random
) -> None:
    """All of them run at the same time, as one step by one algorithm."""
    topology = case.topology
    devices = shuffle.sample(range(topology.devices), topology.devices)
    groups = [row for row in pieces(devices, shuffle) if len(row) > 1]
    if not groups:
        return
    footprint = explicit_footprint(topology, by_size(groups), joins_nodes)
    assert footprint.mixed == (len({len(row) for row in groups}) > 1)
    walked = [oracle.walk(topology, row, joins_nodes) for row in groups]
    cost_their_messages(topology, footprint, walked, Collective, payload)


@settings(max_examples=examples_of(60))
@given(cases(), st.sampled_from([Algorithm.RING, Algorithm.TREE]), st.booleans(), SHUFFLES)
def test_rings_and_trees_of_several_sizes_load_these_links(
    case: Case, algorithm: Algorithm, joins_nodes: bool, shuffle: Random
) -> None:
    topology = only(case.topology, algorithm)
    devices = shuffle.sample(range(topology.devices), topology.devices)
    groups = [row for row in pieces(devices, shuffle) if len(row) > 1]
    if not groups:
        return
    footprint = explicit_footprint(topology, by_size(groups), joins_nodes)
    walked = [oracle.walk(topology, row, joins_nodes) for row in groups]
    load_these_links(topology, footprint, walked)


def test_a_larger_group_and_a_smaller_one_on_one_uplink() -> None:
    """Rings of 2 and of 4 over two entities of one port: 1/2 and 3/4 of the payload, each way."""
    switch = Link(LinkKind.SWITCH, (Piece("simple", 0.0, 1.0),))
    topology = Topology("t", (Level("l0", 2, switch), Level("l1", 4, switch)), (Algorithm.RING,))
    groups = by_size([(0, 4), (1, 2, 5, 6)])
    footprint = explicit_footprint(topology, groups)
    time = step_model(topology, footprint, Collective.ALL_GATHER).time(8.0)
    assert time.level_wire_s[0] == pytest.approx(8 * (1 / 2 + 3 / 4))
    assert time.level_wire_s[1] == pytest.approx(8 * 3 / 4)


def test_a_chain_is_charged_in_the_worse_direction() -> None:
    """Half-way ties on a ring go forward, so a reduce may load other links than a broadcast."""
    ring = Link(LinkKind.RING, (Piece("simple", 0.0, 1.0),))
    pairs = Link(LinkKind.SWITCH, (Piece("simple", 0.0, 1e6),))
    topology = Topology("t", (Level("l0", 6, ring), Level("l1", 2, pairs)), (Algorithm.RING,))
    groups = [[2, 9], [1, 4], [3, 10], [5, 6], [0, 8], [7, 11]]
    footprint = explicit_footprint(topology, np.array(groups))
    loads = {Collective.REDUCE: 3.0, Collective.BROADCAST: 2.0}
    for operation, load in loads.items():
        assert oracle.best_seconds(topology, groups, operation, 1.0)[0] == load
        assert step_model(topology, footprint, operation).time(1.0).seconds == 3.0

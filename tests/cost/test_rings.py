"""Rings in the order of a communicator, and rings side by side: loads that are counted by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.bounds import regular_model, single_time, step_model
from p2smt.cost.loads.footprint import Digits, regular_footprint
from p2smt.cost.loads.footprint_explicit import explicit_footprint
from p2smt.cost.loads.rings import node_order, parallel_rings
from p2smt.programs.program import Grouping
from tests.strategies.clusters import switch

ALL_REDUCE = RequestKind.ALL_REDUCE
RING_ONLY = ((Collective.ALL_REDUCE, Algorithm.RING),)


def level(name: str, size: int, fabric: str, rate: float = 1.0, latency: float = 0.0) -> Level:
    return Level(name, size, switch(rate, latency, fabric=fabric))


def rings(*levels: Level) -> Topology:
    return Topology("t", levels, (Algorithm.RING,))


TWO_NODES = rings(level("node", 2, "ethernet"), level("gpu", 4, "nvlink4", 1e9))
TWO_LEAVES = rings(
    level("leaf", 2, "infiniband"),
    level("node", 4, "infiniband", 100.0),
    level("gpu", 2, "nvlink4", 1e9),
)


def seconds(topology: Topology, ranks: list[int], joins_nodes: bool) -> float:
    """An all-reduce of 8 bytes over all ranks."""
    footprint = explicit_footprint(topology, np.array([ranks]), joins_nodes)
    return step_model(topology, footprint, Collective.ALL_REDUCE).time(8).seconds


def test_an_alternating_list_crosses_the_uplink_four_times() -> None:
    """Ranks 0, 4, 1, 5, ..: four runs under each node, so four times the bytes of a sorted list."""
    alternating = [0, 4, 1, 5, 2, 6, 3, 7]
    assert seconds(TWO_NODES, list(range(8)), False) == 2 * 7 / 8 * 8
    assert seconds(TWO_NODES, alternating, False) == 4 * seconds(TWO_NODES, list(range(8)), False)
    pairs = [0, 1, 4, 5, 2, 3, 6, 7]
    assert seconds(TWO_NODES, pairs, False) == 2 * seconds(TWO_NODES, list(range(8)), False)


def test_a_rotated_or_reversed_list_is_a_sorted_one() -> None:
    for ranks in ([2, 3, 4, 5, 6, 7, 0, 1], [7, 6, 5, 4, 3, 2, 1, 0], [2, 0, 3, 1, 4, 6, 7, 5]):
        assert seconds(TWO_NODES, ranks, False) == seconds(TWO_NODES, list(range(8)), False)


def test_a_library_that_joins_nodes_walks_through_each_at_once() -> None:
    for ranks in ([0, 4, 1, 5, 2, 6, 3, 7], [7, 0, 6, 1, 5, 2, 4, 3]):
        assert seconds(TWO_NODES, ranks, True) == seconds(TWO_NODES, list(range(8)), True)


def test_the_library_says_whether_nodes_are_joined() -> None:
    """Gloo's ring follows the ranks: four crossings of the uplink; NCCL's passes node by node."""
    alternating, in_order = np.array([0, 4, 1, 5, 2, 6, 3, 7]), np.arange(8)

    def wire(library: str, ranks: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
        topology = replace(TWO_NODES.under(library), overrides=RING_ONLY)
        return single_time(topology, ranks, [0], ALL_REDUCE, 2**30).level_wire_s[0]

    assert wire("gloo", alternating) == pytest.approx(4 * wire("gloo", in_order))
    assert wire("nccl-2.12", alternating) == wire("nccl-2.12", in_order)


def test_above_the_nodes_their_order_counts_for_every_library() -> None:
    """Nodes 0 4 1 5 2 6 3 7, four under each of two leaves: the ring leaves a leaf four times."""
    alternating = [d for node in (0, 4, 1, 5, 2, 6, 3, 7) for d in (2 * node, 2 * node + 1)]
    in_order = list(range(16))
    for joins_nodes in (True, False):
        once = seconds(TWO_LEAVES, in_order, joins_nodes)
        assert once == 2 * 15 / 16 * 8
        assert seconds(TWO_LEAVES, alternating, joins_nodes) == 4 * once


def test_nodes_are_numbered_by_first_appearance() -> None:
    groups = np.array([[6, 1, 7, 0, 3, 2], [0, 5, 1, 4, 3, 2]])
    assert node_order(groups, 4, by_device=True).tolist() == [
        [6, 7, 0, 1, 2, 3],
        [0, 1, 2, 3, 4, 5],
    ]
    assert node_order(groups, 4, by_device=False).tolist() == [
        [6, 7, 1, 0, 3, 2],
        [0, 1, 3, 2, 5, 4],
    ]


def test_latencies_are_those_of_the_edges_in_their_order() -> None:
    """Seven edges of a chain cross the network, where a sorted list has one that does."""
    slow = rings(level("node", 2, "ethernet", 1e9, 10.0), level("gpu", 4, "nvlink4", 1e9, 1.0))
    alternating = [0, 4, 1, 5, 2, 6, 3, 7]
    assert seconds(slow, list(range(8)), False) == pytest.approx(2 * (10 + 6))
    assert seconds(slow, alternating, False) == pytest.approx(2 * 7 * 10)
    assert seconds(slow, alternating, True) == pytest.approx(2 * (10 + 6))


def test_each_group_counts_its_own_runs() -> None:
    """Two groups of four: one alternates between the nodes, the other is in order."""
    ranks = np.array([[0, 4, 1, 5], [2, 3, 6, 7]])
    footprint = explicit_footprint(TWO_NODES, ranks, joins_nodes=False)
    uplink = footprint.uses[0]
    assert (uplink.ring, uplink.path) == (2 + 1, 2 + 1)
    assert uplink.ring_drawn == 2 / 2
    assert footprint.chains == ((1, 2), (3, 0))
    assert not footprint.regular


# Rings side by side -----------------------------------------------------------------------


def siblings(kind: LinkKind, size: int, torus: tuple[int, ...] = (), nodes: int = 1) -> Topology:
    link = Link(kind, (Piece("simple", 0.0, 1.0),), torus=torus, fabric="xgmi")
    return rings(level("node", nodes, "infiniband", 1e9), Level("gpu", size, link))


def ring_load(topology: Topology, digits: tuple[Digits, ...], inner: int = 1) -> float:
    (use,) = [
        use
        for use in regular_footprint(topology, digits, Grouping(0, inner)).uses
        if topology.levels[use.level].name == "gpu"
    ]
    return use.ring


@pytest.mark.parametrize(
    ("topology", "members", "load"),
    [
        (siblings(LinkKind.FULL_MESH, 8), (8, 1), 1 / 7),
        (siblings(LinkKind.FULL_MESH, 8), (4, 1), 1 / 3),
        (siblings(LinkKind.FULL_MESH, 8), (4, 2), 1 / 3),
        (siblings(LinkKind.FULL_MESH, 8), (2, 1), 1.0),
        (siblings(LinkKind.RING, 8), (8, 1), 1 / 2),
        (siblings(LinkKind.RING, 3), (3, 1), 1 / 2),
        (siblings(LinkKind.RING, 2), (2, 1), 1.0),
        (siblings(LinkKind.RING, 8), (4, 1), 1.0),
        (siblings(LinkKind.RING, 8), (4, 2), 2.0),
        (siblings(LinkKind.TORUS, 16, (4, 4)), (16, 1), 1 / 4),
        (siblings(LinkKind.TORUS, 64, (4, 4, 4)), (64, 1), 1 / 6),
        (siblings(LinkKind.TORUS, 8, (4, 2)), (8, 1), 1 / 2),
        (siblings(LinkKind.TORUS, 4, (2, 2)), (4, 1), 1 / 2),
        (siblings(LinkKind.TORUS, 16, (4, 4)), (4, 4), 1.0),
    ],
)
def test_rings_that_run_at_once(topology: Topology, members: tuple[int, int], load: float) -> None:
    """What does not close its level keeps one ring: four of a ring of eight, a row of a torus."""
    assert ring_load(topology, ((), (members,))) == pytest.approx(load)


def test_a_mesh_that_rings_pass_through_is_used_evenly() -> None:
    """Of two nodes: a chain through 8 siblings has 7 of their 56 links, in any order."""
    topology = siblings(LinkKind.FULL_MESH, 8, nodes=2)
    assert ring_load(topology, (((2, 1),), ((8, 1),)), 2) == pytest.approx(1 / 8)


def test_two_mi300x_nodes_use_all_links() -> None:
    """8 GiB: cards take 2 x 15/16 x 8 GiB / 400 GB/s = 40 ms, a mesh of 64 GB/s links 31 ms."""
    mesh = Link(LinkKind.FULL_MESH, (Piece("simple", 0.0, 64e9),), fabric="xgmi")
    cards = Link(LinkKind.SWITCH, (Piece("simple", 0.0, 50e9),), ports=8, fabric="roce")
    topology = rings(Level("node", 2, cards), Level("gpu", 8, mesh))
    model = regular_model(topology, (((2, 1),), ((8, 1),)), Grouping(0, 2), Collective.ALL_REDUCE)
    time = model.time(2.0**33)
    assert time.level == 0
    assert time.level_wire_s == pytest.approx([15 / 8 * 2**33 / 400e9, 15 / 8 * 2**33 / 8 / 64e9])


def test_a_send_keeps_to_its_own_link() -> None:
    topology = siblings(LinkKind.FULL_MESH, 8)
    time = single_time(topology, np.arange(8), [0], RequestKind.SEND, 8)
    assert time.seconds == 8.0


@pytest.mark.parametrize("dims", [(3, 3), (3, 4), (4, 4), (5, 3)])
def test_a_torus_falls_apart_into_cycles(dims: tuple[int, int]) -> None:
    """Two cycles through all siblings that share no link, each both ways: four rings."""
    assert parallel_rings(Level("t", dims[0] * dims[1], _torus(dims))) == 4
    assert next(_two_cycles(dims), None)


@pytest.mark.parametrize("dims", [(2, 2), (4, 2), (2, 5)])
def test_a_dimension_of_two_adds_no_rings(dims: tuple[int, int]) -> None:
    assert parallel_rings(Level("t", dims[0] * dims[1], _torus(dims))) == 2
    assert next(_cycles(dims, frozenset()), None)


def _torus(dims: tuple[int, int]) -> Link:
    return Link(LinkKind.TORUS, (Piece("simple", 0.0, 1.0),), torus=dims)


Cycle = tuple[tuple[int, int], ...]
Links = frozenset[frozenset[tuple[int, int]]]


def _neighbours(dims: tuple[int, int], at: tuple[int, int]) -> set[tuple[int, int]]:
    (x, y), (a, b) = at, dims
    return {((x + 1) % a, y), ((x - 1) % a, y), (x, (y + 1) % b), (x, (y - 1) % b)} - {at}


def _cycles(dims: tuple[int, int], used: Links, way: Cycle = ((0, 0),)) -> Iterator[Cycle]:
    """Cycles from the origin through all siblings over links that are not in use."""
    closes = len(way) == dims[0] * dims[1]
    for other in sorted(_neighbours(dims, way[-1])):
        if frozenset({way[-1], other}) in used:
            continue
        if closes and other == way[0]:
            yield way
        elif not closes and other not in way:
            yield from _cycles(dims, used, (*way, other))


def _two_cycles(dims: tuple[int, int]) -> Iterator[tuple[Cycle, Cycle]]:
    for first in _cycles(dims, frozenset()):
        links = frozenset(frozenset(edge) for edge in pairwise((*first, first[0])))
        for second in _cycles(dims, links):
            yield first, second

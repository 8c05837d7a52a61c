"""Double binary trees: their edges as NCCL draws them, and the loads that they leave on links."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective
from p2smt.cost.bounds import regular_model, step_model
from p2smt.cost.loads.footprint import Digits, regular_footprint
from p2smt.cost.loads.footprint_explicit import explicit_footprint
from p2smt.cost.loads.rings import double_binary_tree
from p2smt.programs.program import Grouping
from tests.oracles.loads import two_trees


def switched(*sizes: int, nodes: int) -> Topology:
    """A hierarchy of switches, without latency and with one byte/s; nodes at this level."""
    levels = []
    for j, size in enumerate(sizes):
        fabric = "infiniband" if j <= nodes else "nvlink4"
        link = Link(LinkKind.SWITCH, (Piece("simple", 0.0, 1.0),), fabric=fabric)
        levels.append(Level(f"l{j}", size, link))
    return Topology("t", tuple(levels), (Algorithm.TREE,))


def whole(topology: Topology) -> tuple[tuple[Digits, ...], Grouping]:
    """The digits of one axis over all devices, and its one group."""
    digits = tuple(((size, 1),) if size > 1 else () for size in topology.sizes)
    return digits, Grouping(0, sum(size > 1 for size in topology.sizes))


def tree_loads(topology: Topology) -> list[float]:
    """The trees' load at each level for one group of all devices."""
    closed = regular_footprint(topology, *whole(topology)).uses
    explicit = explicit_footprint(topology, np.arange(topology.devices)[None]).uses
    assert [use.tree for use in closed] == pytest.approx([use.tree for use in explicit])
    return [use.tree for use in closed]


def test_the_trees_are_those_that_nccl_draws() -> None:
    """The two drawings in src/graph/trees.cc, read off: an even and an odd number of nodes."""
    first = [-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 8, 10]
    mirrored = [1, 3, 1, 11, 5, 7, 5, 3, 9, 7, 9, -1]
    assert [tree.tolist() for tree in double_binary_tree(12)] == [first, mirrored]
    first = [-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8]
    shifted = [9, -1, 3, 5, 3, 9, 7, 5, 7, 1, 11, 0, 11]
    assert [tree.tolist() for tree in double_binary_tree(13)] == [first, shifted]


@pytest.mark.parametrize("nodes", [*range(1, 40), 63, 64, 65, 127, 128, 1000])
def test_trees_span_the_nodes_and_are_low(nodes: int) -> None:
    edges: set[tuple[int, int, bool]] = set()
    for parent in double_binary_tree(nodes):
        at, hops = np.arange(nodes), 0
        while (parent[at] >= 0).any():
            at, hops = np.where(parent[at] < 0, at, parent[at]), hops + 1
        assert len(set(at.tolist())) == 1
        assert hops <= math.ceil(math.log2(nodes)) if nodes > 1 else hops == 0
        assert np.bincount(parent[parent >= 0], minlength=1).max(initial=0) <= 2
        edges |= {(p, c, len(edges) > nodes - 2) for c, p in enumerate(parent.tolist()) if p >= 0}
    assert sorted((p, c) for p, c, _ in edges) == sorted(two_trees(nodes))


@pytest.mark.parametrize(
    ("sizes", "nodes", "loads"),
    [
        ((2,), 0, [1.0]),
        ((3,), 0, [1.5]),
        ((4,), 0, [2.0]),
        ((5,), 0, [2.0]),
        ((100,), 0, [2.0]),
        ((2, 8), 0, [1.0, (2 * 7 + 1.0) / 8]),
        ((3, 8), 0, [1.5, (2 * 7 + 1.5) / 8]),
        ((4, 8), 0, [2.0, 2.0]),
        ((32, 8), 0, [2.0, 2.0]),
        ((2, 2, 4), 0, [1.0, 2 * 7 / 8 + 1 / 2, (2 * 7 + 1.0) / 8]),
        ((2, 2), 1, [2.0, 2.0]),
        ((3, 6), 1, [6.0, 2.0]),
        ((3, 11), 1, [8.0, 2.0]),
        ((3, 6, 8), 1, [6.0, 2.0, 2.0]),
        ((8,), -1, [2.0]),
        ((2,), -1, [1.0]),
        ((1, 8), 0, [2.0]),
        ((1, 2, 4), 0, [1.0, 2.0]),
    ],
)
def test_loads_of_links(sizes: tuple[int, ...], nodes: int, loads: list[float]) -> None:
    """In payloads per direction.

    Two nodes: each tree is one edge that carries half up and half down.  Four: an inner node has
    three edges in one tree, and is a leaf with one in the other.  Three leaves of six nodes: the
    trees have 34 edges, of which 12 leave the middle leaf.  Eight members of a node: its chain
    starts at each of them in turn, so a member sends 7/8 up and 7/8 down, and 1/8 of what leaves
    the node.
    """
    assert tree_loads(switched(*sizes, nodes=nodes)) == pytest.approx(loads)


def test_seven_of_fifteen_nodes_under_one_leaf() -> None:
    """Ranks that go back and forth between leaves: the edges out of one, counted by hand.

    In it are nodes 0, 1, 2, 4, 5, 10 and 14.  Tree 0 is 0-8 8-4 8-12 4-2 4-6 12-10 12-14 2-1 2-3
    6-5 6-7 10-9 10-11 14-13; out of the leaf go all but 4-2, 2-1, 8-12 and 6-7: ten.  Tree 1 has
    every number one higher, and 0 after 14: 1-9 9-5 9-13 5-3 5-7 13-11 13-0 3-2 3-4 7-6 7-8 11-10
    11-12 0-14; not out of it go 9-13, 13-11, 7-6, 7-8, 11-12 and 0-14, the other eight do.
    """
    inside = [0, 1, 2, 4, 5, 10, 14]
    topology = switched(3, 7, nodes=1)
    others = [7 + i for i in range(8)]
    row = [inside.index(i) if i in inside else others.pop() for i in range(15)]
    footprint = explicit_footprint(topology, np.array([row]))
    assert footprint.uses[0].tree == (10 + 8) / 2


def test_an_all_reduce_by_trees_takes_its_worst_load() -> None:
    topology = switched(3, 6, 8, nodes=1)
    time = regular_model(topology, *whole(topology), Collective.ALL_REDUCE).time(10.0)
    assert (time.algorithm, time.wire_s, time.level) == ("tree", 60.0, 0)
    broadcast = regular_model(topology, *whole(topology), Collective.BROADCAST).time(10.0)
    assert (broadcast.algorithm, broadcast.wire_s) == ("tree", 10.0)


def test_groups_that_share_a_card_add_up() -> None:
    """Eight groups of one member per node on four cards: two on each, 2.0 payloads a group."""
    topology = switched(4, 8, nodes=0)
    node = replace(topology.levels[0], link=replace(topology.levels[0].link, ports=4))
    shared = replace(topology, levels=(node, topology.levels[1]))
    footprint = regular_footprint(shared, (((4, 1),), ()), Grouping(0, 1))
    assert footprint.uses[0].tree == 4.0
    assert (footprint.nodes, footprint.local) == (4, 1)


def test_a_list_that_mixes_leaves_loads_the_outer_switch_more() -> None:
    """Two leaves of four nodes: 4 of the 14 edges join the halves, 8 an even to an odd node.

    Tree 0 is 0-4 4-2 4-6 2-1 2-3 6-5 6-7, tree 1 its mirror 7-3 3-5 3-1 5-6 5-4 1-2 1-0: the halves
    are joined by 0-4, 4-2, 7-3 and 3-5; odd to even are the four edges at the leaves of each.
    """
    topology = switched(2, 4, nodes=1)
    mixed = np.array([[0, 4, 1, 5, 2, 6, 3, 7]])
    times = [
        step_model(topology, explicit_footprint(topology, row), Collective.ALL_REDUCE).time(8.0)
        for row in (np.sort(mixed), mixed)
    ]
    assert [time.level_wire_s[0] for time in times] == [16.0, 32.0]

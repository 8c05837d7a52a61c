"""No program and no schedule beats the links: flows over all ways, schedules, and known numbers."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise, permutations, product
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import priced_bound_s
from p2smt.cost.link_bounds import bare_links, lines_bound_s, link_bound_s
from p2smt.cost.loads.footprint import digits_of
from p2smt.fabric.fabric_file import fabric_of_levels
from p2smt.parallelism.placement import Placement
from p2smt.synthesis.bounds import rate_bound
from tests.cost.test_bounds import PAYLOADS, at_most, cluster, with_link
from tests.oracles.link_flows import Demand, least_s, network_of
from tests.strategies.topologies import Case, cases
from tests.tiers import but_the_first, examples_of

ALL, SCATTER, GATHER = RequestKind.ALL_REDUCE, RequestKind.REDUCE_SCATTER, RequestKind.ALL_GATHER
TO_ALL, SEND = RequestKind.ALL_TO_ALL, RequestKind.SEND
Matrix = tuple[tuple[int, ...], ...]


def bound(topology: Topology, matrix: Matrix, kind: RequestKind, payload: int = 120) -> float:
    """The bound of a request along the first axis."""
    return link_bound_s(topology, digits_of(Placement(matrix), [0]), kind, payload)


@settings(max_examples=examples_of(400))
@given(cases(), PAYLOADS)
def test_the_links_take_no_longer_than_any_price(case: Case, payload: int) -> None:
    digits = digits_of(case.placement, case.axes)
    for kind in RequestKind:
        links = link_bound_s(case.topology, digits, kind, payload)
        assert at_most(links, priced_bound_s(case.topology, digits, kind, payload)), kind
        twice = link_bound_s(case.topology, digits, kind, 2 * payload)
        assert twice == pytest.approx(2 * links, rel=1e-12)


@settings(max_examples=examples_of(200))
@given(cases(), st.sampled_from(RequestKind))
def test_neither_latency_nor_algorithm_counts(case: Case, kind: RequestKind) -> None:
    digits = digits_of(case.placement, case.axes)
    slow = [
        replace(
            level,
            link=replace(
                level.link, pieces=tuple(replace(p, latency_s=9.0) for p in level.link.pieces)
            ),
        )
        for level in case.topology.levels
    ]
    other = replace(case.topology, levels=tuple(slow), algorithms=(Algorithm.RING,), overrides=())
    expected = link_bound_s(case.topology, digits, kind, 1000)
    assert link_bound_s(other, digits, kind, 1000) == expected


# Every schedule: flows over all ways at once ------------------------------------------------


def hardware(topology: Topology) -> Topology:
    """Without what the flows do not know: switches that reduce, caps on rings and meshes."""
    levels = []
    for level in topology.levels:
        link = replace(level.link, in_switch_members=0, measured=())
        if link.kind is not LinkKind.SWITCH:
            link = replace(link, device_bandwidth_bytes_per_s=None)
        levels.append(replace(level, link=link))
    return replace(topology, levels=tuple(levels))


def demands_of(groups: list[list[int]], kind: RequestKind) -> list[Demand]:
    """What must come from which device, per payload byte."""
    if kind is GATHER:
        return [
            (a, tuple(b for b in group if b != a), 1 / len(group))
            for group in groups
            for a in group
        ]
    if kind is TO_ALL:
        pairs = [pair for group in groups for pair in permutations(group, 2)]
        return [(a, (b,), 1 / len(groups[0])) for a, b in pairs]
    return [(a, (b,), 1.0) for group in groups for a, b in pairwise(group)]


def groups_of(case: Case) -> list[list[int]]:
    return [list(map(int, group)) for group in case.placement.groups(case.axes)]


@settings(max_examples=examples_of(250))
@given(cases(8))
def test_no_flow_over_all_ways_at_once_is_faster(case: Case) -> None:
    """A reduce-scatter is an all-gather backwards; both after each other are an all-reduce."""
    topology, digits = hardware(case.topology), digits_of(case.placement, case.axes)
    groups = groups_of(case)
    assume(len(groups[0]) > 1)
    network = network_of(topology)
    for kind in (GATHER, TO_ALL, SEND):
        least = least_s(network, demands_of(groups, kind)) * 1000
        assert at_most(link_bound_s(topology, digits, kind, 1000), least), kind
        if kind is GATHER:
            assert at_most(link_bound_s(topology, digits, SCATTER, 1000), least)
            assert at_most(link_bound_s(topology, digits, ALL, 1000), 2 * least)
        else:
            lines = np.array(groups)
            assert at_most(lines_bound_s(topology, lines, kind, 1000), least)


@settings(max_examples=examples_of(100))
@given(cases(8), st.integers(0, 2**32))
def test_ranks_in_any_order_are_bounded_too(case: Case, seed: int) -> None:
    topology = hardware(case.topology)
    devices = list(range(math.prod(topology.sizes)))
    Random(seed).shuffle(devices)
    groups = [[devices[i] for i in group] for group in groups_of(case)]
    assume(len(groups[0]) > 1)
    for kind in (TO_ALL, SEND):
        least = least_s(network_of(topology), demands_of(groups, kind)) * 1000
        assert at_most(lines_bound_s(topology, np.array(groups), kind, 1000), least)


def random_all_reduce(topology: Topology, groups: list[list[int]], seed: int, parts: int) -> float:
    """Busy seconds of the worst link of a random schedule, for a byte of payload.

    For each part of it, sums meet two at a time by way of any devices, and go back the same way.
    """
    network, dice = network_of(topology), Random(seed)
    ways = {edge: n for n, edge in enumerate(network.edges)}
    near: dict[int, list[int]] = {}
    for a, b in network.edges:
        near.setdefault(a, []).append(b)
    load = defaultdict[object, float](float)

    def send(a: int, b: int) -> None:
        while a != b:
            there = (a, b) in ways and dice.random() < 0.8
            step = b if there else dice.choice(near[a])
            for one in ((a, step), (step, a)):  # to the sum, and the sum back
                for name in network.loads[ways[one]]:
                    load[name] += 1 / parts
            a = step

    for group in groups * parts:
        holders = list(group)
        while len(holders) > 1:
            dice.shuffle(holders)
            send(holders.pop(), holders[0])
    return max(count / network.rates[name] for name, count in load.items())


@settings(max_examples=examples_of(300))
@given(cases(9), st.integers(0, 2**32), st.integers(1, 8))
def test_no_random_schedule_is_faster(case: Case, seed: int, parts: int) -> None:
    topology, groups = hardware(case.topology), groups_of(case)
    assume(len(groups[0]) > 1)
    seconds = random_all_reduce(topology, groups, seed, parts)
    links = link_bound_s(topology, digits_of(case.placement, case.axes), ALL, 1)
    assert at_most(links, seconds)


# Programs that run at once, each with a part of the payload ----------------------------------


def ring_loads(dims: tuple[int, ...], order: tuple[int, ...], share: float) -> dict[object, float]:
    """Links of a torus loaded by rings along one dimension after the other, and back.

    A share of the payload is reduce-scattered along the dimensions in this order, then gathered,
    each half of it round in one direction.
    """
    load = defaultdict[object, float](float)
    for d in order:
        length = dims[d]
        for device in product(*map(range, dims)):
            for way in (1, -1):
                load[device, d, way] += share * 2 * (length - 1) / length / 2
        share /= length
    return load


def test_rotated_programs_on_a_torus_meet_the_links_and_do_not_beat_them() -> None:
    """Of a payload in three parts each takes the dimensions in another order."""
    topology, matrix = load_topology("tpu-v5p:1"), ((1, 64),)
    dims, rate = (4, 4, 4), 100e9
    size = 3 * 2**20
    load = defaultdict[object, float](float)
    for first in range(3):
        order = (first, (first + 1) % 3, (first + 2) % 3)
        for link, part in ring_loads(dims, order, size / 3).items():
            load[link] += part
    rotated_s = max(load.values()) / rate
    links_s = bound(topology, matrix, ALL, size)
    assert links_s == pytest.approx(rotated_s)
    single_s = max(ring_loads(dims, (0, 1, 2), size).values()) / rate
    assert links_s < single_s / 2
    assert links_s < priced_bound_s(topology, digits_of(Placement(matrix), [0]), ALL, size)


CERTIFIED = [
    *(("all-gather", name) for name in ("dgx1-v100:1", "tpu-v5p:1", "mi300x:1", "dgx-a100:1")),
    *(("all-reduce", name) for name in ("mi300x:1", "dgx-a100:1")),
    ("all-to-all", "dgx-a100:1"),
]


@pytest.mark.parametrize("case", but_the_first(*CERTIFIED), ids="-".join)
def test_certified_rates_are_no_faster(case: tuple[str, str]) -> None:
    """Rounds a chunk that no schedule of the same fabric beats, by exact prices."""
    collective, name = case
    topology, kind = load_topology(name), RequestKind(collective)
    fabric = fabric_of_levels(topology)
    assert fabric.unit is not None
    whole = 1 if kind is ALL else fabric.ranks  # chunks are a rank's, and an all-reduce's in all
    certified_s = rate_bound(fabric, collective, None).value / whole / fabric.unit * 10**9
    assert at_most(bound(bare_links(topology), (topology.sizes,), kind, 10**9), float(certified_s))


# Known numbers: 1 byte/s on every link, 120 bytes ------------------------------------------


def joined(kind: LinkKind, size: int, torus: tuple[int, ...] = (), outer: int = 1) -> Topology:
    """Entities of devices in a ring, torus or mesh; ``outer`` of them under a switch."""
    one = (Piece("simple", 5.0, 1.0),)
    levels = (
        Level("o", outer, Link(LinkKind.SWITCH, one)),
        Level("i", size, Link(kind, one, torus=torus)),
    )
    return Topology("t", levels)


def alone(*row: int) -> Matrix:
    return ((1, *row[:1]), (1, *row[1:])) if len(row) > 1 else ((1, *row),)


@pytest.mark.parametrize(
    ("topology", "matrix", "kind", "seconds"),
    [
        (joined(LinkKind.RING, 8), alone(8), ALL, 2 * 7 * 120 / 16),
        (joined(LinkKind.RING, 8), alone(8), GATHER, 7 * 120 / 16),
        (joined(LinkKind.RING, 8), alone(4, 2), ALL, 2 * 3 * 120 / 4),  # two groups, blocks of two
        (joined(LinkKind.RING, 8), alone(8), TO_ALL, 128 / 8 * 120 / 16),
        (joined(LinkKind.RING, 8), alone(8), SEND, 120 / 2),
        (joined(LinkKind.TORUS, 64, (4, 4, 4)), alone(64), ALL, 2 * 63 * 120 / (64 * 6)),
        (joined(LinkKind.TORUS, 64, (4, 4, 4)), alone(4, 16), ALL, 2 * 3 * 120 / 8),
        (joined(LinkKind.TORUS, 64, (4, 4, 4)), alone(64), TO_ALL, 64 * 120 / 128),
        (joined(LinkKind.TORUS, 16, (2, 8)), alone(16), ALL, 2 * 15 * 120 / (16 * 3)),
        (joined(LinkKind.FULL_MESH, 4), alone(4), ALL, 2 * 3 * 120 / 12),
        (joined(LinkKind.FULL_MESH, 4), alone(2, 2), ALL, 120 / 2),  # half by way of the others
        (joined(LinkKind.FULL_MESH, 4), alone(4), TO_ALL, 120 / 4),
        (joined(LinkKind.FULL_MESH, 4, outer=2), ((1, 4), (2, 1)), ALL, 2 * 6 * 120 / (24 + 1.5)),
        (joined(LinkKind.RING, 4, outer=2), ((2, 4),), ALL, 120.0),  # the uplinks
        (joined(LinkKind.RING, 8, outer=2), ((1, 8), (2, 1)), TO_ALL, 32 / (32 + 4) * 120),
        (joined(LinkKind.FULL_MESH, 4, outer=2), ((1, 4), (2, 1)), TO_ALL, 6 / (24 + 1) * 120),
    ],
)
def test_known_bounds(
    topology: Topology, matrix: Matrix, kind: RequestKind, seconds: float
) -> None:
    assert bound(topology, matrix, kind) == pytest.approx(seconds)


def test_ports_draw_and_shared_uplinks() -> None:
    topology = cluster(2, 4)
    shared, whole = ((2, 1), (1, 4)), ((2, 4),)
    assert bound(topology, shared, ALL) == 4 * 2 * 60
    assert bound(with_link(topology, 0, ports=4), shared, ALL) == 2 * 60
    wide = with_link(topology, 0, ports=400, device_bandwidth_bytes_per_s=0.5 + 0.5)
    wide = with_link(wide, 1, ports=400)
    assert bound(wide, shared, ALL) == 120
    assert bound(wide, whole, ALL) == 120 / 4
    assert bound(wide, whole, SEND) == 120 / 4  # any device may take a part over the uplink


def test_switches_that_reduce_halve_what_leaves() -> None:
    plain = cluster(8)
    reducing = with_link(plain, 0, in_switch_members=5)
    assert bound(plain, ((8,),), ALL) == 2 * 7 / 8 * 120
    assert bound(reducing, ((8,),), ALL) == 120
    assert bound(reducing, ((2,), (4,)), ALL) == 120
    assert bound(reducing, ((8,),), GATHER) == 7 / 8 * 120


def test_one_device_needs_nothing() -> None:
    for kind in RequestKind:
        assert bound(cluster(2, 2), ((1, 1), (2, 2)), kind) == 0

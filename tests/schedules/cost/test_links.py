"""Routes of single messages against an independent reading of the rules."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology, parse_topology
from p2smt.cluster.library.registry import library_of
from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology
from p2smt.schedules.cost.links import NOWHERE, Routes, siblings_between
from p2smt.schedules.cost.predict import schedule_cost
from tests.oracles.loads import device_ports, entity, meeting_level, routed
from tests.schedules.small_schedules import ring_all_reduce
from tests.strategies.draws import Draws, draws


def names(topology: Topology, source: int, target: int, protocol: str = "simple") -> list[str]:
    routes = Routes(topology, protocol)
    return [str(routes.links[k]) for k in routes.between(source, target).links]


def test_a_route_goes_outwards_across_and_inwards() -> None:
    topology = load_topology("dgx-a100:4")  # eight ports per node, one for each device
    assert names(topology, 9, 30) == [
        "gpu 9 out",
        "node 1 port 1 out",
        "node 3 port 6 in",
        "gpu 30 in",
    ]
    assert names(topology, 9, 15) == ["gpu 9 out", "gpu 15 in"]
    assert Routes(topology, "simple").between(9, 9) == NOWHERE


def test_latency_is_that_of_the_outermost_level_and_bandwidth_the_least() -> None:
    topology = load_topology("dgx-a100:4").nominal()
    for protocol in ("Simple", "LL"):
        node, gpu = (
            next(p for p in level.link.pieces if p.name == protocol.lower())
            for level in topology.levels
        )
        far, near = (Routes(topology, protocol).between(0, k) for k in (8, 1))
        assert (far.latency_s, far.bandwidth_bytes_per_s) == (
            node.latency_s,
            min(node.bandwidth_bytes_per_s, gpu.bandwidth_bytes_per_s),
        )
        assert (near.latency_s, near.bandwidth_bytes_per_s) == (
            gpu.latency_s,
            gpu.bandwidth_bytes_per_s,
        )


def test_under_a_library_messages_have_its_latencies_and_effective_rates() -> None:
    """A step of a schedule is a step of a ring, not a call: its hop, and the ring's part."""
    far = Link(
        LinkKind.SWITCH,
        (Piece("simple", 1.0, 50e9),),
        ports=8,
        fabric="infiniband",
        efficiency=(("ring", 0.9), ("any", 0.5)),
    )
    near = Link(
        LinkKind.SWITCH, (Piece("simple", 1.0, 400e9),), fabric="nvlink4", hops=(("ll", 2e-6),)
    )
    levels = (Level("node", 2, far), Level("gpu", 8, near))
    library = library_of("nccl-2.30")
    topology = Topology("t", levels, library=library)
    for protocol in ("simple", "ll", "ll128"):
        part = library.protocol(protocol).efficiency
        most = dict(library.protocol(protocol).caps).get("nvlink4", math.inf)
        across, inside = (Routes(topology, protocol.upper()).between(0, k) for k in (8, 1))
        assert across.bandwidth_bytes_per_s == pytest.approx(min(45e9 * part, most))
        assert inside.bandwidth_bytes_per_s == pytest.approx(min(400e9 * part, most))
        assert across.latency_s == library.hop_s("infiniband", "ring", protocol, across=True)
        ring = library.hop_s("nvlink4", "ring", protocol, across=False)
        assert inside.latency_s == (2e-6 if protocol == "ll" else ring)
    strange = Routes(topology, "msccl-own").between(0, 8)
    assert strange == Routes(topology, library.protocols[0][0]).between(0, 8)


def test_several_ports_of_one_device_work_as_one() -> None:
    topology = load_topology("aws-p5:2").nominal()  # 32 ports, 8 devices
    routes = Routes(topology, "simple")
    uplinks = [routes.links[k] for k in routes.between(1, 8).links]
    node = [link for link in uplinks if link.level == "node"]
    assert [str(link) for link in node] == ["node 0 ports 4-7 out", "node 1 ports 0-3 in"]
    piece = next(p for p in topology.levels[0].link.pieces if p.name == "simple")
    assert node[0].bandwidth_bytes_per_s == 4 * piece.bandwidth_bytes_per_s


def test_ports_are_named_only_where_there_is_a_choice() -> None:
    link = Link(LinkKind.SWITCH, (Piece("simple", 0.0, 10.0),), ports=2)
    topology = Topology("t", (Level("gpu", 2, link),))
    assert names(topology, 0, 1) == ["gpu 0 out", "gpu 1 in"]
    assert Routes(topology, "simple").between(0, 1).bandwidth_bytes_per_s == 20.0


def test_a_device_draws_no_more_than_its_share() -> None:
    piece = (Piece("simple", 0.0, 100.0),)
    outer = Link(LinkKind.SWITCH, piece, device_bandwidth_bytes_per_s=30.0)
    inner = Link(LinkKind.SWITCH, piece)
    topology = Topology("t", (Level("node", 2, outer), Level("gpu", 2, inner)))
    assert names(topology, 1, 2) == [
        "gpu 1 out",
        "node 0 out",
        "node 0 device 1 out",
        "node 1 in",
        "node 1 device 2 in",
        "gpu 2 in",
    ]
    assert Routes(topology, "x").between(1, 2).bandwidth_bytes_per_s == 30.0


def test_a_device_of_a_ring_sends_and_receives_no_more_than_its_share() -> None:
    link = Link(LinkKind.RING, (Piece("simple", 0.0, 9.0),), device_bandwidth_bytes_per_s=5.0)
    topology = Topology("t", (Level("gpu", 4, link),))
    hops = ["gpu 0 to 1", "gpu 1 to 2"]
    assert names(topology, 0, 2) == ["gpu 0 device 0 out", *hops, "gpu 2 device 2 in"]
    assert Routes(topology, "simple").between(0, 2).bandwidth_bytes_per_s == 5.0


@pytest.mark.parametrize(
    ("dims", "source", "target", "via"),
    [
        ((5,), 1, 4, [0, 4]),
        ((4,), 0, 2, [1, 2]),
        ((4,), 2, 0, [3, 0]),
        ((3, 4), 0, 11, [8, 11]),
        ((3, 4), 5, 15 - 12, [1, 2, 3]),
    ],
)
def test_siblings_on_a_ring_or_torus(
    dims: tuple[int, ...], source: int, target: int, via: list[int]
) -> None:
    size = dims[0] * (dims[1] if len(dims) > 1 else 1)
    link = Link(LinkKind.TORUS, (Piece("simple", 0.0, 1.0),), torus=dims)
    assert list(siblings_between(Level("gpu", size, link), source, target)) == via
    parent = 7 * size
    moved = siblings_between(Level("gpu", size, link), parent + source, parent + target)
    assert list(moved) == [parent + k for k in via]


@st.composite
def clusters(draw: st.DrawFn) -> Topology:
    levels = []
    for name, under in (("pod", 4), ("node", 2), ("gpu", 1)):
        kind = draw(st.sampled_from(list(LinkKind)))
        size = 2 if name != "pod" else draw(st.sampled_from([1, 4, 6]))
        torus = (2, size // 2) if size > 2 else (size,)
        ports = draw(st.sampled_from([1, 2, 4, 8])) if kind is LinkKind.SWITCH else 1
        assert ports % under == 0 or under % ports == 0
        link = Link(
            kind,
            (Piece("simple", 0.0, 10.0),),
            ports,
            torus=torus if kind is LinkKind.TORUS else (),
        )
        levels.append(Level(name, size, link))
    return Topology("drawn", tuple(levels))


@given(clusters(), draws())
def test_loads_are_those_of_the_rules(topology: Topology, data: Draws) -> None:
    device = st.integers(0, topology.devices - 1)
    pairs = data.draw(st.lists(st.tuples(device, device).filter(lambda p: p[0] != p[1])))
    routes = Routes(topology, "simple")
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        for number in routes.between(*pair).links:
            link = routes.links[number]
            found[link.level][str(link)] += 1
    for j, level in enumerate(topology.levels):
        if level.link.kind is LinkKind.SWITCH:
            expected: Counter[object] = Counter()
            for pair in pairs:
                if meeting_level(topology, *pair) <= j:
                    for end in (0, 1):
                        ports = tuple(device_ports(topology, j, pair[end]))
                        expected[entity(topology, j, pair[end]), ports, end] += 1
        else:
            loads = routed(topology, j, [(a, b, 1.0) for a, b in pairs])
            expected = Counter({key: int(load) for key, load in loads.items()})
        assert sorted(found[level.name].values()) == sorted(expected.values())


@given(clusters(), draws())
def test_routes_are_walks(topology: Topology, data: Draws) -> None:
    device = st.integers(0, topology.devices - 1)
    source, target = data.draw(st.tuples(device, device).filter(lambda p: p[0] != p[1]))
    routes = Routes(topology, "simple")
    links = [routes.links[k] for k in routes.between(source, target).links]
    assert len(set(links)) == len(links), "no link twice"
    across = [link for link in links if link.direction.startswith("to ")]
    for one, following in pairwise(across):
        assert one.direction == f"to {following.entity}"


def test_joined_routes_use_each_link_once() -> None:
    topology = load_topology("dgx-a100:1")
    routes = Routes(topology, "simple")
    both = routes.joined([routes.between(0, 1), routes.between(0, 2)])
    assert [str(routes.links[k]) for k in both.links] == ["gpu 0 out", "gpu 1 in", "gpu 2 in"]
    assert routes.joined([]) == NOWHERE


def test_a_slower_uplink_takes_its_own_time() -> None:
    """Two leaves of two nodes; the second leaf's uplink has half of the bandwidth."""
    text = """
name: leaves
library: none
levels:
  - {name: leaf, size: 2, link: {kind: switch, bandwidth: 1 GB/s, latency: 0 s, fabric: roce}}
  - {name: node, size: 2, link: {kind: switch, bandwidth: 8 GB/s, latency: 0 s, fabric: roce}}
switches:
  - {name: l0, hosts: "a[1-2]"}
  - {name: l1, hosts: "b[1-2]", bandwidth: 0.5 GB/s}
"""
    uneven = parse_topology(text, "test")
    even = parse_topology(text.replace(", bandwidth: 0.5 GB/s", ""), "test")
    times = [schedule_cost(ring_all_reduce(4), one, 8e6).time_s for one in (even, uneven)]
    assert times[1] == pytest.approx(2 * times[0])
    worst = schedule_cost(ring_all_reduce(4), uneven, 8e6).bottleneck
    assert worst is not None
    assert (worst.link.level, worst.link.entity) == ("leaf", 1)

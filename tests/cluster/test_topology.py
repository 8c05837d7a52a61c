"""Topology types: each invariant is tripped once; devices and coordinates correspond."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.link import MPI_ALGORITHMS
from p2smt.cluster.topology import (
    ANY_ALGORITHM,
    MAX_DEVICES,
    Algorithm,
    Level,
    Link,
    LinkKind,
    Piece,
    Topology,
)
from p2smt.collectives.names import Collective
from p2smt.errors import InputError

SIMPLE = Piece("simple", 14e-6, 25e9)
LL = Piece("ll", 2e-6, 12e9)
SWITCH = Link(LinkKind.SWITCH, (SIMPLE,))
NAN = float("nan")
INF = float("inf")


def cluster(*sizes: int, link: Link = SWITCH) -> Topology:
    return Topology("t", tuple(Level(f"l{j}", size, link) for j, size in enumerate(sizes)))


def mesh(**options: object) -> Link:
    return Link(LinkKind.FULL_MESH, (SIMPLE,), **options)  # type: ignore[arg-type]


def switch(**options: object) -> Link:
    return Link(LinkKind.SWITCH, (SIMPLE,), **options)  # type: ignore[arg-type]


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "latency nan": (lambda: Piece("p", NAN, 1e9), "latency"),
    "latency negative": (lambda: Piece("p", -1.0, 1e9), "latency"),
    "latency inf": (lambda: Piece("p", INF, 1e9), "latency"),
    "bandwidth zero": (lambda: Piece("p", 0.0, 0.0), "bandwidth"),
    "bandwidth nan": (lambda: Piece("p", 0.0, NAN), "bandwidth"),
    "bandwidth inf": (lambda: Piece("p", 0.0, INF), "bandwidth"),
    "no pieces": (lambda: Link(LinkKind.SWITCH, ()), "without bandwidth"),
    "no measured pieces": (
        lambda: switch(measured=((Collective.REDUCE, ()),)),
        "without bandwidth",
    ),
    "measured twice": (lambda: switch(measured=((Collective.REDUCE, (LL,)),) * 2), "twice"),
    "protocol twice": (lambda: Link(LinkKind.SWITCH, (SIMPLE, SIMPLE)), "used twice"),
    "ports zero": (lambda: switch(ports=0), "ports"),
    "ports on a mesh": (lambda: mesh(ports=2), "only a switch"),
    "reduction on a mesh": (lambda: mesh(in_switch_members=2), "only a switch"),
    "draw zero": (lambda: switch(device_bandwidth_bytes_per_s=0.0), "device bandwidth"),
    "draw negative": (lambda: switch(device_bandwidth_bytes_per_s=-1.0), "device bandwidth"),
    "draw nan": (lambda: switch(device_bandwidth_bytes_per_s=NAN), "device bandwidth"),
    "in-switch on a mesh": (lambda: mesh(in_switch_members=5), "only a switch"),
    "in-switch of one": (lambda: switch(in_switch_members=1), "in-switch"),
    "in-switch negative": (lambda: switch(in_switch_members=-5), "in-switch"),
    "dims on a switch": (lambda: switch(torus=(2, 2)), "dims"),
    "torus without dims": (lambda: Link(LinkKind.TORUS, (SIMPLE,)), "dims"),
    "dims zero": (lambda: Link(LinkKind.TORUS, (SIMPLE,), torus=(0, 2)), "dims"),
    "level name": (lambda: Level("Node", 2, SWITCH), "lower-case"),
    "level name reserved": (lambda: Level("root", 2, SWITCH), "root"),
    "size zero": (lambda: Level("node", 0, SWITCH), "size"),
    "size huge": (lambda: Level("node", MAX_DEVICES + 1, SWITCH), "size"),
    "dims do not multiply": (
        lambda: Level("chip", 5, Link(LinkKind.TORUS, (SIMPLE,), torus=(2, 2))),
        "multiply",
    ),
    "no name": (lambda: Topology("", (Level("node", 2, SWITCH),)), "name"),
    "no levels": (lambda: cluster(), "levels"),
    "too many levels": (lambda: cluster(*[2] * 9), "levels"),
    "level twice": (lambda: Topology("t", (Level("a", 2, SWITCH),) * 2), "twice"),
    "too many devices": (lambda: cluster(2**11, 2**11), "devices"),
    "ports do not divide": (lambda: cluster(2, 8, link=switch(ports=3)), "spread evenly"),
    "no algorithms": (lambda: Topology("t", (Level("a", 2, SWITCH),), ()), "algorithms"),
    "algorithm twice": (
        lambda: Topology("t", (Level("a", 2, SWITCH),), (Algorithm.RING,) * 2),
        "algorithms",
    ),
    "library twice": (
        lambda: replace(cluster(2), overrides=((Collective.BROADCAST, Algorithm.RING),) * 2),
        "broadcast.*twice",
    ),
    "device too large": (lambda: cluster(2, 3).coordinates(6), "0 to 5"),
    "device negative": (lambda: cluster(2, 3).coordinates(-1), "0 to 5"),
    "factor zero": (lambda: cluster(2, 3).with_bandwidth_factor(0, 0.0), "bandwidth"),
    "factor nan": (lambda: cluster(2, 3).with_bandwidth_factor(0, NAN), "bandwidth"),
}


@pytest.mark.parametrize("case", BAD)
def test_each_invariant_is_enforced(case: str) -> None:
    build, text = BAD[case]
    with pytest.raises(InputError, match=text):
        build()


SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@given(SIZES)
def test_coordinates_are_a_bijection_in_order(sizes: tuple[int, ...]) -> None:
    topology = cluster(*sizes)
    found = [topology.coordinates(device) for device in range(topology.devices)]
    assert found == list(product(*(range(size) for size in sizes)))


@given(SIZES)
def test_devices_under_a_level(sizes: tuple[int, ...]) -> None:
    topology = cluster(*sizes)
    for j in range(len(sizes)):
        prefixes = [topology.coordinates(d)[: j + 1] for d in range(topology.devices)]
        assert prefixes.count(prefixes[0]) == topology.devices_under(j)


def test_with_outermost_keeps_the_rest() -> None:
    larger = cluster(2, 8).with_outermost(4)
    assert larger.sizes == (4, 8)
    assert larger.with_outermost(2) == cluster(2, 8)


def test_with_outermost_refuses_a_torus() -> None:
    torus = Level("chip", 4, Link(LinkKind.TORUS, (SIMPLE,), torus=(2, 2)))
    with pytest.raises(InputError, match="torus"):
        Topology("t", (torus,)).with_outermost(8)


def test_bandwidth_factor_scales_every_bandwidth_of_one_level() -> None:
    link = switch(device_bandwidth_bytes_per_s=10e9, measured=((Collective.ALL_REDUCE, (SIMPLE,)),))
    scaled = cluster(2, 3, link=link).with_bandwidth_factor(1, 0.5)
    assert scaled.levels[0].link == link
    inner = scaled.levels[1].link
    assert inner.bandwidth_bytes_per_s == 12.5e9
    assert inner.device_bandwidth_bytes_per_s == 5e9
    assert inner.pieces_for(Collective.ALL_REDUCE)[0].bandwidth_bytes_per_s == 12.5e9
    assert inner.latency_s == link.latency_s


def test_measured_pieces_replace_the_own_ones_for_one_collective() -> None:
    link = switch(measured=((Collective.ALL_REDUCE, (LL,)),))
    assert link.pieces_for(Collective.ALL_REDUCE) == (LL,)
    assert link.pieces_for(Collective.REDUCE) == (SIMPLE,)
    assert link.pieces_for(None) == (SIMPLE,)
    assert (link.latency_s, link.bandwidth_bytes_per_s) == (2e-6, 25e9)


GLOO = (
    (Collective.BROADCAST, Algorithm.BINOMIAL),
    (Collective.REDUCE, Algorithm.SCATTER_GATHER),
)


def test_a_topology_offers_what_a_library_may_choose() -> None:
    assert cluster(2).algorithms == ANY_ALGORITHM
    always = {Algorithm.BINOMIAL, Algorithm.SCATTER_GATHER, *MPI_ALGORITHMS}
    assert set(ANY_ALGORITHM) == set(Algorithm) - always


def test_known_algorithms_are_those_of_every_collective() -> None:
    ring = replace(cluster(2), algorithms=(Algorithm.RING,))
    assert ring.known_algorithms == {Algorithm.RING}
    fixed = replace(ring, overrides=GLOO)
    assert fixed.known_algorithms == {Algorithm.RING, Algorithm.BINOMIAL, Algorithm.SCATTER_GATHER}


def test_running_replaces_the_overrides_too() -> None:
    fixed = replace(cluster(2, 8), overrides=GLOO)
    free = fixed.running((Algorithm.RING, Algorithm.TREE))
    rings = (Algorithm.RING, Algorithm.TREE)
    assert free == replace(cluster(2, 8), algorithms=rings, restricted=True)
    assert free.overrides == ()
    assert fixed.with_outermost(4).with_bandwidth_factor(0, 0.5).overrides == GLOO

"""Permutes: the nearest sources against every choice, counts against messages."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology
from p2smt.cluster.hosts import Hosts, Uplink
from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology
from p2smt.cost.loads.footprint_explicit import explicit_send
from p2smt.parallelism.placement import IntArray
from p2smt.resharding.step_prices import (
    PermuteLoads,
    StepPrices,
    counted_footprint,
    counts_suffice,
    nearest_sources,
    one_suffices,
)
from tests.cost.steps import SHUFFLES
from tests.oracles.senders import choices
from tests.resharding.types import first_ends
from tests.strategies.redistributions import (
    ArrayScene,
    array_scenes,
    random_permute,
    random_state,
)
from tests.strategies.topologies import topologies
from tests.tiers import examples_of


def switches(*sizes: int, ports: int = 1, hosts: Hosts | None = None) -> Topology:
    """Switches of 4 B/s without latency; the innermost devices have one port each."""
    levels = [
        Level(
            f"l{j}",
            size,
            Link(
                LinkKind.SWITCH,
                (Piece("simple", 0.0, 4.0),),
                ports=1 if j == len(sizes) - 1 else ports,
                fabric="pcie" if j == len(sizes) - 1 else "efa",
            ),
        )
        for j, size in enumerate(sizes)
    ]
    return Topology("t", tuple(levels), hosts=hosts)


def crossings(topology: Topology, source: IntArray, target: IntArray) -> list[list[int]]:
    """Per level the messages out of and into each entity."""
    found = []
    for j in range(len(topology.levels)):
        ends = [side // topology.devices_under(j) for side in (source, target)]
        apart = ends[0] != ends[1]
        size = topology.devices // topology.devices_under(j)
        found.append([n for end in ends for n in np.bincount(end[apart], minlength=size).tolist()])
    return found


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2), (6, 1), (2, 2), (1, 5)])
@pytest.mark.parametrize("copies", [1, 2, 3])
def test_nearest_sources_are_best_for_every_uplink_at_once(
    sizes: tuple[int, ...], copies: int
) -> None:
    """Against every pairing of holders and takers on at most 6 devices."""
    topology = switches(*sizes)
    count = topology.devices
    devices = np.arange(count)
    for seed in range(4):
        held = [i // copies for i in range(count)]
        Random(seed).shuffle(held)
        taken = Random(seed + 50).sample(held, count)
        chosen = nearest_sources(topology, devices, np.array(held), np.array(taken))
        assert [held[d] for d in chosen] == taken
        assert sorted(chosen) == devices.tolist()
        every = [crossings(topology, source, devices) for source in choices(held, taken)]
        found = crossings(topology, chosen, devices)
        for j in range(len(sizes)):
            best = np.array([one[j] for one in every]).min(axis=0)
            assert found[j] == best.tolist()


@settings(max_examples=examples_of(200))
@given(topologies((2, 2, 3)), SHUFFLES, st.integers(1, 4))
def test_counts_say_what_messages_do(topology: Topology, shuffle: Random, copies: int) -> None:
    """Where they suffice: the same footprint, level by level, on any devices."""
    count = shuffle.choice([12, 8, 6])
    devices = np.array(sorted(shuffle.sample(range(12), count)))
    held = np.array(shuffle.sample([i // copies for i in range(count)], count))
    taken = np.array(shuffle.sample(held.tolist(), count))
    source = nearest_sources(topology, devices, held, taken)
    assert held[np.searchsorted(devices, source)].tolist() == taken.tolist()
    if counts_suffice(topology):
        found = PermuteLoads(topology, devices)
        loads = found.loads(held, taken[None, :], int(held.max()) + 1)
        apart = source != devices
        assert counted_footprint(topology, loads[0]) == explicit_send(
            topology, source[apart], devices[apart]
        )


HULL = Hosts(
    ("a", "b", "c", "d", "e"), (0, 1, 2, 3, 4), (("s0", "s1", "s2"),), (Uplink(0, 2, 1.0),)
)


@pytest.mark.parametrize("copies", [1, 2, 5, 10])
def test_uneven_clusters_have_their_own_uplinks(copies: int) -> None:
    """Three switches, two hosts below each but the last, whose uplink is a fourth as fast."""
    topology = switches(3, 2, 4, hosts=HULL)
    devices = np.array(sorted(topology.places))
    held = np.arange(20) // copies
    taken = np.roll(held, 7)
    found = PermuteLoads(topology, devices)
    loads = found.loads(held, np.stack([taken, held]), 20 // copies)
    source = nearest_sources(topology, devices, held, taken)
    apart = source != devices
    assert counted_footprint(topology, loads[0]) == explicit_send(
        topology, source[apart], devices[apart]
    )
    assert not loads[1].any()


def test_the_ways_to_count_agree() -> None:
    """Many at once, one at a time, with few blocks and with many."""
    topology = load_topology("dgx-h100").with_outermost(16)
    shuffle = Random(3)
    devices = np.arange(128)
    found = PermuteLoads(topology, devices)
    for copies in (1, 2, 16, 64):
        held = np.array(shuffle.sample([i // copies for i in range(128)], 128))
        taken = np.array([shuffle.sample(held.tolist(), 128) for _ in range(8)])
        many = found.loads(held, taken, 128 // copies)
        for row, one in zip(taken, many, strict=True):
            assert (found.loads(held, row[None, :], 128 // copies)[0] == one).all()
            source = nearest_sources(topology, devices, held, row)
            apart = source != devices
            expected = explicit_send(topology, source[apart], devices[apart])
            assert counted_footprint(topology, one) == expected


@settings(max_examples=examples_of(200))
@given(array_scenes())
def test_prices_of_permutes_are_those_of_their_messages(scene: ArrayScene) -> None:
    shuffle, frame = scene.shuffle, scene.frame
    prices = StepPrices(scene.topology, frame)
    before = random_state(shuffle, frame)
    afters = [random_permute(shuffle, frame, before) for _ in range(4)]
    found = prices.permutes(before, afters)
    for after, seconds in zip(afters, found.tolist(), strict=True):
        assert seconds == prices.permute(before, after).seconds
        assert (
            seconds
            == prices.explicit_send_model(before, after).time(frame.local_bytes(before)).seconds
        )


@pytest.mark.parametrize("preset", ["azure-ndv4", "dgx-h100", "gb200-nvl72"])
@pytest.mark.parametrize("nominal", [False, True])
def test_two_permutes_in_a_row_never_pay_where_counts_suffice(preset: str, nominal: bool) -> None:
    topology = load_topology(preset)
    topology = topology.nominal().cheapest() if nominal else topology
    shuffle = Random(7)
    for shape in ((64, 64), (4096, 4096)):
        frame = first_ends("a=2,b=8", shape, "R,R", "R,R").frame
        prices = StepPrices(topology, frame)
        assert prices.one_permute_suffices
        for _ in range(100):
            one = random_state(shuffle, frame, ())
            two, three = (random_permute(shuffle, frame, one) for _ in range(2))
            whole = prices.permute(one, three).seconds
            parts = prices.permute(one, two).seconds + prices.permute(two, three).seconds
            assert whole <= parts * (1 + 1e-12)


@settings(max_examples=examples_of(200))
@given(array_scenes())
def test_one_permute_suffices_where_it_says_so(scene: ArrayScene) -> None:
    shuffle, frame = scene.shuffle, scene.frame
    prices = StepPrices(scene.topology, frame)
    if not prices.one_permute_suffices:
        return
    for _ in range(10):
        one = random_state(shuffle, frame)
        two, three = (random_permute(shuffle, frame, one) for _ in range(2))
        whole = prices.permute(one, three).seconds
        parts = prices.permute(one, two).seconds + prices.permute(two, three).seconds
        assert whole <= parts * (1 + 1e-12)


def test_two_permutes_may_pay_where_a_hop_inside_costs_more_than_one_outside() -> None:
    levels = list(switches(2, 4).levels)
    inside = replace(levels[1].link, pieces=(Piece("simple", 5.0, 4.0),))
    levels[1] = replace(levels[1], link=inside)
    assert one_suffices(switches(2, 4))
    assert not one_suffices(replace(switches(2, 4), levels=tuple(levels)))


def test_two_permutes_may_pay_where_devices_share_a_port() -> None:
    """The first spreads over the ports what the second sends."""
    topology = load_topology("aws-p4d")
    frame = first_ends("a=2,b=2,c=2,d=2", (4800, 4800), "R,R", "R,R").frame
    prices = StepPrices(topology, frame)
    assert not prices.one_permute_suffices
    one, two, three = (
        first_ends("a=2,b=2,c=2,d=2", (4800, 4800), f"S({n}),R", "R,R").source for n in "cda"
    )
    whole = prices.permute(one, three).seconds
    assert whole > 1.5 * (prices.permute(one, two).seconds + prices.permute(two, three).seconds)

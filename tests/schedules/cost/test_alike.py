"""One group of each kind takes what all groups together take."""

from __future__ import annotations

import random

import pytest

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology
from p2smt.schedules.classics import classic
from p2smt.schedules.cost.links import Alike, Routes, alike
from p2smt.schedules.cost.predict import cost_on, schedule_cost
from p2smt.schedules.lower.lowered_request import GroupSchedule, together
from p2smt.schedules.lower.one_sided import one_sided

BYTES = 2**26
TOPOLOGIES = ("dgx-a100:4", "azure-ndv4:2", "dgx1-v100:2", "tpu-v5p:32", "gb200-nvl72:2")
NAMES = ("ring-all-reduce", "two-shot-all-reduce", "chain-broadcast", "ring-all-gather")


def both(groups: list[GroupSchedule], topology: Topology) -> tuple[Alike, float, float]:
    """One of each kind, the time on its routes, and that of all groups on all links."""
    some = alike(groups, Routes(topology, groups[0].schedule.protocol))
    whole = together(some.groups, topology.devices)
    quick = cost_on(some.routes, whole, BYTES).time_s
    return some, quick, schedule_cost(together(groups, topology.devices), topology, BYTES).time_s


def strided(topology: Topology, count: int, name: str) -> list[GroupSchedule]:
    """So many groups, each of devices that are so far apart."""
    size = min(topology.devices // count, 8)
    schedule = classic(name, size)
    return [GroupSchedule(tuple(range(n, n + count * size, count)), schedule) for n in range(count)]


@pytest.mark.parametrize("preset", TOPOLOGIES)
@pytest.mark.parametrize("name", NAMES)
def test_groups_that_are_alike(preset: str, name: str) -> None:
    topology = load_topology(preset)
    for count in (1, 2, 4, 8):
        groups = strided(topology, count, name)
        some, quick, slow = both(groups, topology)
        assert quick == pytest.approx(slow, rel=1e-9)
        assert 1 <= len(some.groups) <= count


def test_one_of_many_is_enough() -> None:
    topology = load_topology("dgx-a100:4")
    for name in NAMES:
        some, _, _ = both(strided(topology, 8, name), topology)
        assert len(some.groups) == 1


@pytest.mark.parametrize("seed", range(20))
def test_groups_that_are_not(seed: int) -> None:
    """Groups of different schedules on devices at random."""
    draw = random.Random(seed)
    topology = load_topology(draw.choice(TOPOLOGIES))
    devices = draw.sample(range(topology.devices), 16)
    if draw.random() < 0.5:
        devices.sort()
    kinds = [classic(draw.choice(NAMES), 4) for _ in range(2)]
    if draw.random() < 0.5:
        kinds = [one_sided(schedule, 64) for schedule in kinds]
    chosen = [draw.choice(kinds) for _ in range(4)]
    groups = [
        GroupSchedule(tuple(devices[4 * n : 4 * n + 4]), schedule)
        for n, schedule in enumerate(chosen)
    ]
    _, quick, slow = both(groups, topology)
    assert quick == pytest.approx(slow, rel=1e-9)


def test_the_rate_of_one_that_stands_for_several() -> None:
    """Two groups on a link that holds up one of them: each gets half, and takes twice as long."""
    topology = load_topology("dgx-a100:2")
    schedule = classic("chain-broadcast", 2)
    alone, _, one = both([GroupSchedule((0, 8), schedule)], topology)
    pair = load_topology("gcp-a2-highgpu-16g:2")
    groups = [GroupSchedule((n, 16 + n), schedule) for n in range(4)]
    some, quick, slow = both(groups, pair)
    assert (len(alone.groups), len(some.groups)) == (1, 1)
    assert {times for route in some.routes.shared.values() for times in route.times} >= {4}
    assert quick == pytest.approx(slow, rel=1e-9)
    assert one > 0

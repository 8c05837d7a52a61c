"""What holds for the predicted times of all schedules on all topologies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology
from p2smt.collectives import contract as contracts
from p2smt.errors import TooLarge
from p2smt.schedules.classics import CLASSICS
from p2smt.schedules.cost.event_run import run_on
from p2smt.schedules.cost.links import Routes
from p2smt.schedules.cost.predict import ScheduleCost, schedule_cost
from p2smt.schedules.index import index_of
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.deadlock import local_order
from tests.schedules.building import Blocks
from tests.schedules.cost.test_predict import classic, flat, switch, two_level
from tests.schedules.small_schedules import SMALL

small = st.sampled_from(sorted(SMALL)).map(lambda name: SMALL[name]())
kinds = st.sampled_from(list(LinkKind))
latencies = st.sampled_from([0.0, 1e-6, 3e-6])
bandwidths = st.floats(1e6, 1e9)


@st.composite
def topologies(draw: st.DrawFn, latency: st.SearchStrategy[float] = latencies) -> Topology:
    """Clusters of at least four devices."""
    levels = []
    for name, size in (("node", draw(st.sampled_from([2, 3]))), ("gpu", 2)):
        kind = draw(kinds)
        pieces = (Piece("simple", draw(latency), draw(bandwidths)),)
        torus = (size,) if kind is LinkKind.TORUS else ()
        ports = draw(st.sampled_from([1, 2])) if kind is LinkKind.SWITCH else 1
        share = draw(st.none() | bandwidths) if kind is LinkKind.SWITCH else None
        levels.append(Level(name, size, Link(kind, pieces, ports, share, torus)))
    return Topology("drawn", tuple(levels))


def check_sound(found: ScheduleCost) -> None:
    """What holds for every run."""
    slack = 1 + 1e-9
    assert found.bound_s <= found.time_s * slack
    assert 0 <= found.busy_share <= slack
    for start, end in zip(found.starts_s, found.finishes_s, strict=True):
        assert 0 <= start <= end <= found.time_s
    starts = [found.starts_s[n] for n in found.critical]
    assert starts == sorted(starts)
    assert starts[0] == 0, "the critical path goes back to the beginning"


@given(small, topologies(), st.floats(1, 1e9), st.integers(2, 8))
def test_no_time_is_below_the_bounds(
    schedule: Schedule, topology: Topology, payload: float, depth: int
) -> None:
    found = schedule_cost(schedule, topology, payload, depth)
    check_sound(found)
    assert found == schedule_cost(schedule, topology, payload, depth), "runs can be repeated"


@given(small, topologies(st.just(0.0)), st.floats(1, 1e9))
def test_without_latencies_twice_the_bytes_take_twice_the_time(
    schedule: Schedule, topology: Topology, payload: float
) -> None:
    once, twice = (schedule_cost(schedule, topology, k * payload) for k in (1, 2))
    assert twice.time_s == pytest.approx(2 * once.time_s, rel=1e-9)
    assert twice.load_s == pytest.approx(2 * once.load_s, rel=1e-9)


@given(small, topologies(), st.floats(1, 1e6))
def test_every_step_keeps_its_order(schedule: Schedule, topology: Topology, payload: float) -> None:
    found = schedule_cost(schedule, topology, payload)
    index = index_of(schedule)
    for number in range(len(schedule.steps)):
        for earlier in index.before(number):
            assert found.finishes_s[earlier] <= found.starts_s[number]
    for connection, sends in index.sends.items():
        for send, receive in zip(sends, index.receives[connection], strict=True):
            assert found.finishes_s[send] <= found.starts_s[receive]


@pytest.mark.parametrize("name", sorted(CLASSICS))
def test_classics_of_several_sizes(name: str) -> None:
    for ranks, parameters in CLASSICS[name].examples:
        schedule = CLASSICS[name].function(ranks, **parameters)
        for topology in (flat(ranks), Topology("n", (switch("node", 6), switch("gpu", 4)))):
            if ranks <= topology.devices:
                check_sound(schedule_cost(schedule, topology, 1e6))


def test_bytes_are_neither_lost_nor_made() -> None:
    """What leaves devices and what enters them is what the messages hold."""
    ranks = 8
    found = schedule_cost(classic("swing-all-reduce", ranks), flat(ranks), 8e6)
    sends = [s for s in classic("swing-all-reduce", ranks).steps if s.send]
    sent = sum(step.count for step in sends) * found.chunk_bytes
    for direction in ("in", "out"):
        loads = [load.load_bytes for load in found.links if load.link.direction == direction]
        assert sum(loads) == pytest.approx(sent)


# Too much work ----------------------------------------------------------------------------


def uneven(ranks: int) -> Schedule:
    """Messages from everybody to everybody, all of different sizes."""
    blocks, pairs = Blocks(), [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    for turn, (rank, peer) in enumerate(pairs):
        blocks.send(rank, peer, peer, "i0", count=turn + 1)
    for turn, (rank, peer) in enumerate(pairs):
        blocks.receive("r", peer, ranks + rank, rank, "s0", count=turn + 1)
    starts = ((None,) * len(pairs),) * ranks
    return blocks.schedule("uneven", contracts.Contract("custom", starts, ()), len(pairs))


def limited(fair: int, most: int) -> float:
    """The sum of the ends of all steps."""
    schedule, index = uneven(4), index_of(uneven(4))
    routes = Routes(two_level(2, 2), "simple")
    run = run_on(index, local_order(index), routes, 1e6, 8, fair_work=fair, most_work=most)
    assert run.sharing.rough == (fair < 100)
    assert len(run.started) == len(schedule.steps)
    return sum(run.ends_s)


def test_much_work_is_done_roughly_and_too_much_is_refused() -> None:
    fair, rough = limited(10**6, 10**6), limited(10, 10**6)
    assert fair < rough < 1.5 * fair
    with pytest.raises(TooLarge, match="transfers that share links"):
        limited(10, 50)

"""Predicted times of schedules: closed forms, hand-worked cases, and bounds that always hold."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives import contract as contracts
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.bounds import step_model
from p2smt.cost.loads.footprint_explicit import explicit_footprint
from p2smt.errors import InputError
from p2smt.schedules.classics import CLASSICS
from p2smt.schedules.cost.event_run import Token, TokenStore
from p2smt.schedules.cost.predict import payload_chunks, schedule_cost
from p2smt.schedules.model import Connection, Schedule, Sizes
from tests.schedules.building import Blocks, at
from tests.schedules.small_schedules import SMALL, ring_all_reduce

ALPHA, BETA = 2e-6, 1e-9  # of the flat switch: seconds, seconds per byte


def switch(
    name: str, size: int, latency: float = ALPHA, bandwidth: float = 1 / BETA, ports: int = 1
) -> Level:
    """A level of siblings at a switch."""
    pieces = (Piece("simple", latency, bandwidth),)
    return Level(name, size, Link(LinkKind.SWITCH, pieces, ports))


def flat(size: int, latency: float = ALPHA) -> Topology:
    """Devices at one switch."""
    return Topology("flat", (switch("gpu", size, latency),))


def two_level(nodes: int, gpus: int, ports: int = 1) -> Topology:
    """Nodes whose network is 10 times as slow, and 5 times as far, as what is inside."""
    outer = switch("node", nodes, 5 * ALPHA, 0.1 / BETA, ports)
    return Topology("two levels", (outer, switch("gpu", gpus)))


def classic(name: str, ranks: int, **parameters: object) -> Schedule:
    return CLASSICS[name].function(ranks, **parameters)


def time_of(schedule: Schedule, topology: Topology, payload: float = 1e6, depth: int = 8) -> float:
    return schedule_cost(schedule, topology, payload, depth).time_s


# Closed forms -----------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8])
def test_a_ring_takes_what_the_alpha_beta_model_says(ranks: int) -> None:
    for schedule in (
        ring_all_reduce(ranks),
        classic("ring-all-reduce", ranks),
        classic("ring-all-reduce", ranks, fused=True),
    ):
        found = schedule_cost(schedule, flat(ranks), 3e6)
        expected = 2 * (ranks - 1) * ALPHA + 2 * (ranks - 1) / ranks * 3e6 * BETA
        assert found.time_s == pytest.approx(expected, rel=1e-9)
        assert found.path_s == pytest.approx(expected, rel=1e-9), "no two messages meet"
        assert found.busy_share == pytest.approx(1 - 2 * (ranks - 1) * ALPHA / expected)


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize(
    ("name", "operation", "algorithm"),
    [
        ("ring-all-reduce", Collective.ALL_REDUCE, Algorithm.RING),
        ("ring-reduce-scatter", Collective.REDUCE_SCATTER, Algorithm.RING),
        ("ring-all-gather", Collective.ALL_GATHER, Algorithm.RING),
        ("halving-doubling-all-reduce", Collective.ALL_REDUCE, Algorithm.HALVING_DOUBLING),
        ("two-shot-all-reduce", Collective.ALL_REDUCE, Algorithm.DIRECT),
        ("one-shot-all-reduce", Collective.ALL_REDUCE, Algorithm.ONE_SHOT),
        ("pairwise-all-to-all", RequestKind.ALL_TO_ALL, Algorithm.DIRECT),
    ],
)
def test_classics_on_a_switch_take_what_the_cost_model_says(
    name: str, operation: Operation, algorithm: Algorithm, ranks: int
) -> None:
    topology = flat(ranks).running((algorithm,))
    footprint = explicit_footprint(topology, np.arange(ranks)[None])
    for payload in (64.0, 1e8):
        expected = step_model(topology, footprint, operation).time(payload)
        found = schedule_cost(classic(name, ranks), topology, payload)
        assert found.time_s == pytest.approx(expected.seconds, rel=1e-9)
        assert found.load_s == pytest.approx(expected.wire_s, rel=1e-9)


def ring_by_recurrence(edges: Sequence[tuple[float, float]], rounds: int) -> float:
    """Last arrival: edge r has (latency, seconds per message) from rank r to the next.

    Round k of rank r starts when its round k - 1 has left and what came then is there.
    """
    left = [0.0] * len(edges)
    came = [0.0] * len(edges)
    for _ in range(rounds):
        starts = [max(pair) for pair in zip(left, came, strict=True)]
        left = [start + wire for start, (_, wire) in zip(starts, edges, strict=True)]
        arrivals = [end + latency for end, (latency, _) in zip(left, edges, strict=True)]
        came = [arrivals[r - 1] for r in range(len(edges))]
    return max(came)


@pytest.mark.parametrize(("nodes", "gpus"), [(2, 2), (2, 4), (3, 3), (4, 2)])
@pytest.mark.parametrize("payload", [1e2, 1e5, 1e8])
def test_a_ring_over_two_levels_in_device_order(nodes: int, gpus: int, payload: float) -> None:
    ranks, size = nodes * gpus, payload / (nodes * gpus)
    crosses = [(r + 1) % gpus == 0 for r in range(ranks)]
    edges = [
        (5 * ALPHA, 10 * size * BETA) if across else (ALPHA, size * BETA) for across in crosses
    ]
    found = schedule_cost(ring_all_reduce(ranks), two_level(nodes, gpus), payload, 2 * ranks)
    assert found.time_s == pytest.approx(ring_by_recurrence(edges, 2 * (ranks - 1)), rel=1e-9)
    assert found.bottleneck is not None
    assert found.bottleneck.link.level == "node"
    assert found.load_s == pytest.approx(2 * (ranks - 1) * 10 * size * BETA)


@pytest.mark.exhaustive
def test_hierarchies_beat_rings_where_they_should() -> None:
    far = two_level(4, 8)
    ring = time_of(classic("ring-all-reduce", 32), far, 64.0)
    for gpus in (4, 8):
        assert time_of(classic("hierarchical-all-reduce", 32, gpus=gpus), far, 64.0) < ring
    rails = two_level(4, 8, ports=8)
    ring = time_of(classic("ring-all-reduce", 32), rails, 1e9)
    rail = time_of(classic("rail-aligned-all-reduce", 32, gpus=8), rails, 1e9)
    assert 4 * rail < ring, "a ring uses one of eight network cards"
    on_switch = flat(32)
    hierarchy = time_of(classic("hierarchical-all-reduce", 32, gpus=8), on_switch, 1e9)
    assert time_of(classic("ring-all-reduce", 32), on_switch, 1e9) < hierarchy


# Hand-worked cases ------------------------------------------------------------------------


def test_transfers_that_meet_on_a_link_share_it() -> None:
    blocks = Blocks()
    for source, count in ((1, 1), (2, 3)):
        put = {"reads": (at("i0", source, count),), "writes": (at("o0", 0, count),)}
        blocks.add(source, 0, "put", count=count, **put)
    starts = ((None,) * 4,) * 3
    sizes = (Sizes(4, 4, 0),) * 3
    schedule = Schedule(
        "puts", contracts.Contract("custom", starts, ()), sizes, tuple(blocks.steps)
    )
    found = schedule_cost(schedule, flat(3), 4e6)
    assert found.finishes_s == pytest.approx((2e-3, 4e-3)), "half of the port each, then all"
    assert found.time_s == pytest.approx(4e-3 + ALPHA), "a put has arrived a latency later"
    assert found.load_s == pytest.approx(4e-3)
    assert str(found.links[0].link) == "gpu 0 in"
    assert found.critical == (1,)
    assert found.path_s == pytest.approx(3e-3 + ALPHA)


def test_a_signal_takes_a_latency_and_follows_its_put() -> None:
    found = schedule_cost(SMALL["puts 2"](), flat(2), 2e6)
    wire = 1e6 * BETA
    assert found.time_s == pytest.approx(wire + ALPHA)
    kinds = [SMALL["puts 2"]().steps[n].kind for n in found.critical]
    assert kinds[-3:] == ["put", "signal", "wait"]


def test_a_remote_read_ends_a_latency_after_the_transfer() -> None:
    blocks = Blocks()
    blocks.add(0, 0, "get", reads=(at("i0", 1),), writes=(at("o0", 0),))
    blocks.copy(0, 0, "o0", "o0")
    found = schedule_cost(
        blocks.schedule("get", contracts.contract("broadcast", 2, 1, in_place=False, root=1)),
        flat(2),
        1e6,
    )
    assert found.finishes_s == pytest.approx((1e-3 + ALPHA,) * 2)
    assert found.path_s == pytest.approx(1e-3 + ALPHA, rel=1e-9)
    assert {str(load.link) for load in found.links} == {"gpu 1 out", "gpu 0 in"}


def test_what_is_read_and_written_remotely_flows_through() -> None:
    blocks = Blocks()
    blocks.add(0, 0, "through", reads=(at("i0", 1),), writes=(at("o0", 2),))
    schedule = blocks.schedule(
        "through", contracts.contract("broadcast", 3, 1, in_place=False, root=1)
    )
    assert time_of(schedule, flat(3)) == pytest.approx(1e-3 + 2 * ALPHA)


def test_what_is_written_starts_when_the_first_byte_is_read() -> None:
    """From rank 1 of the same node to rank 2 of the other: the second part is ten times slower."""
    blocks = Blocks()
    blocks.add(0, 0, "through", reads=(at("i0", 1),), writes=(at("o0", 2),))
    schedule = blocks.schedule(
        "through", contracts.contract("broadcast", 4, 1, in_place=False, root=1)
    )
    found = schedule_cost(schedule, two_level(2, 2), 1e6)
    assert found.finishes_s == pytest.approx((ALPHA + 1e-2,))
    assert found.time_s == pytest.approx(ALPHA + 1e-2 + 5 * ALPHA)
    assert found.path_s == pytest.approx(found.time_s)


def test_a_step_that_writes_twice_ends_with_the_later_one() -> None:
    blocks = Blocks()
    blocks.add(0, 0, "put", reads=(at("i0", 0),), writes=(at("o0", 1), at("o0", 2)))
    schedule = blocks.schedule("two", contracts.contract("broadcast", 4, 1, in_place=False))
    found = schedule_cost(schedule, two_level(2, 2), 1e6)
    assert found.finishes_s == pytest.approx((1e-2,)), "the slow link takes a tenth of the port"


def test_a_step_may_wait_for_two_signals_of_one_counter() -> None:
    blocks = Blocks()
    blocks.add(0, 0, "wait", count=0, awaits=("twice", "twice"))
    blocks.add(1, 0, "signal", count=0, posts=("twice",))
    blocks.add(1, 0, "put", reads=(at("i0", 1),), writes=(at("o0", 0),), posts=("twice",))
    schedule = blocks.schedule("two", contracts.contract("broadcast", 2, 1, in_place=False, root=1))
    assert schedule_cost(schedule, flat(2), 1e6).starts_s[0] == pytest.approx(1e-3 + ALPHA)


def test_room_is_back_a_latency_after_the_start_of_who_made_it() -> None:
    """A chain of three at depth 1: each chunk is a transfer and two latencies behind the last."""
    schedule = classic("chain-broadcast", 3, chunks=4, fused=True)
    wire = 1e6 * BETA
    found = schedule_cost(schedule, flat(3), 4e6, fifo_depth=1)
    assert found.time_s == pytest.approx(3 * (wire + 2 * ALPHA) + 2 * (wire + ALPHA))
    assert found.path_s == pytest.approx(found.time_s)


@pytest.mark.parametrize(("depth", "rounds"), [(1, 4), (2, 2), (4, 1)])
def test_a_full_connection_waits_for_room(depth: int, rounds: int) -> None:
    """Tiny messages: room comes back two latencies after it is taken."""
    blocks = Blocks()
    for chunk in range(4):
        blocks.send(0, 0, 1, f"i{chunk}")
        blocks.receive("r", 1, 0, 0, f"o{chunk}")
        blocks.copy(0, 1, f"i{chunk}", f"o{chunk}")
    schedule = blocks.schedule("four", contracts.contract("broadcast", 2, 4, in_place=False))
    expected = (2 * rounds - 1) * ALPHA
    assert time_of(schedule, flat(2), 1e-6, depth) == pytest.approx(expected, rel=1e-6)


def test_a_barrier_ends_with_its_last_step() -> None:
    found = schedule_cost(SMALL["barrier"](), flat(2), 2e6)
    schedule = SMALL["barrier"]()
    meets = [n for n, step in enumerate(schedule.steps) if step.barrier and step.rank == 0]
    assert len(meets) == 2
    assert len({found.finishes_s[n] for n in meets}) == 1
    assert found.finishes_s[meets[0]] == max(found.starts_s[n] for n in meets)


def test_who_comes_last_to_a_barrier_is_on_the_critical_path() -> None:
    blocks = Blocks()
    for block, count in ((0, 3), (1, 1)):
        put = {"reads": (at("i0", 0, count),), "writes": (at("o0", 1, count),)}
        blocks.add(0, block, "put", count=count, **put)
        blocks.add(0, block, "barrier", count=0, barrier="all")
    blocks.add(0, 1, "put", reads=(at("i0", 0),), writes=(at("o0", 1),))
    schedule = blocks.schedule("uneven", contracts.contract("broadcast", 2, 3, in_place=False))
    found = schedule_cost(schedule, flat(2), 3e6)
    late, meets, early, also = found.finishes_s[:4]
    assert (late, early) == pytest.approx((4e-3, 2e-3))
    assert meets == also == late
    assert found.starts_s == (0, late, 0, early, late)
    assert found.critical == (0, 1, 3, 4)
    assert found.time_s == pytest.approx(5e-3 + ALPHA)
    assert found.path_s == pytest.approx(4e-3 + ALPHA)


@pytest.mark.parametrize("blocks_of_reader", [0, 1])
def test_packets_are_there_a_latency_after_they_were_written(blocks_of_reader: int) -> None:
    blocks = Blocks()
    for rank in (0, 1):
        put = at("s0", 1 - rank, packet=True)
        blocks.add(rank, 0, "ppkt", reads=(at("i0", rank),), writes=(put,))
        reads = (at("i0", rank), at("s0", rank, packet=True))
        blocks.add(rank, blocks_of_reader, "repkt", reads=reads, writes=(at("o0", rank),))
    schedule = blocks.schedule("packets", contracts.contract("allreduce", 2, 1, in_place=False), 1)
    found = schedule_cost(schedule, flat(2), 1e6)
    readers = [n for n, step in enumerate(schedule.steps) if step.kind == "repkt"]
    assert [found.starts_s[n] for n in readers] == pytest.approx([1e-3 + ALPHA] * 2)


def test_the_first_packet_counts() -> None:
    tokens = TokenStore({})
    for time in (5.0, 3.0, 4.0):
        tokens.write(7, Token(time, 0))
    assert tokens.ready_s((), (7,)) == 3.0
    assert tokens.lack((), (7, 8)) == 8


def test_a_switch_that_reduces_and_multicasts_uses_each_link_once() -> None:
    blocks = Blocks()
    for rank in range(4):
        everywhere = tuple(at(f"i{rank}", peer) for peer in range(4))
        blocks.add(rank, 0, "glres", reads=everywhere, writes=everywhere)
    schedule = blocks.schedule("in switch", contracts.contract("allreduce", 4, 4, in_place=True))
    found = schedule_cost(schedule, flat(4), 4e6)
    # Every device gives what three others reduce, and multicasts what it has reduced itself.
    assert {load.load_bytes for load in found.links} == {4e6}
    assert len(found.links) == 8


def test_what_stays_on_a_device_is_free() -> None:
    blocks = Blocks()
    blocks.copy(0, 0, "i0", "o0")
    found = schedule_cost(
        blocks.schedule("copy", contracts.contract("allgather", 1, 1, in_place=False)), flat(1), 1e6
    )
    assert (found.time_s, found.links, found.bottleneck, found.load_s) == (0.0, (), None, 0.0)
    assert found.busy_share == 0.0


def test_the_protocol_of_the_schedule_or_the_one_asked_for() -> None:
    pieces = (Piece("simple", 1e-5, 1e9), Piece("ll", 1e-6, 5e8))
    topology = Topology("two", (Level("gpu", 2, Link(LinkKind.SWITCH, pieces)),))
    blocks = Blocks()
    blocks.send(0, 0, 1, "i0")
    blocks.receive("r", 1, 0, 0, "o0")
    one = blocks.schedule(
        "one", contracts.contract("broadcast", 2, 1, in_place=True), 0, protocol="LL"
    )
    assert time_of(one, topology) == pytest.approx(2e-3 + 1e-6)
    times = [schedule_cost(one, topology, 1e6, protocol=name).time_s for name in ("simple", "x")]
    assert times == pytest.approx([1e-3 + 1e-5] * 2)


# Input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("collective", "chunks"),
    [
        ("allreduce", 2),
        ("reduce", 2),
        ("broadcast", 2),
        ("allgather", 6),
        ("reduce_scatter", 6),
        ("alltoall", 6),
        ("scatter", 6),
        ("gather", 6),
    ],
)
def test_the_payload_is_the_larger_buffer(collective: str, chunks: int) -> None:
    for in_place in (False, True):
        contract = contracts.contract(collective, 3, 2, in_place=in_place)
        assert payload_chunks(contract) == chunks


def test_too_few_devices() -> None:
    with pytest.raises(InputError, match="4 ranks: topology flat has 3 devices"):
        schedule_cost(ring_all_reduce(4), flat(3), 1e6)


@pytest.mark.parametrize("payload", [0.0, -1.0, math.inf, math.nan])
def test_a_payload_that_is_none(payload: float) -> None:
    with pytest.raises(InputError, match="positive and finite"):
        schedule_cost(ring_all_reduce(2), flat(2), payload)


def test_a_schedule_that_does_not_end() -> None:
    blocks = Blocks()
    for rank in (0, 1):
        blocks.receive("r", rank, 0, 1 - rank, "o0")
        blocks.send(rank, 0, 1 - rank, "i0")
    schedule = blocks.schedule("stuck", contracts.contract("alltoall", 2, 1, in_place=False))
    with pytest.raises(InputError, match="does not run to its end"):
        schedule_cost(schedule, flat(2), 1e6)


def test_a_broken_schedule() -> None:
    blocks = Blocks()
    blocks.add(0, 0, "s", reads=(at("i0", 0),), send=Connection(0, 5, 0))
    schedule = blocks.schedule("broken", contracts.contract("broadcast", 2, 1, in_place=True))
    with pytest.raises(InputError, match="peer 5"):
        schedule_cost(schedule, flat(2), 1e6)

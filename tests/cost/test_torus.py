"""Collectives on a whole torus: the rotated programs run on values, and what they then cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.bounds import groups_model, priced_bound_s, regular_model
from p2smt.cost.link_bounds import link_bound_s
from p2smt.cost.step_time import StepTime
from p2smt.programs.program import Grouping
from tests.oracles import cost as oracle
from tests.tiers import examples_of

Dims = tuple[int, ...]
Spot = tuple[int, ...]
MIB = 2**20
SIMPLE = (Piece("simple", 1.0, 1.0),)


def torus(dims: Dims, inside: int = 1) -> Topology:
    """Latency 1, bandwidth 1; ``inside``: devices that share the links of a corner."""
    levels = [Level("chip", int(np.prod(dims)), Link(LinkKind.TORUS, SIMPLE, torus=dims))]
    if inside > 1:
        levels.append(Level("core", inside, Link(LinkKind.SWITCH, SIMPLE)))
    return Topology("torus", tuple(levels), algorithms=(Algorithm.TORUS,))


def whole(topology: Topology, operation: Collective, payload: float) -> StepTime:
    digits = tuple(((level.size, 1),) if level.link.torus else () for level in topology.levels)
    return regular_model(topology, digits, Grouping(0, 1), operation).time(payload)


# The programs themselves, chunk by chunk: what each link carries in each round. -------------


class Machine:
    """A corner's vector is a row of values; rounds are counted, and what links carry in them."""

    def __init__(self, dims: Dims, pieces: int) -> None:
        self.dims, self.spots = dims, list(product(*map(range, dims)))
        shape = (len(self.spots), pieces)
        start = np.random.default_rng(0).integers(0, 1000, shape)
        self.total = start.sum(axis=0)
        self.value = {spot: start[i].copy() for i, spot in enumerate(self.spots)}

    def scatter(self, chunks: dict[Spot, np.ndarray], d: int) -> tuple[int, float]:
        """Along one dimension: rings of half the chunks each way; returns rounds and worst load.

        ``chunks``: the pieces that each corner has by now; each keeps its own part of these.
        """
        length, load = self.dims[d], Counter[tuple[Spot, int]]()
        if length == 1:
            return 0, 0.0
        for spot in self.spots:
            parts = np.split(chunks[spot], length)
            chunks[spot] = parts[spot[d]]
        ways = (1,) if length == 2 else (1, -1)
        line = {s: [(*s[:d], i, *s[d + 1 :]) for i in range(length)] for s in self.spots}
        arrived = {s: self.value[s].copy() for s in self.spots}
        for spot in self.spots:
            halves = np.array_split(chunks[spot], len(ways))
            for way, half in zip(ways, halves, strict=True):
                for hop in range(1, length):  # starts at the next corner, ends here
                    source = line[spot][(spot[d] + way * hop) % length]
                    load[source, -way] += len(half)
                    arrived[spot][half] += self.value[source][half]
        self.value = arrived
        return length - 1, max(load.values())


def rotated(dims: Dims, pieces: int) -> tuple[Machine, int, float]:
    """A reduce-scatter by all rotations at once, phase by phase: rounds and loads that add up."""
    machine = Machine(dims, pieces)
    turning = [d for d, length in enumerate(dims) if length > 1]
    parts = np.split(np.arange(pieces), len(turning))
    kept = [dict.fromkeys(machine.spots, part) for part in parts]
    hops, load = 0, 0.0
    for phase in range(len(turning)):
        every = [
            machine.scatter(kept[r], turning[(r + phase) % len(turning)])
            for r in range(len(turning))
        ]
        hops += max(rounds for rounds, _ in every)
        load += max(carried for _, carried in every)
    for spot in machine.spots:
        for part in kept:
            assert (machine.value[spot][part[spot]] == machine.total[part[spot]]).all()
    return machine, hops, load / pieces


@pytest.mark.parametrize("dims", [(4, 4, 4), (3, 3), (2, 2), (4, 2), (2, 3, 1), (5, 3), (6,)])
def test_the_price_is_that_of_programs_that_reduce_the_right_values(dims: Dims) -> None:
    devices = int(np.prod(dims))
    pieces = 2 * devices * sum(length > 1 for length in dims)
    _, hops, load = rotated(dims, pieces)
    time = whole(torus(dims), Collective.REDUCE_SCATTER, 1000.0)
    assert time.algorithm == "torus"
    assert time.seconds == pytest.approx(hops + 1000 * load)
    gathered = whole(torus(dims), Collective.ALL_GATHER, 1000.0)
    both = whole(torus(dims), Collective.ALL_REDUCE, 1000.0)
    assert (gathered.seconds, both.seconds) == pytest.approx((time.seconds, 2 * time.seconds))


def test_every_device_keeps_a_part_of_its_own() -> None:
    """What is left with the corners after a reduce-scatter is the vector, each piece once."""
    machine, _, _ = rotated((4, 2), 32)
    right = sum((machine.value[spot] == machine.total).astype(int) for spot in machine.spots)
    assert (right == 1).all()


# By hand. -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "microseconds"),
    [
        (64 * 1024, 18 + 0.21504),  # 2 x 3 x 3 hops; 21/64 of the payload over 100 GB/s
        (MIB, 18 + 3.44064),
        (64 * MIB, 18 + 220.20096),
        (4096 * MIB, 18 + 14092.86144),
    ],
)
def test_a_cube_of_tpus(size: int, microseconds: float) -> None:
    time = whole(load_topology("tpu-v5p:1"), Collective.ALL_REDUCE, size)
    assert time.seconds == pytest.approx(microseconds * 1e-6)
    assert time.algorithm == "torus"


def test_on_a_cube_the_links_allow_nothing_faster_but_for_the_hops() -> None:
    topology, digits = load_topology("tpu-v5p:1"), ((), ((64, 1),))
    links_s = link_bound_s(topology, digits, RequestKind.ALL_REDUCE, 64 * MIB)
    time = whole(topology, Collective.ALL_REDUCE, 64 * MIB)
    assert time.wire_s == pytest.approx(links_s)
    bound_s = priced_bound_s(topology, digits, RequestKind.ALL_REDUCE, 64 * MIB)
    assert bound_s == pytest.approx(time.seconds)


def test_lengths_that_differ_wait_for_the_longest() -> None:
    """4 x 2: half the vector goes 4, 2, the other half 2, 4.  Per pass two phases of 3 hops.

    Phase one: (1/2)(3/4)/2 = 3/16 against (1/2)(1/2) = 1/4; phase two: (1/8)(1/2) = 1/16 against
    (1/4)(3/4)/2 = 3/32.
    """
    time = whole(torus((4, 2)), Collective.REDUCE_SCATTER, 64.0)
    assert time.seconds == pytest.approx(6 + 64 * (1 / 4 + 3 / 32))


def test_groups_that_share_corners_share_their_links() -> None:
    one, four = (whole(torus((3, 3), cores), Collective.ALL_REDUCE, 900.0) for cores in (1, 4))
    assert four.wire_s == pytest.approx(4 * one.wire_s)
    assert four.seconds - four.wire_s == one.seconds - one.wire_s == 8


@pytest.mark.parametrize(
    "groups",
    [
        [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]],  # rows
        [[0, 1, 2], [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]],
        [list(range(15))],
    ],
)
def test_only_a_whole_torus_has_the_rotations(groups: list[list[int]]) -> None:
    model = groups_model(torus((4, 4)), [np.array([row]) for row in groups], Collective.ALL_REDUCE)
    assert {way.algorithm for way in model.ways} == {"ring"}


@pytest.mark.parametrize("operation", [Collective.REDUCE, Collective.BROADCAST])
def test_what_has_a_root_goes_by_a_chain(operation: Collective) -> None:
    assert whole(torus((4, 4)), operation, 1.0).algorithm == "ring"


@settings(max_examples=examples_of(60))
@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.sampled_from([0.0, 1.0, 1e6]))
def test_no_bound_is_above_it(dims: list[int], payload: float) -> None:
    size = int(np.prod(dims))
    if size == 1:
        return
    topology, digits = torus(tuple(dims)), (((size, 1),),)
    for kind, operation in _KINDS:
        time = whole(topology, operation, payload)
        links_s = link_bound_s(topology, digits, kind, int(payload))
        bound_s = priced_bound_s(topology, digits, kind, int(payload))
        assert links_s <= time.wire_s * (1 + 1e-9) + 1e-12
        assert bound_s <= time.seconds * (1 + 1e-9)


@settings(max_examples=examples_of(60))
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(1, 3),
    st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True),
    st.sampled_from(Collective),
)
def test_any_groups_on_tori_cost_their_messages(
    dims: list[int], inside: int, cores: list[int], operation: Collective
) -> None:
    """Of every core one group or none, device by device, by whatever may run there."""
    size = int(np.prod(dims))
    topology = replace(torus(tuple(dims), inside), algorithms=tuple(Algorithm))
    rows = [[chip * inside + core for chip in range(size)] for core in cores if core < inside]
    if not rows or size == 1:
        return
    seconds, ways = oracle.best_seconds(topology, rows, operation, 997.0)
    model = groups_model(topology, [np.array(rows)], operation)
    assert {way.algorithm for way in model.ways} == {
        way.value for way in ways if isinstance(way, Algorithm)
    }
    assert model.time(997.0).seconds == pytest.approx(seconds)


_KINDS = (
    (RequestKind.ALL_REDUCE, Collective.ALL_REDUCE),
    (RequestKind.REDUCE_SCATTER, Collective.REDUCE_SCATTER),
    (RequestKind.ALL_GATHER, Collective.ALL_GATHER),
)

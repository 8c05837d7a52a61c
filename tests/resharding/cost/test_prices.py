"""Prices of steps: those of the collectives that they are, on all groups at once."""

from __future__ import annotations

import math

import pytest

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.programs.program import Grouping
from p2smt.resharding.states import ArrayState
from p2smt.resharding.step_prices import StepPrices, payload_bytes
from p2smt.resharding.steps import (
    AllGather,
    AllReduce,
    AllToAll,
    ArrayStep,
    LocalSlice,
    ReduceScatter,
    StepKind,
)
from p2smt.resharding.types import Uneven
from tests.resharding.types import first_ends

PRESETS = ("azure-ndv4", "dgx-h100", "aws-p4d", "mi300x", "aws-p3dn", "gb200-nvl72")
KINDS = (
    (StepKind.ALL_GATHER, Collective.ALL_GATHER),
    (StepKind.REDUCE_SCATTER, Collective.REDUCE_SCATTER),
    (StepKind.ALL_REDUCE, Collective.ALL_REDUCE),
)


def cluster(preset: str, nominal: bool) -> Topology:
    topology = load_topology(preset)
    if preset == "gb200-nvl72":
        return topology
    return topology.nominal().cheapest() if nominal else topology


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("nominal", [False, True])
def test_a_collective_costs_what_a_program_s_step_does(preset: str, nominal: bool) -> None:
    """Along each axis, and along both, of a placement on all devices."""
    topology = cluster(preset, nominal)
    outer, inner = topology.sizes[0], topology.devices // topology.sizes[0]
    columns = [(1, size) for size in topology.sizes[1:]]
    placement = Placement(tuple(zip((outer, 1), *columns, strict=True)))
    frame = first_ends(f"dp={outer},tp={inner}", (topology.devices,) * 2, "R,R", "R,R").frame
    prices = StepPrices(topology, frame)
    for axes in ((0,), (1,), (0, 1)):
        digits = tuple(i for i, digit in enumerate(frame.digits) if digit.axis in axes)
        scene = Scene.of(topology, placement, axes)
        whole = Grouping(0, scene.hierarchy.depth)
        for payload in (512, 2**24):
            for kind, collective in KINDS:
                found = prices.collective(kind, digits, payload)
                expected = scene.step_time(collective, whole, payload)
                assert math.isclose(found.seconds, expected.seconds, rel_tol=1e-9), (kind, axes)
            found = prices.collective(StepKind.ALL_TO_ALL, digits, payload)
            single = scene.fixed_time(RequestKind.ALL_TO_ALL, payload)
            assert math.isclose(found.seconds, single.seconds, rel_tol=1e-9)


@pytest.mark.parametrize("preset", PRESETS[:3])
def test_parts_of_an_axis_cost_what_slices_of_a_program_do(preset: str) -> None:
    """P(a) over two nodes of eight: reduce-scatter inside, all-reduce across, all-gather inside."""
    topology = load_topology(preset)
    ends = first_ends("a=16", (2**16,), "R;P(a)", "R")
    frame, prices = ends.frame, StepPrices(topology, ends.frame)
    apart = ArrayState(((1, 2, 3),), (0,))
    steps: list[ArrayStep] = [
        ReduceScatter(ends.source, apart),
        AllReduce(apart, ArrayState(apart.dims)),
        AllGather(ArrayState(apart.dims), ends.target),
    ]
    scene = Scene.of(topology, Placement(((2, 8),)), (0,))
    inside, across, size = Grouping(1, 2), Grouping(0, 1), 2**18
    for step, (collective, grouping, payload) in zip(
        steps,
        (
            (Collective.REDUCE_SCATTER, inside, size),
            (Collective.ALL_REDUCE, across, size / 8),
            (Collective.ALL_GATHER, inside, size),
        ),
        strict=True,
    ):
        step.check(frame)
        assert payload_bytes(frame, step) == payload
        expected = scene.step_time(collective, grouping, payload)
        assert math.isclose(prices.step(step).seconds, expected.seconds, rel_tol=1e-9)


def test_payloads_are_inputs_but_of_a_gather_its_output() -> None:
    ends = first_ends("a=2,b=4", (16, 16), "S(a),S(b)", "R,S(b)")
    frame, whole = ends.frame, ArrayState(((), ()))
    pair, both = ArrayState(((0,), ())), ArrayState(((0,), (1, 2)))
    assert payload_bytes(frame, AllGather(both, pair)) == 512
    assert payload_bytes(frame, LocalSlice(pair, both)) == 0
    assert payload_bytes(frame, AllToAll(both, ArrayState(((0, 1, 2), ())))) == 128
    part = ArrayState(((0,), ()), (1, 2))
    assert payload_bytes(frame, ReduceScatter(part, both)) == 512
    assert payload_bytes(frame, AllReduce(part, pair)) == 512
    prices = StepPrices(load_topology("dgx-h100"), frame)
    assert prices.step(LocalSlice(whole, pair)).seconds == 0.0
    time = prices.step(AllGather(both, pair))
    assert time == prices.collective(StepKind.ALL_GATHER, (1, 2), 512)


def test_of_nested_chunks_the_largest_counts() -> None:
    """5 rows over 4 are 2, 2, 1 and none: the last device receives all 5, in 3 of 4 messages."""
    frame = first_ends("a=4", (5, 7), "S(a),R", "R,R", Uneven.NESTED).frame
    rows, columns, whole = (ArrayState(dims) for dims in (((0,), ()), ((), (0,)), ((), ())))
    part = ArrayState(((), ()), (0,))
    largest_rows = 2 * 7 * 4  # of columns 5 * 2 * 4
    for step, payload in (
        (AllGather(rows, whole), 4 * largest_rows),
        (ReduceScatter(part, rows), 4 * largest_rows),
        (AllToAll(rows, columns), largest_rows),
        (AllToAll(columns, rows), largest_rows),
        (LocalSlice(whole, rows), 0),
        (AllReduce(part, whole), 5 * 7 * 4),
    ):
        step.check(frame)
        assert payload_bytes(frame, step) == payload


def test_members_are_in_the_order_of_mesh_positions() -> None:
    """A library that follows the communicator strictly pays for a ring that leaves its node."""
    topology = load_topology("mi300x")
    ends = first_ends("a=16", (64,), "S(a)", "R")
    shuffled = tuple(range(0, 16, 2)) + tuple(range(1, 16, 2))
    zigzag = tuple(d for pair in zip(range(8), range(8, 16), strict=True) for d in pair)
    assert ends.frame.groups((0, 1, 2, 3)).tolist() == [list(range(16))]
    for order in (shuffled, zigzag):
        frame = type(ends.frame)(
            ends.frame.mesh, ends.frame.digits, (order,), (64,), ends.frame.element
        )
        assert frame.groups((0, 1, 2, 3)).tolist() == [list(order)]
        assert (
            StepPrices(topology, frame).collective(StepKind.ALL_GATHER, (0, 1, 2, 3), 2**26).seconds
            >= StepPrices(topology, ends.frame)
            .collective(StepKind.ALL_GATHER, (0, 1, 2, 3), 2**26)
            .seconds
        )


def test_devices_that_the_topology_lacks_are_refused() -> None:
    frame = first_ends("a=32", (32,), "R", "S(a)").frame
    with pytest.raises(InputError, match=r"a mesh on device 16: .* has 16 devices"):
        StepPrices(load_topology("dgx-h100"), frame)

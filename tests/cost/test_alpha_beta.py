"""The closed form of the cost against brute force, device by device, and known numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.topology import ANY_ALGORITHM, Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.bounds import regular_model, relevant_digits, send_model, step_model
from p2smt.cost.loads.footprint import Digits, digits_of
from p2smt.cost.loads.footprint_explicit import explicit_send
from p2smt.parallelism.placement import Placement
from p2smt.programs.program import Grouping
from tests.cost.steps import OPERATIONS, PAYLOADS, only, same, same_ways, steps
from tests.oracles import cost as oracle
from tests.strategies.topologies import Case, cases
from tests.tiers import examples_of

# Against the oracle -----------------------------------------------------------------------


@settings(max_examples=examples_of(120))
@given(cases(), PAYLOADS)
def test_closed_form_is_the_cost_of_all_messages(case: Case, payload: float) -> None:
    for digits, grouping, groups in steps(case):
        for operation in OPERATIONS:
            model = regular_model(case.topology, digits, grouping, operation)
            best, ways = oracle.best_seconds(case.topology, groups.tolist(), operation, payload)
            assert same(model.time(payload).seconds, best), (grouping, operation, ways)


@settings(max_examples=examples_of(250))
@given(cases(), PAYLOADS, st.sampled_from(Algorithm))
def test_each_algorithm_costs_its_messages(
    case: Case, payload: float, algorithm: Algorithm
) -> None:
    topology = only(case.topology, algorithm)
    for digits, grouping, groups in steps(case):
        for operation in Collective:
            time = regular_model(topology, digits, grouping, operation).time(payload)
            chosen = Algorithm(time.algorithm)
            allowed = oracle.applies(topology, groups.tolist(), operation, algorithm)
            assert chosen is (algorithm if allowed else Algorithm.RING)
            expected = oracle.step_seconds(topology, groups.tolist(), operation, chosen, payload)
            assert same(time.seconds, expected), (grouping, operation)


@settings(max_examples=examples_of(100))
@given(cases(), PAYLOADS)
def test_a_step_knows_the_wire_time_of_each_level(case: Case, payload: float) -> None:
    for digits, grouping, groups in steps(case):
        for operation in Collective:
            time = regular_model(case.topology, digits, grouping, operation).time(payload)
            way = Algorithm(time.algorithm)
            expected = oracle.level_seconds(
                case.topology, groups.tolist(), operation, way, time.protocol, payload
            )
            assert time.level_wire_s == pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert max(time.level_wire_s) == time.wire_s


@settings(max_examples=examples_of(60))
@given(cases(), PAYLOADS, st.integers(2, 64))
def test_a_step_in_parts_is_never_faster(case: Case, payload: float, parts: int) -> None:
    for digits, grouping, _ in steps(case):
        for operation in OPERATIONS:
            model = regular_model(case.topology, digits, grouping, operation)
            whole, part = model.time(payload).seconds, model.time(payload / parts).seconds
            assert parts * part >= whole * (1 - 1e-12)


@settings(max_examples=examples_of(150))
@given(cases(), PAYLOADS)
def test_send_costs_its_messages(case: Case, payload: float) -> None:
    digits = digits_of(case.placement, case.axes)
    groups = case.placement.groups(case.axes)
    closed = send_model(case.topology, digits, RequestKind.SEND).time(payload).seconds
    footprint = explicit_send(case.topology, groups[:, :-1].ravel(), groups[:, 1:].ravel())
    explicit = step_model(case.topology, footprint, RequestKind.SEND).time(payload).seconds
    best, _ = oracle.best_seconds(case.topology, groups.tolist(), RequestKind.SEND, payload)
    assert same(closed, best)
    assert same(explicit, best)


# Properties -------------------------------------------------------------------------------


@settings(max_examples=examples_of(200))
@given(cases(), PAYLOADS)
def test_dropped_strides_never_change_a_cost(case: Case, payload: float) -> None:
    for digits, grouping, _ in steps(case):
        relevant = relevant_digits(case.topology, digits)
        for operation in OPERATIONS:
            one = regular_model(case.topology, digits, grouping, operation)
            other = regular_model(case.topology, relevant, grouping, operation)
            assert same_ways(one, other, payload), (grouping, operation)
    digits = digits_of(case.placement, case.axes)
    one = send_model(case.topology, digits, RequestKind.SEND)
    relevant = relevant_digits(case.topology, digits)
    assert same_ways(one, send_model(case.topology, relevant, RequestKind.SEND), payload)


@settings(max_examples=examples_of(60))
@given(cases(), st.lists(st.floats(0, 1e12), min_size=2, max_size=4))
def test_more_bytes_never_cost_less(case: Case, payloads: list[float]) -> None:
    for digits, grouping, _ in steps(case):
        for operation in OPERATIONS:
            model = regular_model(case.topology, digits, grouping, operation)
            times = [model.time(payload).seconds for payload in sorted(payloads)]
            assert all(a <= b * (1 + 1e-12) for a, b in pairwise(times))


# Known numbers ----------------------------------------------------------------------------

ALPHA, N = 3.0, 1000.0
BETA = 0.25
L = 3  # log2 of eight ranks


def switch(bandwidth: float = 1 / BETA, latency: float = ALPHA, **options: Any) -> Link:
    return Link(LinkKind.SWITCH, (Piece("simple", latency, bandwidth),), **options)


def cluster(*levels: tuple[int, Link], algorithms: tuple[Algorithm, ...]) -> Topology:
    made = tuple(Level(f"l{j}", size, link) for j, (size, link) in enumerate(levels))
    return Topology("known", made, algorithms)


TWO_TREES = N * BETA + 2 * L * ALPHA + math.sqrt(8 * ALPHA * BETA * N * L)


@pytest.mark.parametrize(
    ("algorithm", "operation", "seconds"),
    [
        (Algorithm.RING, Collective.ALL_REDUCE, 14 * ALPHA + 14 / 8 * N * BETA),
        (Algorithm.RING, Collective.REDUCE_SCATTER, 7 * ALPHA + 7 / 8 * N * BETA),
        (Algorithm.RING, Collective.ALL_GATHER, 7 * ALPHA + 7 / 8 * N * BETA),
        (Algorithm.RING, Collective.BROADCAST, 7 * ALPHA + N * BETA),
        (Algorithm.HALVING_DOUBLING, Collective.ALL_REDUCE, 2 * L * ALPHA + 14 / 8 * N * BETA),
        (Algorithm.HALVING_DOUBLING, Collective.REDUCE_SCATTER, L * ALPHA + 7 / 8 * N * BETA),
        (Algorithm.HALVING_DOUBLING, Collective.ALL_GATHER, L * ALPHA + 7 / 8 * N * BETA),
        (Algorithm.TREE, Collective.ALL_REDUCE, 2 * TWO_TREES),
        (Algorithm.TREE, Collective.BROADCAST, TWO_TREES),
        (Algorithm.TREE, Collective.REDUCE, TWO_TREES),
        (Algorithm.DIRECT, Collective.ALL_REDUCE, 2 * ALPHA + 14 / 8 * N * BETA),
        (Algorithm.DIRECT, Collective.BROADCAST, ALPHA + 7 * N * BETA),
        (Algorithm.ONE_SHOT, Collective.ALL_REDUCE, ALPHA + 7 * N * BETA),
        (Algorithm.BINOMIAL, Collective.BROADCAST, L * ALPHA + L * N * BETA),
        (Algorithm.BINOMIAL, Collective.REDUCE, L * ALPHA + L * N * BETA),
        (Algorithm.SCATTER_GATHER, Collective.REDUCE, 8 * ALPHA + 14 / 8 * N * BETA),
        (Algorithm.SCATTER_GATHER, Collective.BROADCAST, 8 * ALPHA + 14 / 8 * N * BETA),
        (Algorithm.DIRECT, RequestKind.ALL_TO_ALL, ALPHA + 7 / 8 * N * BETA),
        (Algorithm.RING, RequestKind.SEND, ALPHA + N * BETA),
    ],
)
def test_formulas_on_one_switch(algorithm: Algorithm, operation: Operation, seconds: float) -> None:
    topology, digits = cluster((8, switch()), algorithms=(algorithm,)), (((8, 1),),)
    if operation is RequestKind.SEND:
        model = send_model(topology, digits, operation)
    else:
        model = regular_model(topology, digits, Grouping(0, 1), operation)
    assert model.time(N).seconds == pytest.approx(seconds)


def test_hierarchical_all_reduce() -> None:
    """Reduce-scatter from the inside out, then all-gather back: 4 nodes of 3 of 2 devices."""
    betas, alphas, splits = (0.5, 0.25, 0.125), (7.0, 5.0, 3.0), (4, 3, 2)
    links = [switch(1 / b, a) for a, b in zip(alphas, betas, strict=True)]
    topology = cluster(*zip(splits, links, strict=True), algorithms=(Algorithm.RING,))
    digits, seconds, expected, product = (((4, 1),), ((3, 1),), ((2, 1),)), 0.0, 0.0, 1
    for level in (2, 1, 0):
        k = splits[level]
        step = regular_model(topology, digits, Grouping(level, level + 1), Collective.ALL_GATHER)
        seconds += 2 * step.time(N / product).seconds
        sharing = product  # one group per device below an entity
        product *= k
        wire = 2 * N * (k - 1) / product * betas[level] * sharing
        expected += 2 * (k - 1) * alphas[level] + wire
    assert seconds == pytest.approx(expected)


def test_a_share_of_a_device_holds_inside_its_level() -> None:
    """A faster link gains nothing if a device sends no more, but for rings over two nodes.

    A ring inside is closed: it goes round in both directions, and a device sends on two links.
    """
    free = Link(LinkKind.RING, (Piece("simple", 0.0, 1.0),))
    capped = replace(free, device_bandwidth_bytes_per_s=1.0)
    half = replace(free, pieces=(Piece("simple", 0.0, 2.0),), device_bandwidth_bytes_per_s=1.0)
    inside, across = (((), ((4, 1),)), Grouping(0, 1)), ((((2, 1),), ((4, 1),)), Grouping(0, 2))

    def seconds(link: Link, digits: tuple[Digits, ...], grouping: Grouping) -> float:
        topology = cluster((2, switch(1e9, 0.0)), (4, link), algorithms=(Algorithm.RING,))
        return regular_model(topology, digits, grouping, Collective.ALL_REDUCE).time(120).seconds

    assert seconds(free, *inside) == 90
    assert seconds(capped, *inside) == seconds(half, *inside) == 180
    assert seconds(half, *across) == seconds(free, *across) / 2


def test_a_binomial_tree_pays_for_what_its_rounds_cross() -> None:
    """Six ranks in two nodes: 0-1 inside; 0-2 and 1-3; 0-4 and 1-5.  Three leave node 0."""
    topology = cluster(
        (2, switch(2.0, 10.0)), (3, switch(1e9, 1.0)), algorithms=(Algorithm.BINOMIAL,)
    )
    digits = (((2, 1),), ((3, 1),))
    for operation in (Collective.BROADCAST, Collective.REDUCE):
        time = regular_model(topology, digits, Grouping(0, 2), operation).time(N)
        assert (time.algorithm, time.load_bytes) == ("binomial", 3 * N)
        assert time.seconds == 3 * N / 2.0 + 10.0 + 10.0 + 1.0


def test_a_library_always_runs_the_algorithm_of_a_collective() -> None:
    library = (
        (Collective.BROADCAST, Algorithm.BINOMIAL),
        (Collective.REDUCE, Algorithm.SCATTER_GATHER),
        (Collective.ALL_GATHER, Algorithm.BINOMIAL),
    )
    topology = replace(cluster((8, switch()), algorithms=ANY_ALGORITHM), overrides=library)

    def algorithm(of: Topology, operation: Operation) -> str:
        return regular_model(of, (((8, 1),),), Grouping(0, 1), operation).time(N).algorithm

    assert algorithm(topology, Collective.BROADCAST) == "binomial"
    assert algorithm(topology, Collective.REDUCE) == "scatter-gather"
    assert algorithm(topology, Collective.ALL_GATHER) == "ring"  # no binomial all-gather
    assert algorithm(topology, Collective.REDUCE_SCATTER) == "direct"
    free = topology.running((Algorithm.TREE,))
    assert {algorithm(free, o) for o in (Collective.BROADCAST, Collective.REDUCE)} == {"tree"}


A100 = cluster((4, switch(8e9, 0.0)), (16, switch(270e9, 0.0)), algorithms=(Algorithm.RING,))
NVLINKS = Link(LinkKind.RING, (Piece("simple", 0.0, 135e9),))
V100 = cluster((4, switch(8e9, 0.0)), (8, NVLINKS), algorithms=(Algorithm.RING,))


@pytest.mark.parametrize(
    ("topology", "inside", "across", "ratio"),
    [
        (A100, ((1, 4), (4, 4)), ((4, 1), (1, 16)), 16 * 270 / 8),  # 540: sixteen share a card
        # two groups of four, two links apart, on the same ring
        (V100, ((1, 4), (4, 2)), ((4, 1), (1, 8)), 8 * 135 / 8 / 2),
    ],
)
def test_placement_decides_who_shares_the_network(
    topology: Topology,
    inside: tuple[tuple[int, ...], ...],
    across: tuple[tuple[int, ...], ...],
    ratio: float,
) -> None:
    def seconds(matrix: tuple[tuple[int, ...], ...]) -> float:
        digits = digits_of(Placement(matrix), [0])
        model = regular_model(topology, digits, Grouping(0, 1), Collective.ALL_REDUCE)
        return model.time(float(2**31)).seconds

    assert seconds(across) / seconds(inside) == pytest.approx(ratio)


def test_a_step_names_its_bottleneck() -> None:
    digits = digits_of(Placement(((4, 1), (1, 16))), [0])
    time = regular_model(A100, digits, Grouping(0, 1), Collective.ALL_REDUCE).time(8e9)
    assert (time.level, time.algorithm, time.protocol) == (0, "ring", "simple")
    assert time.load_bytes == pytest.approx(16 * 1.5 * 8e9)
    assert time.wire_s == time.seconds == pytest.approx(16 * 1.5)


def test_a_group_of_one_device_costs_nothing() -> None:
    for operation in OPERATIONS:
        time = regular_model(A100, ((), ()), Grouping(0, 0), operation).time(N)
        assert (time.seconds, time.level, time.algorithm) == (0.0, None, "none")


def test_the_best_protocol_changes_with_the_payload() -> None:
    pieces = (Piece("simple", 10.0, 100.0), Piece("ll", 1.0, 10.0))
    topology = cluster((2, Link(LinkKind.SWITCH, pieces)), algorithms=(Algorithm.RING,))
    model = regular_model(topology, (((2, 1),),), Grouping(0, 1), Collective.ALL_GATHER)
    assert [model.time(n).protocol for n in (0.0, 100.0, 1000.0)] == ["ll", "ll", "simple"]
    measured = replace(pieces[0], latency_s=0.5)
    link = replace(topology.levels[0].link, measured=((Collective.ALL_GATHER, (measured,)),))
    own = cluster((2, link), algorithms=(Algorithm.RING,))
    model = regular_model(own, (((2, 1),),), Grouping(0, 1), Collective.ALL_GATHER)
    assert model.time(0.0).seconds == 0.5


def test_positions_decide_which_ports_the_masters_reach() -> None:
    """Devices 0, 1 of a node share one of its two ports, devices 0, 2 have one each."""
    topology = cluster((2, switch(ports=2)), (4, switch(1e6)), algorithms=(Algorithm.RING,))
    masters = Grouping(0, 1, master=True)
    for stride, load in ((1, 1.0), (2, 2.0)):
        digits = (((2, 1),), ((2, stride),))
        for kept in (digits, relevant_digits(topology, digits)):
            model = regular_model(topology, kept, masters, Collective.ALL_REDUCE)
            assert model.time(N).load_bytes == pytest.approx(load * N)

"""No program of the language beats the bounds; some come close."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import DIRECT, Collective, RequestKind
from p2smt.cost.bounds import priced_bound_s, regular_model, relevant_digits, send_model
from p2smt.cost.loads.footprint import Digits, digits_of
from p2smt.encodings.program.reachable import ReachableTable, build_table
from p2smt.encodings.program.reachable_search import GOAL
from p2smt.parallelism.placement import Placement
from p2smt.problems.placement import InstructionSet, ProgramProblem
from p2smt.programs.program import Grouping
from tests.strategies.topologies import Case, cases
from tests.tiers import examples_of

KINDS = [kind for kind in RequestKind if kind.has_programs]
PAYLOADS = st.sampled_from([0, 1, 12, 1000, 10**6])


def factors_of(digits: tuple[Digits, ...]) -> tuple[int, ...]:
    return tuple(f for f in (math.prod(size for size, _ in level) for level in digits) if f > 1)


@cache
def table_of(kind: RequestKind, factors: tuple[int, ...], length: int) -> ReachableTable:
    instructions = InstructionSet.of(len(factors))
    return build_table(ProgramProblem(demand_of(kind), factors, length, instructions))


def cheapest_s(
    topology: Topology, digits: tuple[Digits, ...], kind: RequestKind, payload: int, length: int
) -> float:
    """The least time over all programs up to a length, by dynamic programming."""
    factors = factors_of(digits)
    table, items = table_of(kind, factors, length), InstructionSet.of(len(factors)).items
    best = {GOAL: 0.0}
    for _ in range(length):  # best[node]: from the node to the goal in so many steps or fewer
        found = dict(best)
        for node, arcs in table.arcs.items():
            for arc in arcs:
                if arc.target in best:
                    collective, grouping = items[arc.instruction]
                    model = regular_model(topology, digits, grouping, collective)
                    step = model.time(payload * arc.rows / math.prod(factors)).seconds
                    found[node] = min(found.get(node, math.inf), step + best[arc.target])
        best = found
    return best[table.start]


def at_most(bound: float, seconds: float) -> bool:
    return bound <= seconds * (1 + 1e-9) + 1e-12


@settings(max_examples=examples_of(400))
@given(cases(), PAYLOADS)
def test_no_program_beats_the_bound(case: Case, payload: int) -> None:
    digits = digits_of(case.placement, case.axes)
    factors = factors_of(digits)
    for kind in KINDS if factors else []:
        bound = priced_bound_s(case.topology, digits, kind, payload)
        best = cheapest_s(case.topology, digits, kind, payload, 4 if len(factors) < 3 else 3)
        assert at_most(bound, best), kind


@settings(max_examples=examples_of(100))
@given(cases(), PAYLOADS, st.sampled_from(RequestKind))
def test_the_bound_needs_only_the_relevant_digits(
    case: Case, payload: int, kind: RequestKind
) -> None:
    digits = digits_of(case.placement, case.axes)
    relevant = relevant_digits(case.topology, digits)
    one, other = (priced_bound_s(case.topology, d, kind, payload) for d in (digits, relevant))
    assert one == pytest.approx(other, rel=1e-12)


@settings(max_examples=examples_of(60))
@given(cases(), PAYLOADS)
def test_requests_of_one_step_are_their_own_bound(case: Case, payload: int) -> None:
    topology, digits = case.topology, digits_of(case.placement, case.axes)
    whole = Grouping(0, len(factors_of(digits)))
    kind = RequestKind.ALL_TO_ALL
    exchange = regular_model(topology, digits, whole, kind).time(payload).seconds
    assert priced_bound_s(topology, digits, kind, payload) == exchange
    send = send_model(topology, digits, RequestKind.SEND).time(payload).seconds
    assert priced_bound_s(topology, digits, RequestKind.SEND, payload) == send


# Known numbers: latency 1 s and 1 byte/s on every link, 120 bytes ------------------------


def cluster(*sizes: int, **options: object) -> Topology:
    link = Link(LinkKind.SWITCH, (Piece("simple", 1.0, 1.0),))
    levels = tuple(Level(f"l{j}", size, link) for j, size in enumerate(sizes))
    return replace(Topology("t", levels), **options)  # type: ignore[arg-type]


def with_link(topology: Topology, level: int, **options: object) -> Topology:
    levels = list(topology.levels)
    levels[level] = replace(levels[level], link=replace(levels[level].link, **options))  # type: ignore[arg-type]
    return replace(topology, levels=tuple(levels))


def bound(
    topology: Topology, matrix: tuple[tuple[int, ...], ...], kind: RequestKind, payload: int = 120
) -> float:
    """The bound of a request along the first axis."""
    return priced_bound_s(topology, digits_of(Placement(matrix), [0]), kind, payload)


ALL = RequestKind.ALL_REDUCE
RING = (Algorithm.RING,)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("payload", [0, 120, 10**9])
def test_a_ring_on_one_switch_meets_the_bound(kind: RequestKind, payload: int) -> None:
    topology, digits = cluster(4, algorithms=RING), (((4, 1),),)
    step = regular_model(topology, digits, Grouping(0, 1), DIRECT[kind]).time(payload)
    assert priced_bound_s(topology, digits, kind, payload) == pytest.approx(step.seconds)


def test_groups_that_share_an_uplink_add_up() -> None:
    topology = cluster(2, 4, algorithms=RING)
    shared, alone = ((2, 1), (1, 4)), ((2, 4), (1, 1))
    assert bound(topology, shared, ALL) == 4 * 2 * 60 + 2
    assert bound(topology, alone, ALL) == 2 * 7 * 120 / 8 + 2 + 3  # its inner uplink is the worst
    ports = with_link(topology, 0, ports=4)
    assert bound(ports, shared, ALL) == 2 * 60 + 2


def test_a_device_draws_at_least_its_share() -> None:
    slow = {"device_bandwidth_bytes_per_s": 2.0}
    topology = with_link(cluster(2, 4, algorithms=RING), 0, ports=400, **slow)
    fast = with_link(topology, 1, ports=400)
    assert bound(fast, ((2, 1), (1, 4)), ALL) == 120 / 2.0 + 2
    assert bound(fast, ((2, 4), (1, 1)), ALL) == 120 / 4 / 2.0 + 2 + 3


def test_reducing_switches_weaken_the_bound_of_inner_levels_too() -> None:
    plain = cluster(4, 2)
    both = ((4, 2), (1, 1))
    inner = with_link(plain, 1, in_switch_members=2)
    outer = with_link(plain, 0, in_switch_members=2)
    assert bound(plain, both, ALL) - 1 == max(2 * 7 / 8, 2 * 3 / 4) * 120
    assert bound(inner, both, ALL) - 1 == 2 * 3 / 4 * 120
    assert bound(outer, both, ALL) - 1 == 120
    assert bound(outer, both, RequestKind.REDUCE_SCATTER) - 1 == 7 / 8 * 120
    few = with_link(plain, 0, in_switch_members=5)
    assert bound(few, both, ALL) == bound(plain, both, ALL)


def siblings(kind: LinkKind, size: int, torus: tuple[int, ...] = ()) -> Topology:
    link = Link(kind, (Piece("simple", 0.0, 1.0),), torus=torus)
    return Topology("t", (Level("l0", size, link),))


@pytest.mark.parametrize(
    ("topology", "matrix", "load"),
    [
        (siblings(LinkKind.RING, 4), ((4,), (1,)), 2 * 90 / 2),
        (siblings(LinkKind.RING, 2), ((2,), (1,)), 2 * 60),
        (siblings(LinkKind.RING, 8), ((4,), (2,)), 2 * 90 * 2 / 2),  # two hops each
        (siblings(LinkKind.FULL_MESH, 4), ((4,), (1,)), 2 * 90 / 3),
        (siblings(LinkKind.FULL_MESH, 4), ((2,), (2,)), 2 * 60),
        (siblings(LinkKind.TORUS, 8, (4, 2)), ((8,), (1,)), 2 * 105 / 3),
        (siblings(LinkKind.TORUS, 8, (4, 2)), ((4,), (2,)), 2 * 90 / 2),
        (siblings(LinkKind.TORUS, 8, (4, 1, 2)), ((1,), (8,)), 0.0),
    ],
)
def test_links_between_siblings(
    topology: Topology, matrix: tuple[tuple[int, ...], ...], load: float
) -> None:
    assert bound(topology, matrix, ALL) == pytest.approx(load)


def test_a_device_of_a_ring_sends_no_more_than_its_share() -> None:
    """With all links of a device as its share, a ring over all devices meets the bound."""
    ring, digits = siblings(LinkKind.RING, 8), (((8, 1),),)
    capped = with_link(ring, 0, device_bandwidth_bytes_per_s=1.0)
    step = regular_model(capped, digits, Grouping(0, 1), DIRECT[ALL]).time(120)
    assert bound(ring, ((8,), (1,)), ALL) == 105
    assert bound(capped, ((8,), (1,)), ALL) == pytest.approx(step.seconds) == 210


def test_siblings_may_meet_through_an_outer_level() -> None:
    ring = Level("ring", 4, Link(LinkKind.RING, (Piece("simple", 0.0, 1.0),)))
    topology = Topology("t", (*with_link(cluster(2), 0, ports=4).levels, ring), RING)
    assert (
        bound(topology, ((2, 4), (1, 1)), ALL) == 2 * 7 * 120 / (16 + 8) + 2
    )  # all links together


def test_one_protocol_gives_the_latency_and_another_the_bandwidth() -> None:
    pieces = (Piece("simple", 10.0, 2.0), Piece("ll", 1.0, 1.0))
    topology = with_link(cluster(2), 0, pieces=pieces)
    assert bound(topology, ((2,), (1,)), RequestKind.ALL_GATHER) == 60 / 2.0 + 1.0


@pytest.mark.parametrize(
    ("algorithms", "kind", "steps"),
    [
        (RING, ALL, 2 * 7),
        (RING, RequestKind.ALL_GATHER, 7),
        ((Algorithm.HALVING_DOUBLING,), ALL, 2 * 3),
        ((Algorithm.TREE,), ALL, 2 * 6),
        ((Algorithm.DIRECT,), ALL, 2),
        ((Algorithm.DIRECT,), RequestKind.REDUCE_SCATTER, 1),
        ((Algorithm.ONE_SHOT,), ALL, 1),
        ((Algorithm.BINOMIAL,), ALL, 2 * 3),
        ((Algorithm.SCATTER_GATHER,), ALL, 2 * 7),
    ],
)
def test_least_latencies(algorithms: tuple[Algorithm, ...], kind: RequestKind, steps: int) -> None:
    assert bound(cluster(8, algorithms=algorithms), ((8,), (1,)), kind, 0) == steps


def test_two_steps_across_the_outermost_level_are_counted_once_inside() -> None:
    assert bound(cluster(4, 3, algorithms=RING), ((4, 3), (1, 1)), ALL, 0) == 2 * 3 + 2


def test_a_binomial_tree_pays_fewer_rounds_inside() -> None:
    """Its rounds to 3 further on already leave an entity of 3, but one round stays inside."""
    tree = cluster(3, 3, algorithms=(Algorithm.BINOMIAL,))
    assert bound(tree, ((3, 3), (1, 1)), ALL, 0) == 2 * 2 + 1
    digits = (((3, 1),), ((3, 1),))
    model = regular_model(tree, digits, Grouping(0, 2), Collective.BROADCAST)
    assert model.time(0).seconds == 3 + 1  # distances 2, 4 and 8; 1


def test_the_library_counts_for_the_bound() -> None:
    fixed = ((Collective.BROADCAST, Algorithm.BINOMIAL),)
    library = cluster(8, algorithms=RING, overrides=fixed)
    assert bound(library, ((8,), (1,)), ALL, 0) == 2 * 3
    shot = replace(library, overrides=((Collective.ALL_REDUCE, Algorithm.ONE_SHOT),))
    assert bound(shot, ((8,), (1,)), ALL, 0) == 1
    reducing = with_link(cluster(4, algorithms=RING), 0, in_switch_members=2)
    library = replace(reducing, overrides=((Collective.ALL_REDUCE, Algorithm.IN_SWITCH),))
    assert bound(reducing, ((4,), (1,)), ALL) == 2 * 90 + 6
    assert bound(library, ((4,), (1,)), ALL) == 120 + 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", [(2,), (3,), (2, 3), (2, 2, 2)])
def test_the_shortest_program_is_the_single_collective(
    kind: RequestKind, factors: tuple[int, ...]
) -> None:
    table = table_of(kind, factors, 2)
    assert table.need[table.start] == 1


def test_one_device_needs_nothing() -> None:
    for kind in RequestKind:
        assert bound(cluster(2, 2), ((1, 1), (2, 2)), kind) == 0

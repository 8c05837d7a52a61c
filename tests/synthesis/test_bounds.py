"""Bounds on rounds a chunk: published figures, brute force, symmetry."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import islice, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.errors import InputError, OutOfTimeError
from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.flow import least_of_orbits
from p2smt.result import SearchLimits, StopWatch
from p2smt.solvers.ask import ask_prices
from p2smt.synthesis.bounds import (
    RateBound,
    bounded,
    flow_problem,
    flow_size,
    groups_of,
    rate_bound,
    steps_bound,
)
from p2smt.synthesis.certificate.certificate import (
    BoundedCollective,
    BoundKind,
    ScheduleCertificate,
    demands,
    is_demanded,
)
from p2smt.synthesis.certificate.check import check_certificate
from p2smt.synthesis.min_cuts import cut_crossing, edge_ends, pair_ends
from p2smt.synthesis.schedule_replay import dissemination_problem, spreads
from tests.synthesis.capacity_maps import maps_of
from tests.synthesis.oracle import has_schedule

FLOW, DEGREE, CUT, GOSSIP = BoundKind.FLOW, BoundKind.DEGREE, BoundKind.CUT, BoundKind.GOSSIP
DISTANCE = BoundKind.DISTANCE


def checked(bound: RateBound) -> RateBound:
    """The bound, whose certificate is read from its text and accepted."""
    claim = ScheduleCertificate.of_text(bound.certificate.text())
    assert claim == bound.certificate
    report = check_certificate(claim)
    assert report.valid, report.faults
    assert (report.proved, claim.bound, claim.kind) == (bound.value, bound.value, bound.kind)
    return bound


@pytest.mark.parametrize(
    ("name", "collective", "steps", "value", "kind"),
    [
        ("dgx1", "all-reduce", 1, "2", DISTANCE),
        ("dgx1", "all-reduce", 2, "1", FLOW),
        ("dgx1", "all-reduce", 3, "1/2", FLOW),
        ("dgx1", "all-reduce", 4, "1/3", FLOW),
        ("dgx1", "allreduce", None, "7/24", GOSSIP),
        ("dgx1", "all-gather", 2, "3/2", FLOW),
        ("dgx1", "all-gather", 3, "7/6", DEGREE),
        ("dgx1", "reduce_scatter", None, "7/6", DEGREE),
        ("dgx1", "all-to-all", 3, "8/3", FLOW),
        ("dgx1", "broadcast", 3, "9/22", FLOW),
        ("dgx1", "broadcast", None, "1/6", DEGREE),
        ("dgx1", "scatter", 2, "7/6", DEGREE),
        ("ring:5", "all-reduce", 2, "2", FLOW),
        ("ring:8", "all-reduce", None, "7/8", GOSSIP),
        ("cube:3", "all-reduce", 3, "5/6", FLOW),
        ("torus:8x8", "all-gather", 8, "63/4", DEGREE),
        ("mesh:4", "all-reduce", 2, "1/2", GOSSIP),
    ],
)
def test_bounds_that_are_known(
    name: str, collective: str, steps: int | None, value: str, kind: BoundKind
) -> None:
    found = checked(rate_bound(load_fabric(name), collective, steps))
    assert (found.value, found.kind) == (Fraction(value), kind)


def two_pairs() -> Fabric:
    """Ranks 0 and 1, and 2 and 3, joined by four, the pairs by one each way."""
    ways = [(0, 1, 4), (1, 0, 4), (2, 3, 4), (3, 2, 4), (1, 2, 1), (2, 1, 1)]
    capacities = tuple(Capacity(f"{a}->{b}", Fraction(rate)) for a, b, rate in ways)
    edges = sorted(FabricEdge(a, b, (n,)) for n, (a, b, _) in enumerate(ways))
    return Fabric("two-pairs", 4, capacities, tuple(edges))


@pytest.mark.parametrize(
    ("collective", "value", "kind"),
    [("all-gather", "2", CUT), ("all-to-all", "4", CUT), ("all-reduce", "1", CUT)],
)
def test_a_slow_link_between_parts_bounds_them(
    collective: str, value: str, kind: BoundKind
) -> None:
    found = checked(rate_bound(two_pairs(), collective, None))
    assert (found.value, found.kind) == (Fraction(value), kind)


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Three ranks, connected, some edges sharing a capacity."""
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    drawn = draw(st.lists(st.sampled_from(pairs), min_size=0, max_size=3, unique=True))
    ways = sorted({(0, 1), (1, 2), (2, 0), *drawn})
    rates = draw(st.lists(st.sampled_from([Fraction(1), Fraction(2), Fraction(3, 2)]), min_size=6))
    shared = draw(st.booleans())
    capacities = [Capacity(f"{a}->{b}", rate) for (a, b), rate in zip(ways, rates, strict=False)]
    extra = (len(capacities),) if shared else ()
    if shared:
        capacities.append(Capacity("shared", Fraction(2)))
    edges = [FabricEdge(a, b, (n, *(extra if a == 0 else ()))) for n, (a, b) in enumerate(ways)]
    return Fabric("drawn", 3, tuple(capacities), tuple(sorted(edges)))


def least_rounds(fabric: Fabric, collective: str, chunks: int, steps: int, most: int) -> int | None:
    """The fewest rounds of a schedule, by brute force; None: more than ``most``."""
    routes = spreads(collective, fabric.ranks, chunks)
    for rounds in range(steps, most + 1):
        if has_schedule(dissemination_problem(fabric, routes, steps, rounds)):
            return rounds
    return None


@settings(max_examples=12, deadline=None)
@given(fabrics(), st.sampled_from(["allgather", "broadcast", "scatter", "gather"]))
def test_no_schedule_beats_a_bound(fabric: Fabric, collective: str) -> None:
    for steps in (1, 2, 3):
        least = steps_bound(fabric, collective)
        found = least_rounds(fabric, collective, 1, steps, 3)
        if steps < least:
            assert found is None
            assert checked(rate_bound(fabric, collective, steps)).kind is DISTANCE
        elif found is not None:
            assert checked(rate_bound(fabric, collective, steps)).value <= found


def spreading_rounds(fabric: Fabric, steps: int, most: int) -> int | None:
    """The fewest rounds in which every rank hears of every other, by brute force.

    One chunk of an all-reduce; whatever a message holds, its receiver knows no more afterwards
    than both did before.
    """
    every = frozenset(range(fabric.ranks))
    start = tuple(frozenset([rank]) for rank in range(fabric.ranks))
    for total in range(steps, most + 1):
        for division in product(range(1, total + 1), repeat=steps):
            if sum(division) != total:
                continue
            states = {start}
            for rounds in division:
                states = {after for state in states for after in _told(fabric, state, rounds)}
            if any(all(known == every for known in state) for state in states):
                return total
    return None


def _told(
    fabric: Fabric, state: tuple[frozenset[int], ...], rounds: int
) -> list[tuple[frozenset[int], ...]]:
    found = []
    for chosen in product((0, 1), repeat=len(fabric.edges)):
        sent = [edge for edge, used in zip(fabric.edges, chosen, strict=True) if used]
        if all(
            sum(k in edge.loads for edge in sent) <= capacity.bandwidth * rounds
            for k, capacity in enumerate(fabric.capacities)
        ):
            after = list(state)
            for edge in sent:
                after[edge.target] |= state[edge.source]
            found.append(tuple(after))
    return found


@settings(max_examples=12, deadline=None)
@given(fabrics(), st.sampled_from([1, 2, 3, 4]))
def test_no_all_reduce_beats_a_bound(fabric: Fabric, steps: int) -> None:
    found = spreading_rounds(fabric, steps, steps + 1)
    if found is not None:
        assert checked(rate_bound(fabric, "all-reduce", steps)).value <= found


@settings(max_examples=10, deadline=None)
@given(fabrics(), st.sampled_from([("reduce-scatter", "all-gather"), ("reduce", "broadcast")]))
def test_sums_are_bounded_as_copies_that_go_back(fabric: Fabric, pair: tuple[str, str]) -> None:
    sums, copies = pair
    for steps in (2, None):
        there = checked(rate_bound(fabric, sums, steps))
        back = checked(rate_bound(fabric.reversed(), copies, steps))
        assert there.value == back.value


@settings(max_examples=10, deadline=None)
@given(fabrics(), st.sampled_from(["all-reduce", "all-gather", "all-to-all"]))
def test_twice_the_bandwidth_halves_a_bound_and_more_steps_lower_it(
    fabric: Fabric, collective: str
) -> None:
    twice = tuple(Capacity(one.name, 2 * one.bandwidth) for one in fabric.capacities)
    wide = Fabric("wide", 3, twice, fabric.edges)
    values = [checked(rate_bound(fabric, collective, steps)).value for steps in (2, 3, 4, None)]
    assert values == sorted(values, reverse=True)
    assert rate_bound(wide, collective, 3).value * 2 == values[1]


@pytest.mark.parametrize("times", [Fraction(10**12), Fraction(1, 10**12)])
@pytest.mark.parametrize(
    ("name", "collective", "steps"),
    [("dgx1", "all-reduce", 3), ("dgx1", "all-gather", 3), ("dgx1", "all-gather", 2)],
)
def test_the_unit_of_bandwidths_changes_no_proof(
    name: str, collective: str, steps: int, times: Fraction
) -> None:
    fabric = load_fabric(name)
    rates = tuple(Capacity(one.name, one.bandwidth * times) for one in fabric.capacities)
    found, scaled = (
        checked(rate_bound(one, collective, steps))
        for one in (fabric, replace(fabric, capacities=rates))
    )
    assert (scaled.value * times, scaled.kind) == (found.value, found.kind)


@pytest.mark.parametrize("collective", ["all-gather", "all-reduce", "all-to-all"])
def test_a_link_that_is_slower_than_floats_tell_is_bounded(collective: str) -> None:
    """All but one link carry 10^21 times as much; a chunk must pass that one."""
    edges = (FabricEdge(0, 1, (0,)), FabricEdge(1, 0, (1,)))
    fast, slow = Capacity("fast", Fraction(10**21)), Capacity("slow", Fraction(1))
    found = checked(rate_bound(Fabric("uneven", 2, (fast, slow), edges), collective, 1))
    assert found.value == 1


@pytest.mark.parametrize(
    ("name", "collective", "steps"),
    [("dgx1", "all-gather", 2), ("dgx1", "all-reduce", 4), ("torus:3x3", "all-to-all", None)],
)
def test_symmetries_make_the_question_smaller_and_nothing_else(
    name: str, collective: str, steps: int | None
) -> None:
    fabric = load_fabric(name)
    maps = [one for one in islice(maps_of(fabric), 200) if one.ranks != tuple(range(fabric.ranks))]
    plain = checked(rate_bound(fabric, collective, steps))
    folded = checked(rate_bound(fabric, collective, steps, symmetries=maps[:4]))
    assert plain.value == folded.value
    assert folded.certificate.generators
    groups = groups_of(plain.certificate.collective, fabric.ranks, 0)
    sizes = [flow_size(flow_problem(fabric, groups, [], steps, some)) for some in ([], maps[:4])]
    assert sizes[0] is not None
    assert sizes[1] is not None
    assert sizes[1] * 2 <= sizes[0]


@pytest.mark.parametrize("slow", [Fraction(1), Fraction(1, 997), Fraction(7, 3)])
@pytest.mark.parametrize("collective", ["all-gather", "all-reduce", "all-to-all"])
def test_fractions_prove_what_the_floats_say(slow: Fraction, collective: str) -> None:
    pairs = two_pairs()
    rates = (slow, *(one.bandwidth for one in pairs.capacities[1:]))
    capacities = tuple(Capacity(str(n), rate) for n, rate in enumerate(rates))
    fabric = Fabric("uneven", 4, capacities, pairs.edges)
    groups = groups_of(bounded(collective), 4, 0)
    for steps in (3, 4, None):
        found = checked(rate_bound(fabric, collective, steps)).value
        asked = ask_prices(flow_problem(fabric, groups, [], steps), SearchLimits()).value
        assert asked is not None
        assert float(found) >= asked.value * (1 - 1e-9)
        if collective != "all-reduce":  # which is bounded by partitions, too
            assert float(found) <= asked.value * (1 + 1e-9)


def test_symmetries_that_move_the_root_are_left_out() -> None:
    fabric = load_fabric("ring:4")
    turn = next(one for one in maps_of(fabric) if one.ranks == (1, 2, 3, 0))
    mirror = next(one for one in maps_of(fabric) if one.ranks == (0, 3, 2, 1))
    found = checked(rate_bound(fabric, "broadcast", 3, symmetries=[turn, mirror]))
    assert [one.ranks for one in found.certificate.generators] == [mirror.ranks]
    assert found.value == rate_bound(fabric, "broadcast", 3).value


def test_without_time_what_sets_of_ranks_prove_must_do() -> None:
    watch = StopWatch.start(SearchLimits(time_limit_s=0))
    found = checked(rate_bound(load_fabric("ring:5"), "all-reduce", 2, watch=watch))
    assert (found.value, found.kind) == (Fraction(4, 5), GOSSIP)


@pytest.mark.parametrize(
    ("collective", "steps", "root", "message"),
    [
        ("gossip", 3, 0, "is none of all-gather"),
        ("all-gather", 0, 0, "0 steps: must be at least 1"),
        ("broadcast", 3, 4, "root 4: must be one of the ranks 0 to 3"),
    ],
)
def test_bad_questions_are_refused(collective: str, steps: int, root: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rate_bound(load_fabric("ring:4"), collective, steps, root)


def test_a_rank_without_a_way_is_named() -> None:
    fabric = Fabric("one-way", 2, (Capacity("a", Fraction(1)),), (FabricEdge(0, 1, (0,)),))
    assert steps_bound(fabric, "broadcast") == 1
    with pytest.raises(InputError, match="rank 1 of fabric one-way: has no way to rank 0"):
        rate_bound(fabric, "all-gather", 2)


FREE = StopWatch.start(SearchLimits())
LATE = StopWatch.start(SearchLimits(time_limit_s=0))


def test_without_time_large_fabrics_have_weaker_bounds_or_none() -> None:
    """22,350 edges: none; 3,192: what single ranks take, not what nodes do; few: all of it."""
    with pytest.raises(OutOfTimeError):
        rate_bound(load_fabric("mesh:150"), "broadcast", 1, watch=LATE)
    nodes = load_fabric("dgx1:8")
    assert checked(rate_bound(nodes, "all-gather", None, watch=LATE)).kind is DEGREE
    assert checked(rate_bound(nodes, "all-gather", None, watch=LATE, whole=FREE)).kind is CUT
    assert checked(rate_bound(load_fabric("dgx1:2"), "all-gather", None, watch=LATE)).kind is CUT


@pytest.mark.parametrize("collective", [one.value for one in BoundedCollective])
def test_the_pair_of_a_distance_is_one_that_is_asked_for(collective: str) -> None:
    named, root = BoundedCollective(collective), 2
    listed = {pair for pairs in demands(named, 4, root) for pair in pairs}
    every = {(a, b) for a in range(-1, 5) for b in range(-1, 5)}
    assert {pair for pair in every if is_demanded(named, 4, root, pair)} == listed


@settings(max_examples=30, deadline=None)
@given(fabrics(), st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True))
def test_what_enters_a_set_of_ranks(fabric: Fabric, ranks: list[int]) -> None:
    groups = groups_of(BoundedCollective.ALL_GATHER, 3, 0)
    found = cut_crossing(edge_ends(fabric), pair_ends(groups, 3), tuple(sorted(ranks)))
    into = [e for e, one in enumerate(fabric.edges) if one.source not in ranks]
    assert found.edges == tuple(e for e in into if fabric.edges[e].target in ranks)
    assert found.messages == 3 - len(ranks)


PERMUTATIONS = st.integers(1, 24).flatmap(
    lambda n: st.lists(st.permutations(range(n)), max_size=3).map(lambda maps: (n, maps))
)


@given(PERMUTATIONS)
def test_numbers_become_the_least_of_their_orbit(given_maps: tuple[int, list[list[int]]]) -> None:
    size, maps = given_maps
    orbits = [{n} for n in range(size)]
    for image in maps * size:
        orbits = [orbit | {image[n] for n in orbit} for orbit in orbits]
    assert least_of_orbits(size, maps).tolist() == [min(orbit) for orbit in orbits]

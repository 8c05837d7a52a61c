"""Under every library and calibration: links <= the search's bound <= every program's price."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from p2smt.cluster.library.registry import library_of
from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.bounds import priced_bound_s
from p2smt.cost.link_bounds import link_bound_s
from p2smt.cost.loads.footprint import Digits, digits_of
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import Placement
from tests.cost.test_bounds import KINDS, PAYLOADS, at_most, cheapest_s, factors_of
from tests.strategies.libraries import library_cases
from tests.strategies.topologies import Case
from tests.tiers import examples_of


@settings(derandomize=True, deadline=None, max_examples=examples_of(300))
@given(library_cases(), PAYLOADS)
def test_no_program_beats_the_bounds(case: Case, payload: int) -> None:
    digits, payload = digits_of(case.placement, case.axes), payload * 1000
    factors = factors_of(digits)
    for kind in KINDS:
        links = link_bound_s(case.topology, digits, kind, payload)
        priced = priced_bound_s(case.topology, digits, kind, payload)
        assert at_most(links, priced), kind
        if not factors:
            assert links == priced == 0.0
            continue
        best = cheapest_s(case.topology, digits, kind, payload, 4 if len(factors) < 3 else 3)
        assert at_most(priced, best), kind


@settings(derandomize=True, deadline=None, max_examples=examples_of(100))
@given(library_cases(), PAYLOADS)
def test_requests_of_one_step_are_bounded_by_their_price(case: Case, payload: int) -> None:
    scene = Scene.of(case.topology, case.placement, case.axes)
    for kind in (RequestKind.ALL_TO_ALL, RequestKind.SEND):
        links = link_bound_s(case.topology, scene.digits, kind, payload)
        priced = priced_bound_s(case.topology, scene.digits, kind, payload)
        assert at_most(links, priced)
        assert priced == scene.fixed_time(kind, payload).seconds


@settings(derandomize=True, deadline=None, max_examples=examples_of(100))
@given(library_cases(), PAYLOADS)
def test_the_bound_of_the_links_knows_no_library(case: Case, payload: int) -> None:
    """Nor what calls and hops cost, nor a rate that is measured below the nominal one."""
    digits = digits_of(case.placement, case.axes)
    links = [replace(level.link, hops=()) for level in case.topology.levels]
    slower = [
        replace(link, efficiency=tuple((name, min(part, 1.0)) for name, part in link.efficiency))
        for link in links
    ]
    levels = [
        replace(level, link=link) for level, link in zip(case.topology.levels, slower, strict=True)
    ]
    other = replace(case.topology, levels=tuple(levels), calls=(), best=False, restricted=False)
    plain = replace(
        other,
        library=library_of("gloo"),
        levels=tuple(replace(one, link=replace(one.link, efficiency=())) for one in levels),
    )
    for kind in RequestKind:
        found = link_bound_s(other, digits, kind, payload)
        assert found == link_bound_s(plain, digits, kind, payload)
        assert at_most(link_bound_s(case.topology, digits, kind, payload), found)


def h100(**options: object) -> Topology:
    """Two nodes of 8, one card a device; the switches inside reduce from 5 on."""
    near = Link(
        LinkKind.SWITCH, (Piece("simple", 0, 450e9),), fabric="nvlink4", in_switch_members=5
    )
    far = Link(LinkKind.SWITCH, (Piece("simple", 0, 50e9),), 8, fabric="infiniband")
    levels = (Level("node", 2, far), Level("gpu", 8, near))
    return replace(Topology("t", levels, library="nccl-2.30"), **options)  # type: ignore[arg-type]


def digits(matrix: tuple[tuple[int, ...], ...]) -> tuple[Digits, ...]:
    return digits_of(Placement(matrix), [0])


@pytest.mark.parametrize("algorithms", [tuple(Algorithm), (Algorithm.RING, Algorithm.NVLS)])
def test_switches_that_reduce_bound_by_one_payload(algorithms: tuple[Algorithm, ...]) -> None:
    """Whatever a topology lists: n leaves each device, 2 n (p - 1)/p where no switch reduces."""
    topology, kind, size = h100(algorithms=algorithms), RequestKind.ALL_REDUCE, 10**9
    whole = digits(((1, 8), (2, 1)))
    assert link_bound_s(topology, whole, kind, size) == pytest.approx(size / 450e9)
    few = digits(((1, 4), (2, 2)))
    assert link_bound_s(topology, few, kind, size) == pytest.approx(size / 450e9)
    outside = digits(((2, 1), (1, 8)))
    assert link_bound_s(topology, outside, kind, size) == pytest.approx(size / 50e9)


def test_a_rate_above_nominal_bounds_by_that_rate() -> None:
    link = h100().levels[1].link
    fast = replace(link, efficiency=(("nvls", 1.05), ("any", 0.8)))
    levels = (h100().levels[0], replace(h100().levels[1], link=fast))
    calls = {collective.value: 7e-6 for collective in Collective} | {"reduce-scatter": 5e-6}
    topology, whole = h100(levels=levels, calls=tuple(calls.items())), digits(((1, 8), (2, 1)))
    size, kind = 10**9, RequestKind.ALL_REDUCE
    wire_s = size / (1.05 * 450e9)
    assert link_bound_s(topology, whole, kind, size) == pytest.approx(wire_s)
    least_call_s = 5e-6  # that of a reduce-scatter, of which a program may be made
    assert priced_bound_s(topology, whole, kind, size) == pytest.approx(wire_s + least_call_s)

"""Flips against brute force: before them the answer holds, beyond them it does not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.cluster.file import parse_topology
from p2smt.cost.library.ways import hop_s
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.explanation import (
    SEARCHED,
    ChangedNumber,
    Explanation,
    NearestTippingPoint,
    TippingPointOutcome,
)
from p2smt.plans.solution import Alternative
from p2smt.programs.program import Grouping
from p2smt.result import SearchLimits, StopWatch
from p2smt.search.explain.breakpoint import _root
from p2smt.search.explain.explain import _placement, _program, sides
from p2smt.search.explain.linear import LinearCosts, landscape
from p2smt.search.explain.numbers import SampledCosts, changed, numbers_of, with_latency_factor
from p2smt.search.programs_pipelined import Catalogs
from p2smt.search.sensitivity import recost
from p2smt.solvers.ask import Solver
from tests.search.explain.oracle import SAME, behind, problem_at, ring_problems
from tests.search.solve.test_solve import least_time
from tests.tiers import examples_of

APART = 1e-4


def explained(problem: Problem) -> tuple[Alternative, Explanation]:
    found = p2smt.solve(problem, top=1, explain=True)
    assert found.best is not None
    assert found.explanation is not None
    return found.best, found.explanation


def flips(
    problem: Problem, dice: random.Random, request: int | None
) -> Iterator[NearestTippingPoint]:
    """The flips of a placement (a program) by three of the numbers, each confirmed by solving."""
    found = p2smt.solve(problem, top=1)
    best, watch, listings = found.best, StopWatch.start(SearchLimits()), Catalogs()
    assume(best is not None and best.matrix is not None)
    assert best is not None
    land = landscape(problem, best, [], LinearCosts(problem), listings, watch)
    if request is not None and best.requests[request].program is None:
        return
    for number in dice.sample(list(numbers_of(problem)), 3):
        if request is None:
            yield _placement(land, number, Solver.CPSAT)
        elif number.what != "payload" or number.index == request:
            yield _program(land, number, request, Solver.CPSAT)


@pytest.mark.exhaustive
@settings(max_examples=examples_of(40))
@given(ring_problems(), st.integers(0, 2**16))
def test_the_placement_flips_where_it_is_said_to(problem: Problem, seed: int) -> None:
    dice = random.Random(seed)
    best = p2smt.solve(problem, top=1).best
    for flip in flips(problem, dice, None):
        assert best is not None
        assert flip.outcome is not TippingPointOutcome.OPEN
        assert flip.proved is (problem.objective == "sum" or len(problem.requests) == 1)
        within = held_until(flip) if flip.proved else 1.0
        for factor in (1.0, within, dice.uniform(1, within)):
            assert behind(problem_at(problem, flip.number, factor), best.matrix or ()) <= SAME
        if flip.factor is not None:
            assert wins_beyond(problem, flip, best)


def held_until(flip: NearestTippingPoint) -> float:
    """The largest factor at which the answer is said to hold, a hair's breadth less."""
    return SEARCHED if flip.factor is None else max(1.0, flip.factor * (1 - APART))


def wins_beyond(problem: Problem, flip: NearestTippingPoint, best: Alternative) -> bool:
    """Whether another placement is better soon after, as shallow as the crossing may be."""
    assert flip.factor is not None
    assert flip.matrix is not None
    assert flip.matrix != best.matrix
    return any(
        behind(problem_at(problem, flip.number, flip.factor * (1 + apart)), best.matrix or ()) > 0
        for apart in (APART, 0.02)
    )


@settings(max_examples=examples_of(40))
@given(ring_problems(), st.integers(0, 2**16))
def test_a_program_flips_where_it_is_said_to(problem: Problem, seed: int) -> None:
    dice = random.Random(seed)
    best = p2smt.solve(problem, top=1).best
    for flip in flips(problem, dice, 0):
        assert best is not None
        assert flip.outcome is not TippingPointOutcome.OPEN
        assert flip.proved
        until = held_until(flip)
        for factor in (until, dice.uniform(1, until)):
            assert program_behind(problem, flip.number, factor, best, 0) <= SAME
        if flip.factor is not None:
            assert flip.program not in (None, best.requests[0].program)
            ends = (flip.factor * (1 + apart) for apart in (APART, 0.02))
            assert any(program_behind(problem, flip.number, x, best, 0) > 0 for x in ends)


def program_behind(
    problem: Problem, number: ChangedNumber, factor: float, best: Alternative, index: int
) -> float:
    """By how much a request's program is slower than the best one on the same placement."""
    there = problem_at(problem, number, factor)
    request, answer = there.requests[index], best.requests[index]
    grown = request.payload_bytes / answer.request.payload_bytes
    moved = replace(answer, request=request, payloads=tuple(p * grown for p in answer.payloads))
    alone = replace(there, requests=(request,), objective="sum")
    ours = recost(alone, replace(best, requests=(moved,)))
    return ours / (request.times * least_time(there, request, best.matrix or ())) - 1


def test_factors_are_exact_where_costs_are_linear() -> None:
    """Over one port, hierarchical wins for large payloads once the outer link is N times slower."""
    topology = parse_topology(TWO_LEVELS, "two")
    problem = p2smt.Problem(topology, p2smt.parse_axes("dp=32"), (p2smt.reduce("dp=1GiB"),))
    best, found = explained(problem)
    assert str(best.requests[0].program) == "all-reduce inside root"
    (flip,) = [
        one
        for one in found.flips
        if one.number.what == "bandwidth" and one.number.of == "node" and not one.number.grows
    ]
    assert (flip.outcome, flip.exact, flip.factor) == (TippingPointOutcome.FLIP, Fraction(4), 4.0)
    assert found.placements is not None
    assert found.placements.others == 0


TWO_LEVELS = """
name: two
library: none
algorithms: [ring]
levels:
  - {name: node, size: 4, link: {kind: switch, bandwidth: 10 GB/s, latency: 0 us}}
  - {name: gpu, size: 8, link: {kind: switch, bandwidth: 10 GB/s, latency: 0 us}}
"""


def test_under_a_library_both_sides_are_solved() -> None:
    topology = p2smt.load_topology("dgx-a100:2")
    requests = (p2smt.reduce("dp=256MiB"), p2smt.reduce("tp=64MiB*4"))
    problem = p2smt.Problem(topology, p2smt.parse_axes("dp=4,tp=4"), requests)
    best = p2smt.solve(problem, top=1).best
    assert best is not None
    watch = StopWatch.start(SearchLimits())
    land = landscape(problem, best, [], SampledCosts(problem), Catalogs(), watch)
    number = ChangedNumber("payload", str(requests[0]), 0, grows=True)
    flip = _placement(land, number, Solver.CPSAT)
    assert (flip.outcome, flip.proved, flip.exact) == (TippingPointOutcome.FLIP, False, None)
    assert flip.factor is not None
    for apart, wins in ((-1e-3, False), (1e-3, True)):
        there = changed(problem, number, flip.factor * (1 + apart))
        other = p2smt.solve(there, top=1).best
        assert other is not None
        assert (other.matrix == flip.matrix) is wins


def test_a_time_limit_leaves_flips_open() -> None:
    topology = p2smt.load_topology("dgx-a100:2")
    requests = (p2smt.reduce("dp=256MiB"), p2smt.reduce("tp=64MiB*4"))
    problem = p2smt.Problem(topology, p2smt.parse_axes("dp=4,tp=4"), requests)
    found = p2smt.solve(problem, explain=True, limits=SearchLimits(time_limit_s=1e-9)).explanation
    assert found is not None
    assert found.why
    assert not found.flips


def test_a_latency_is_multiplied_under_a_library_too() -> None:
    topology = p2smt.load_topology("dgx-a100:2")
    slower = with_latency_factor(topology, 0, 3.0)
    for family in ("ring", "tree"):
        for protocol in ("ll", "ll128", "simple"):
            old, new = (hop_s(one, 0, protocol, family) for one in (topology, slower))
            assert new == pytest.approx(3 * old)
            inner = [hop_s(one, 1, protocol, family) for one in (topology, slower)]
            assert inner[0] == inner[1]
    scenes = [Scene.of(one, Placement(((2, 8),)), (0,)) for one in (topology, slower)]
    ring = [
        scene.step_time(p2smt.Collective.ALL_REDUCE, Grouping(0, 2), 1.0).seconds
        for scene in scenes
    ]
    assert ring[0] < ring[1] < 3 * ring[0]


def test_numbers_are_those_that_there_are() -> None:
    topology = parse_topology(TWO_LEVELS, "two")
    problem = p2smt.Problem(topology, p2smt.parse_axes("dp=32"), (p2smt.reduce("dp=1GiB"),))
    found = [(one.what, one.of) for one in numbers_of(problem) if one.grows]
    levels = [(what, name) for name in ("node", "gpu") for what in ("bandwidth", "latency")]
    assert found == [*levels, ("payload", "all-reduce dp 1 GiB")]


def test_a_root_is_exact_or_none() -> None:
    third = Fraction(7, 3)
    assert _root(lambda x: 3 * x - 7, (1.0, 4.0), 7 / 3) == third
    assert _root(lambda x: 3 * x - 7, (1.0, 4.0), 2.0) is None
    assert _root(lambda x: x * x - 4, (1.0, 4.0), 2.0) is None
    assert _root(lambda x: 0 * x + 1, (1.0, 4.0), 2.0) is None


def test_what_ties_now_wins_at_once_on_its_own_side() -> None:
    """dp lies inside a node or across two at the same cost: any change decides."""
    text = TWO_LEVELS.replace("size: 4", "size: 2").replace("0 us", "1 us")
    topology = parse_topology(text, "two")
    asked = (p2smt.reduce("dp=1MiB"),)
    problem = p2smt.Problem(topology, p2smt.parse_axes("dp=2,tp=8"), asked)
    best, found = explained(problem)
    assert found.flips
    for flip in (one for one in found.flips if one.factor == 1.0):
        assert flip.outcome is TippingPointOutcome.FLIP
        assert behind(problem_at(problem, flip.number, 1.01), best.matrix or ()) > 0


@pytest.mark.parametrize("payload", [7, 1000])
def test_a_payload_has_whole_bytes_on_both_sides(payload: int) -> None:
    number = ChangedNumber("payload", "all-reduce dp", 0, grows=True)
    topology = parse_topology(TWO_LEVELS, "two")
    problem = p2smt.Problem(topology, p2smt.parse_axes("dp=32"), (p2smt.reduce(f"dp={payload}B"),))
    best = p2smt.solve(problem, top=1).best
    assert best is not None
    watch = StopWatch.start(SearchLimits())
    land = landscape(problem, best, [], LinearCosts(problem), Catalogs(), watch)
    for x, grows in ((2.5, True), (10 / 7, True), (0.33, False), (1.0, True), (1.0, False)):
        near, far = sides(land, replace(number, grows=grows), x, 1e-6)
        ends = near * payload, far * payload
        assert all(end == pytest.approx(round(end)) for end in ends)
        inner, outer = ends if grows else ends[::-1]
        assert inner <= payload * x * (1 + 1e-9)
        assert outer >= payload * x * (1 - 1e-9)
        assert round(outer - inner) in (1, 2)

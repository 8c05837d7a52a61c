"""Allocations: each constraint alone, both solvers against brute force, and limits."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError, TooLarge
from p2smt.problems.allocation import (
    AllocationProblem,
    FixedCounts,
    Messages,
    Shares,
    UplinkTicks,
    WayTicks,
    parts_held,
)
from p2smt.result import SearchLimits, Status
from p2smt.search.allocation.solve_grid import is_allocation, ticks_of
from p2smt.solvers.ask import Every, Optimum, Solver, ask
from tests.oracles.allocations import answers, cost, optimum

BOTH = pytest.mark.parametrize("solver", list(Solver))
RINGS = Shares(((0,), (1,)), (0, 1, 1, 0))
CHAIN = Messages(((0, 1, 1),))


def way(least: int, entities: int, *loads: tuple[int, tuple[int, ...]]) -> WayTicks:
    """A way whose every entity has the same uplink; of several loads the last counts."""
    uplink = UplinkTicks(*loads[-1]) if loads else None
    return WayTicks(least, (uplink,) * entities)


def small(**more: object) -> AllocationProblem:
    """Two rings of three cells on leaves of two and four hosts."""
    rings, sends = way(1, 2, (0, (0, 10, 20))), way(0, 2, (1, (0, 4, 8, 12)))
    given = AllocationProblem(
        (2, 4), ((0,), (1,)), 2, 3, (RINGS, CHAIN), ((rings,), (sends,)), mirrored=True
    )
    return replace(given, **more)  # type: ignore[arg-type]


def best(problem: AllocationProblem, solver: Solver) -> int | None:
    """The proved optimum, its answer checked."""
    found = ask(problem, Optimum(), solver, SearchLimits())
    if found.status is Status.INFEASIBLE:
        return None
    assert found.status is Status.OPTIMAL
    assert found.value is not None
    assert is_allocation(problem, found.value)
    assert ticks_of(problem, found.value) == cost(problem, found.value) == found.bound
    return found.bound


@BOTH
def test_rings_against_sends(solver: Solver) -> None:
    assert best(small(), solver) == 18  # one ring split, two messages
    cheap = way(0, 2, (1, (0, 20, 40, 60)))
    assert best(small(requests=(small().requests[0], (cheap,))), solver) == 20  # both split


@BOTH
def test_the_largest_request_counts(solver: Solver) -> None:
    assert best(small(worst=True), solver) == 10


@BOTH
def test_the_cheapest_way_runs(solver: Solver) -> None:
    other = way(3, 2)
    assert best(small(requests=((small().requests[0][0], other),)), solver) == 3


@BOTH
def test_what_is_held_and_the_limit(solver: Solver) -> None:
    held = (FixedCounts((0,), (1, 2)),)
    assert best(small(held=held), solver) == 20
    assert best(small(at_most=17), solver) is None
    assert best(small(at_most=18), solver) == 18


@BOTH
def test_idle_hosts_are_chosen(solver: Solver) -> None:
    """Blocks of three in pools of three: no ring is split, and a pool of two stays idle."""
    rings = way(0, 3, (0, (0, 10, 20)))
    idle = small(pools=(2, 3, 3), entities=((0,), (1,), (2,)), requests=((rings,),))
    assert best(idle, solver) == 0
    assert best(replace(idle, pools=(2, 2, 3)), solver) == 10


@st.composite
def problems(draw: st.DrawFn) -> AllocationProblem:
    members, blocks = draw(st.sampled_from([(1, 4), (1, 5), (2, 2), (2, 3), (3, 2), (4, 2)]))
    cells, count = members * blocks, draw(st.integers(1, 3))
    pools = tuple(draw(st.integers(1, 4)) for _ in range(count))
    while sum(pools) < cells:
        pools = (*pools[:-1], pools[-1] + cells - sum(pools))
    entities: list[tuple[int, ...]] = [(p,) for p in range(count)]
    if count == 3 and draw(st.booleans()):
        entities.append((0, 1))
    group: tuple[tuple[int, ...], ...] = tuple((b,) for b in range(blocks))
    if members == 1 and draw(st.booleans()):
        group = (tuple(range(blocks)),)
    size = members * len(group[0])
    sent = st.just((0, *[draw(st.integers(1, 2))] * (size - 1), 0))
    loads = (
        Messages(tuple((b, b + 1, 1) for b in range(blocks - 1))),
        Messages(tuple((b, (b + 1) % blocks, draw(st.integers(1, 2))) for b in range(blocks))),
        Shares(group, draw(sent)),
        Shares(group, (0, *(n * (size - n) for n in range(1, size)), 0)),
    )
    requests = tuple(
        tuple(_way(draw, len(entities)) for _ in range(draw(st.integers(1, 2))))
        for _ in range(draw(st.integers(1, 2)))
    )
    mirrored = not any(
        u is not None and u.load == 1 for ways in requests for w in ways for u in w.uplinks
    )
    return AllocationProblem(
        pools,
        tuple(entities),
        blocks,
        members,
        loads,
        requests,
        worst=draw(st.booleans()),
        mirrored=mirrored,
        alike=all(u is None or u.load > 1 for ways in requests for w in ways for u in w.uplinks)
        and len(group) == blocks,
    )


def _way(draw: st.DrawFn, entities: int) -> WayTicks:
    load = draw(st.integers(0, 3))
    steps = draw(st.lists(st.integers(0, 9), min_size=13, max_size=13))
    uplinks = []
    for _ in range(entities):
        factor = draw(st.integers(1, 2))
        ticks = tuple(factor * sum(steps[: v + 1]) for v in range(len(steps)))
        uplinks.append(draw(st.sampled_from([UplinkTicks(load, ticks), None])))
    return WayTicks(draw(st.integers(0, 20)), tuple(uplinks))


@given(problems())
def test_both_solvers_agree_with_brute_force(problem: AllocationProblem) -> None:
    wanted = optimum(problem)
    assert best(problem, Solver.CPSAT) == wanted
    if problem.blocks * len(problem.pools) <= 10:
        assert best(problem, Solver.Z3) == wanted


@pytest.mark.parametrize(("blocks", "members"), [(2, 3), (3, 2), (4, 2), (3, 3)])
def test_what_an_entity_needs_alone(blocks: int, members: int) -> None:
    """C9 against every sequence of counts."""
    reached: dict[tuple[int, int], int] = {}
    for counts in product(range(members + 1), repeat=blocks):
        gaps = [a - b for a, b in pairwise(counts)]
        moved = max(sum(g for g in gaps if g > 0), sum(-g for g in gaps if g < 0))
        parts = sum(0 < n < members for n in counts)
        for limit in range(moved, members + 1):
            key = sum(counts), limit
            reached[key] = min(reached.get(key, blocks + 1), parts)
    for cells in range(blocks * members + 1):
        for limit in range(members + 1):
            wanted = reached.get((cells, limit), blocks + 1)
            assert parts_held(blocks, members, cells, limit) <= wanted


@BOTH
def test_no_time_is_no_proof(solver: Solver) -> None:
    found = ask(small(), Optimum(), solver, SearchLimits(time_limit_s=0.0))
    assert (found.status, found.value) == (Status.UNKNOWN, None)


def test_ticks_beyond_the_encoding() -> None:
    huge = way(2**61, 2)
    with pytest.raises(TooLarge, match="ticks of an allocation"):
        ask(small(requests=((huge,),)), Optimum(), Solver.CPSAT, SearchLimits())


def test_questions_and_problems_that_are_none() -> None:
    with pytest.raises(InputError, match="none about an allocation"):
        ask(small(), Every(), Solver.CPSAT, SearchLimits())  # type: ignore[call-overload]
    with pytest.raises(InputError, match="host of its own"):
        small(pools=(2, 3))
    with pytest.raises(InputError, match="needs at least one"):
        small(requests=((),))
    with pytest.raises(InputError, match="one entry for each"):
        small(requests=((WayTicks(0, (None,)),),))
    with pytest.raises(InputError, match="must not fall"):
        small(requests=((way(0, 2, (0, (3, 1))),),))


def test_the_check_sees_what_is_wrong() -> None:
    good = next(answers(small()))
    assert is_allocation(small(), good)
    assert not is_allocation(small(), ((3, 0), (0, 3)))  # too many in a pool
    assert not is_allocation(small(), (good[0], (0, 2)))  # a cell is missing
    assert not is_allocation(small(), good[:1])
    assert not is_allocation(small(held=(FixedCounts((0,), (9, 9)),)), good)

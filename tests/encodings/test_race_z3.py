"""The encoding of races: each constraint on a problem of a few accesses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.encodings.race import z3 as race_z3
from p2smt.encodings.race.z3 import wrong_order
from p2smt.errors import InputError
from p2smt.problems.race import (
    Access,
    Counting,
    Packet,
    Prefix,
    RaceProblem,
    Read,
    Source,
    Sum,
)
from p2smt.result import SearchLimits, Status

A, B = Sum(((0, 1),)), Sum(((1, 1),))
NOTHING = Sum(((2, 1),))
LIMITS = SearchLimits()


@pytest.fixture(params=[0, 32], ids=["places", "closed"], autouse=True)
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order as places, and stated in full."""
    monkeypatch.setattr(race_z3, "MAX_CLOSED", request.param)


def two_writers() -> RaceProblem:
    """Nodes 0 and 1 write A and B to a cell; node 2 reads it; A is wanted."""
    accesses = (Access(0, True, 0), Access(1, True, 0), Access(2, False, 0))
    sources = (Source(0, A), Source(1, B), Source(None, NOTHING))
    return RaceProblem((0, 0, 0), accesses, (Read(2, sources),), Sum((), ((0, 1),)), A.parts)


def updates(count: int) -> RaceProblem:
    """Each node adds a part of its own to a cell that then holds all, unless one is lost."""
    nodes = range(count)
    accesses = [Access(n, write, 0) for n in nodes for write in (False, True)]
    values = [Sum(((n, 1),), ((n, 1),)) for n in nodes]
    written = [Source(2 * n + 1, values[n]) for n in nodes]
    reads = [
        Read(2 * n, (*(w for w in written if w.write != 2 * n + 1), Source(None, Sum())))
        for n in nodes
    ]
    final = Read(2 * count, tuple(written))
    before = (*(0 for _ in nodes), (1 << count) - 1)
    wanted = tuple((n, 1) for n in nodes)
    value = Sum((), ((count, 1),))
    return RaceProblem(before, (*accesses, Access(count, False, 0)), (*reads, final), value, wanted)


def status(problem: RaceProblem) -> Status:
    return wrong_order(problem, LIMITS).status


def first(problem: RaceProblem) -> set[tuple[int, int]]:
    answer = wrong_order(problem, LIMITS).value
    assert answer is not None
    return set(answer.before)


def test_c1_a_node_reads_a_position_before_it_writes_it() -> None:
    accesses = (Access(0, True, 0), Access(0, False, 0))
    read = Read(1, (Source(None, A), Source(0, B)))
    problem = RaceProblem((0,), accesses, (read,), Sum((), ((0, 1),)), A.parts)
    assert status(problem) is Status.INFEASIBLE
    other_position = replace(problem, accesses=(Access(0, True, 1), accesses[1]))
    assert status(other_position) is Status.FEASIBLE


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ((0b010, 0, 0), Status.FEASIBLE),  # the reader may come too early
        ((0b010, 0, 0b011), Status.INFEASIBLE),
        ((0, 0, 0b011), Status.FEASIBLE),
        ((0b010, 0, 0b001 | 0b010), Status.INFEASIBLE),
        ((0, 0b001, 0b011), Status.FEASIBLE),
    ],
)
def test_c2_the_certain_order_is_kept(before: tuple[int, ...], expected: Status) -> None:
    assert status(replace(two_writers(), before=before)) is expected


def test_c3_orders_have_no_circles() -> None:
    """Three nodes pass on what the one before them wrote: nothing comes of it, whoever is first.

    Part 0 would have to come from node 3, which starts only after node 0.
    """
    accesses = (
        *(Access(n, write, 0) for n in range(3) for write in (False, True)),
        Access(3, True, 0),
    )
    reads = [
        Read(2 * n, (Source(2 * m + 1, Sum((), ((m, 1),))), Source(None, Sum())))
        for n, m in ((0, 2), (1, 0), (2, 1))
    ]
    reads[0] = replace(reads[0], sources=(*reads[0].sources, Source(6, A)))
    problem = RaceProblem((0, 0, 0, 1), accesses, tuple(reads), Sum((), ((0, 1),)), ())
    assert status(problem) is Status.INFEASIBLE
    assert status(replace(problem, before=(0, 0, 0, 0))) is Status.FEASIBLE


def test_c4_a_read_sees_the_last_write() -> None:
    problem = replace(two_writers(), before=(0, 0, 0b011))
    assert (0, 1) in first(problem)  # wrong if B is written last
    assert (1, 0) in first(replace(problem, wanted=B.parts))
    assert status(replace(problem, wanted=NOTHING.parts)) is Status.FEASIBLE


@pytest.mark.parametrize("count", [2, 3, 4])
def test_c5_updates_may_be_lost(count: int) -> None:
    assert status(updates(count)) is Status.FEASIBLE


@pytest.mark.parametrize("count", [2, 3, 4])
def test_c6_a_lock_keeps_updates_apart(count: int) -> None:
    nodes = tuple(range(count))
    locked = replace(updates(count), counters=(Counting(1, nodes, nodes),))
    assert status(locked) is Status.INFEASIBLE
    assert status(replace(locked, counters=(Counting(2, nodes, nodes),))) is Status.FEASIBLE


def test_c6_an_await_comes_after_as_many_posts_as_it_needs() -> None:
    ordered = replace(two_writers(), before=(0b010, 0, 0), wanted=A.parts)
    assert status(replace(ordered, counters=(Counting(0, (0, 1), (2,)),))) is Status.FEASIBLE
    assert status(replace(ordered, counters=(Counting(0, (0, 1), (2, 2)),))) is Status.INFEASIBLE


def test_c7_a_packet_has_been_written() -> None:
    problem = replace(two_writers(), wanted=A.parts)
    one = replace(problem, packets=(Packet(2, (0,)),), before=(0b010, 0, 0))
    assert status(one) is Status.INFEASIBLE
    assert status(replace(one, packets=(Packet(2, (0, 1)),))) is Status.FEASIBLE


def test_c8_counts_matter_not_only_members() -> None:
    twice = RaceProblem((), (), (), Sum(((0, 2),)), ((0, 1),))
    assert status(twice) is Status.FEASIBLE
    assert status(replace(twice, value=A)) is Status.INFEASIBLE
    assert status(replace(twice, value=Sum())) is Status.FEASIBLE
    assert status(replace(twice, wanted=((0, 2),))) is Status.INFEASIBLE
    assert status(replace(twice, wanted=((0, 3),))) is Status.FEASIBLE


def test_c9_c10_least_weight() -> None:
    """A lost update of two nodes needs both; each brings one more step."""
    prefix = Prefix((2, 2, 0), (0, 1, 2), ((0, 2), (1, 2)), (0, 1), 2, 4)
    problem = replace(updates(2), prefix=prefix)
    assert status(problem) is Status.FEASIBLE
    assert status(replace(problem, prefix=replace(prefix, at_most=3))) is Status.INFEASIBLE
    assert status(replace(problem, prefix=replace(prefix, at_most=-1))) is Status.INFEASIBLE


def test_c9_what_is_executed_comes_first() -> None:
    """The reader alone sees nothing; with a bound of one step it can see neither write."""
    prefix = Prefix((1, 1, 1), (0, 1, 2), (), (2,), None, 1)
    problem = replace(two_writers(), prefix=prefix)
    assert {(2, 0), (2, 1)} <= first(problem)
    assert status(replace(problem, wanted=NOTHING.parts)) is Status.INFEASIBLE


def test_no_time_is_unknown() -> None:
    assert wrong_order(updates(3), SearchLimits(time_limit_s=0.0)).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"before": (0, 0, 0b100)}, "no cycle"),
        ({"before": (0, 0)}, "there are 2"),
        ({"value": Sum((), ((7, 1),))}, "there are 1"),
        ({"packets": (Packet(0, (9,)),)}, "there are 3"),
        ({"counters": (Counting(0, (3,), ()),)}, "there are 3"),
    ],
)
def test_numbers_out_of_range(change: dict[str, object], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        replace(two_writers(), **change)  # type: ignore[arg-type]

"""Synthesized schedules as thread blocks and messages: right, and just the messages asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.fabric.fabric_file import load_fabric
from p2smt.interop.reading import AS_IT_STANDS
from p2smt.interop.schedule_files import read_schedule, written
from p2smt.problems.schedule import Arrival, FinalSum, SumSchedule, SumSend, SumStep
from p2smt.runtime.schedules.reference import run_reference
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import verify
from p2smt.synthesis.lowering import lowered
from p2smt.synthesis.placed import needed
from tests.synthesis.lowering.copies import right, solved
from tests.synthesis.lowering.sums import (
    Edge,
    edges_of,
    random_all_reduce,
    ring_all_reduce,
    sums_in,
    two_steps_of_ring_5,
)
from tests.tiers import but_the_first, examples_of

MESH = edges_of(load_fabric("mesh:4"))
CASES = [
    ("dgx1", "allgather", (2, 3, 2), 0),
    ("dgx1", "reduce_scatter", (2, 3, 2), 0),
    ("mesh:4", "broadcast", (2, 2, 3), 2),
    ("cube:3", "reduce", (3, 4, 3), 5),
    ("cube:3", "scatter", (3, 4, 1), 3),
    ("cube:3", "gather", (3, 4, 1), 3),
    ("dgx1", "alltoall", (2, 4, 1), 0),
]


def lowered_case(
    name: str, collective: str, point: tuple[int, int, int], root: int, in_place: bool | None
) -> Schedule:
    fabric = load_fabric(name)
    return lowered(
        solved(name, collective, point, root),
        edges=edges_of(fabric),
        ranks=fabric.ranks,
        collective=collective,
        chunks=point[2],
        root=root,
        name=f"{collective} on {name}",
        in_place=in_place,
    )


def sent(schedule: Schedule) -> Counter[tuple[int, int]]:
    """Chunks that go from rank to rank."""
    found: Counter[tuple[int, int]] = Counter()
    for step in schedule.steps:
        if step.send:
            found[step.send[:2]] += step.count
    return found


def asked(schedule: SumSchedule, edges: tuple[Edge, ...]) -> Counter[tuple[int, int]]:
    return Counter(edges[send.edge][:2] for step in schedule.steps for send in step.sends)


def test_cases_are_of_every_collective() -> None:
    assert len({collective for _, collective, _, _ in CASES}) == len(CASES) == 7


@pytest.mark.parametrize("in_place", [None, False])
@pytest.mark.parametrize(("name", "collective", "point", "root"), CASES)
def test_copies_and_reversed_ones_are_right(
    name: str, collective: str, point: tuple[int, int, int], root: int, in_place: bool | None
) -> None:
    found = lowered_case(name, collective, point, root, in_place)
    right(found)
    assert found.in_place == (in_place is None and collective != "alltoall")
    wanted = asked(solved(name, collective, point, root), edges_of(load_fabric(name)))
    assert sent(found) == wanted
    assert run_reference(found, seed=1).ok


@pytest.mark.parametrize("suffix", ["xml", "json", "yaml"])
@pytest.mark.parametrize("case", but_the_first(*(case for case in CASES if case[3] == 0)))
def test_files_mean_the_same(case: tuple[str, str, tuple[int, int, int], int], suffix: str) -> None:
    found = lowered_case(*case, None)
    path = f"algo.{suffix}"
    again = read_schedule(written(found, path), path, AS_IT_STANDS)
    assert again.contract == found.contract
    assert verify(again).verdict is Verdict.VALID


def all_reduce(
    sums: SumSchedule, edges: tuple[Edge, ...], ranks: int, chunks: int, in_place: bool = True
) -> Schedule:
    return lowered(
        sums,
        edges=edges,
        ranks=ranks,
        collective="allreduce",
        chunks=chunks,
        name="sums",
        in_place=in_place,
    )


@pytest.mark.parametrize("ranks", [3, 8])
def test_one_sum_a_rank_needs_no_memory_and_no_copies(ranks: int) -> None:
    edges = edges_of(load_fabric(f"ring:{ranks}"))
    found = all_reduce(ring_all_reduce(edges, ranks), edges, ranks, ranks)
    right(found)
    assert {sizes.scratch for sizes in found.sizes} == {0}
    assert {step.kind for step in found.steps} == {"s", "r", "rrc"}
    assert len(found.steps) == 2 * ranks * 2 * (ranks - 1)


@pytest.mark.parametrize("in_place", [True, False])
def test_partial_sums_are_kept_apart(in_place: bool) -> None:
    edges = edges_of(load_fabric("ring:5"))
    found = all_reduce(two_steps_of_ring_5(edges), edges, 5, 1, in_place)
    right(found)
    assert {sizes.scratch for sizes in found.sizes} == {2 if in_place else 1}
    assert sum(sent(found).values()) == 20


@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_any_sums_are_right_in_every_interleaving(
    seed: int, chunks: int, slots: int, in_place: bool
) -> None:
    random = Random(seed)
    for _ in range(examples_of(8)):
        sums = random_all_reduce(random, MESH, 4, chunks, random.randint(1, 4), slots)
        found = all_reduce(sums, MESH, 4, chunks, in_place)
        right(found)
        assert sent(found) == asked(needed(sums, MESH), MESH)


def test_random_schedules_send_sums() -> None:
    random = Random(1)
    schedules = [needed(random_all_reduce(random, MESH, 4, 2, 3), MESH) for _ in range(20)]
    assert sum(len(list(sums_in(schedule))) for schedule in schedules) > 40


@given(st.integers(0, 2**32))
def test_a_lost_part_is_noticed(seed: int) -> None:
    """Of a result; the sum then lacks something, unless nothing of it was ever needed."""
    random = Random(seed)
    sums = random_all_reduce(random, MESH, 4, 1, 2)
    place = random.randrange(len(sums.results))
    result = sums.results[place]
    if len(result.parts) == 1:
        return
    less = replace(result, parts=result.parts[1:])
    results = (*sums.results[:place], less, *sums.results[place + 1 :])
    assert verify(all_reduce(replace(sums, results=results), MESH, 4, 1)).verdict is Verdict.INVALID


def _ring() -> tuple[SumSchedule, tuple[Edge, ...]]:
    edges = edges_of(load_fabric("ring:3"))
    return ring_all_reduce(edges, 3), edges


def test_what_is_no_schedule_is_refused() -> None:
    sums, edges = _ring()
    first, *others = sums.steps
    without = replace(sums, steps=(SumStep(1, first.sends[1:]), *others))
    with pytest.raises(InputError, match="is used, and never sent"):
        all_reduce(without, edges, 3, 3)
    with pytest.raises(InputError, match="has no result"):
        all_reduce(replace(sums, results=sums.results[1:]), edges, 3, 3)
    into = next(n for n, edge in enumerate(edges) if edge[1] == edges[first.sends[0].edge][0])
    early = replace(first.sends[0], parts=(Arrival(0, into),))
    with pytest.raises(InputError, match="did not come to rank"):
        all_reduce(replace(sums, steps=(SumStep(1, (early,)), *others)), edges, 3, 3)
    far = replace(first.sends[0], chunk=3)
    with pytest.raises(InputError, match="chunk 3 over edge"):
        all_reduce(replace(sums, steps=(SumStep(1, (far,)), *others)), edges, 3, 3)
    twice = replace(first.sends[0], parts=(None, None))
    with pytest.raises(InputError, match="a value twice"):
        all_reduce(replace(sums, steps=(SumStep(1, (twice,)), *others)), edges, 3, 3)


@pytest.mark.parametrize(
    ("collective", "rule"),
    [
        ("sendrecv", "is none of"),
        ("alltoall", "has no memory"),
        ("reduce", "not asked for"),
        ("broadcast", "is not given there"),
    ],
)
def test_other_collectives_are_refused(collective: str, rule: str) -> None:
    sums, edges = _ring()
    with pytest.raises(InputError, match=rule):
        lowered(
            sums,
            edges=edges,
            ranks=3,
            collective=collective,
            chunks=3,
            name="wrong",
            in_place=True,
        )


def test_two_ways_between_two_ranks_are_two_connections() -> None:
    edges: tuple[Edge, ...] = ((0, 1, (0,)), (0, 1, (1,)), (1, 0, (2,)), (1, 0, (3,)))
    sums = random_all_reduce(Random(3), edges, 2, 4, 1)
    found = all_reduce(sums, edges, 2, 4)
    right(found)
    assert {step.send.channel for step in found.steps if step.send} == {0, 1}


def test_a_copy_that_takes_the_place_of_another_is_sent_whole() -> None:
    """Chunks go round and back to the root, whose input they replace, and on from there."""
    edges: tuple[Edge, ...] = ((0, 1, (0,)), (1, 0, (1,)), (0, 2, (2,)))
    here, back = Arrival(0, 0), Arrival(1, 1)
    steps = (
        SumStep(2, (SumSend(0, 0, (None,)),)),
        SumStep(2, (SumSend(0, 1, (here,)), SumSend(0, 2, (None,)), SumSend(1, 0, (None,)))),
        SumStep(2, (SumSend(1, 2, (None,)),)),
        SumStep(2, (SumSend(0, 0, (back,)),)),
    )
    results = tuple(
        FinalSum(c, rank, (came,))
        for c, rank, came in (
            (0, 1, Arrival(3, 0)),
            (0, 2, Arrival(1, 2)),
            (1, 1, Arrival(1, 0)),
            (1, 2, Arrival(2, 2)),
        )
    )
    for in_place in (True, False):
        found = lowered(
            SumSchedule(steps, results),
            edges=edges,
            ranks=3,
            collective="broadcast",
            chunks=2,
            name="back",
            in_place=in_place,
        )
        right(found)

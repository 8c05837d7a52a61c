"""Programs on real ranks over Gloo: what is valid verifies, what is not is caught.

Ranks are started once for many requests; each request is a program.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from p2smt.collectives.names import RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.programs.program import Hierarchy
from p2smt.result import SearchLimits
from p2smt.runtime.job import Groups, Job, JobRequest, JobStep, ordered
from p2smt.runtime.payload import DataType, RunOptions
from p2smt.runtime.ranks.on_ranks import launch
from p2smt.runtime.summary import RunResult, summarize
from p2smt.search.program_synthesis import Task, list_programs
from tests.runtime.programs.oracle_counts import computes
from tests.runtime.tools import (
    ALL,
    BLUE,
    GATHER,
    KINDS,
    MASTERS,
    RAILS,
    SCATTER,
    every_step,
    program_request,
    reference,
    request,
    steps_of,
    valid_programs,
    whole,
)
from tests.tiers import but_the_first

pytestmark = pytest.mark.cluster
CHECK = RunOptions(repeat=0, time_limit_s=600)
FIXED: list[tuple[RequestKind, Operation]] = [
    (RequestKind.ALL_TO_ALL, RequestKind.ALL_TO_ALL),
    (RequestKind.SEND, RequestKind.SEND),
]


def gloo(*requests: JobRequest, options: RunOptions = CHECK) -> RunResult:
    """The result on as many ranks as the groups have."""
    ranks = 1 + max(rank for r in requests for group in r.groups for rank in group)
    job = Job(ranks, requests)
    result = summarize(job, launch(job, options))
    assert len(result.machines) == ranks
    return result


def assert_verified(*requests: JobRequest, options: RunOptions = CHECK) -> RunResult:
    result = gloo(*requests, options=options)
    wrong = [e for found in result.requests for e in found.errors]
    assert not wrong, wrong[:3]
    floats = options.data_type.unit_roundoff > 0
    assert all(found.float_checked is floats for found in result.requests)
    return result


def sampled(
    kind: RequestKind, factors: tuple[int, ...], length: int, most: int
) -> list[JobRequest]:
    """Valid programs of exactly this length."""
    found = [p for p in valid_programs(kind, factors, length) if len(p) == length]
    chosen = random.Random(1).sample(found, min(most, len(found)))
    return [request(kind, p, whole(math.prod(factors)), 146) for p in chosen]


@pytest.mark.parametrize("factors", but_the_first((2, 2), (2, 2, 2)))
def test_every_short_program(factors: tuple[int, ...]) -> None:
    ranks = math.prod(factors)
    short = [
        request(kind, program, whole(ranks), 146)
        for kind in KINDS
        for program in valid_programs(kind, factors, 3)
    ]
    longer = [r for kind in KINDS for length in (4, 5) for r in sampled(kind, factors, length, 6)]
    assert len(short) >= 30
    assert_verified(*short, *longer)


@pytest.mark.parametrize("factors", but_the_first((3, 2), (2, 3)))
@pytest.mark.exhaustive
def test_groups_of_three(factors: tuple[int, ...]) -> None:
    assert_verified(*(r for kind in KINDS for n in (2, 3, 4) for r in sampled(kind, factors, n, 8)))


@pytest.mark.parametrize("factors", but_the_first((2, 3), (2, 2, 2), (3, 2)))
def test_all_to_alls_over_levels(factors: tuple[int, ...]) -> None:
    """Every program, whole and in pieces, of payloads that do not split evenly; timed once."""
    task = Task(RequestKind.ALL_TO_ALL, Hierarchy.plain(factors), len(factors))
    found, _ = list_programs(task, SearchLimits())
    asked = [
        program_request(task.kind, str(program), factors, size, chunks)
        for program in found.value or ()
        for size, chunks in ((5, 1), (1001, 1), (998, 3))
        if len(program) > 1
    ]
    assert len(asked) == (6 if len(factors) == 2 else 30)
    assert_verified(*asked, options=replace(CHECK, repeat=1, warmup=0))


@pytest.mark.exhaustive
@pytest.mark.parametrize("factors", [(2, 2), (3, 2)])
def test_all_to_alls_over_levels_of_groups_side_by_side(factors: tuple[int, ...]) -> None:
    text = "all-to-all inside l1; all-to-all parallel l1 in root"
    steps = steps_of(text, factors, RequestKind.ALL_TO_ALL)
    beside = request(RequestKind.ALL_TO_ALL, steps, _beside(factors), 77)
    turned = tuple(replace(step, groups=_turned(step.groups, factors)) for step in beside.steps)
    assert_verified(replace(beside, steps=turned))


def _beside(factors: tuple[int, ...]) -> Groups:
    """Two groups of all ranks, every other rank each."""
    ranks = 2 * math.prod(factors)
    return tuple(tuple(range(at, ranks, 2)) for at in (0, 1))


def _turned(groups: Groups, factors: tuple[int, ...]) -> Groups:
    """The groups of a step within both of these."""
    return tuple(
        tuple(whole[member] for member in group) for whole in _beside(factors) for group in groups
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("data_type", but_the_first(*DataType))
def test_every_type_and_kind(data_type: DataType) -> None:
    groups, pairs = whole(4), ((0, 2), (1, 3))
    single = [
        request(kind, [JobStep(kind.value, operation, of)], of, size)
        for kind, operation in FIXED
        for of in (groups, pairs)
        for size in (1, 50, 1000)
    ]
    programs = [
        program_request(ALL, BLUE, (2, 2), 1234),
        program_request(ALL, MASTERS, (2, 2), 6),
        program_request(ALL, "all-reduce inside root", (2, 2), 3),
        program_request(
            SCATTER, "reduce-scatter inside l1; reduce-scatter parallel l1 in root", (2, 2)
        ),
        program_request(GATHER, "all-gather inside l1; all-gather parallel l1 in root", (2, 2)),
    ]
    options = replace(CHECK, data_type=data_type)
    result = assert_verified(*single, *programs, options=options)
    agree = {found.replicas_agree for found in result.requests[len(single) :]}
    assert agree <= {True, None}
    assert (True in agree) is (data_type is not DataType.INT64)


@pytest.mark.parametrize("pieces", but_the_first((3, 40), (1, 2, 5)), ids=str)
@pytest.mark.exhaustive
def test_pipelined_pieces(pieces: tuple[int, ...]) -> None:
    """More pieces than rows, and more than elements, too."""
    asked = [
        program_request(kind, text, factors, size, chunks)
        for kind, text, factors in (
            (ALL, BLUE, (2, 2)),
            (ALL, MASTERS, (2, 2)),
            (SCATTER, "reduce-scatter parallel l1 in root; reduce-scatter inside l1", (2, 2)),
            (GATHER, "all-gather parallel l1 in root; all-gather inside l1", (2, 2)),
        )
        for size in (10, 4321)
        for chunks in pieces
    ]
    assert_verified(*asked)


def rows_apart(chunks: int) -> list[JobRequest]:
    """Rows are packed for the call in the middle, here 0, 1, 4, 5 and 2, 3, 6, 7."""
    before = "reduce-scatter inside l2; reduce-scatter parallel l2 in l1; all-gather inside l2; "
    middles = (
        "all-reduce parallel l1 in root; ",
        "reduce-scatter parallel l1 in root; all-gather parallel l1 in root; ",
        "reduce parallel l1 in root; broadcast parallel l1 in root; ",
    )
    texts = [f"{before}{middle}all-gather parallel l2 in l1" for middle in middles]
    return [program_request(ALL, text, (2, 2, 2), 1234, chunks) for text in texts]


def axes(strided: bool) -> JobRequest:
    """All-reduces over groups that are no runs of ranks, side by side."""
    groups = ordered([[0, 2, 4, 6], [1, 3, 5, 7]] if strided else [[7, 0, 3, 4], [6, 5, 1, 2]])
    steps = []
    for step in steps_of(BLUE, (2, 2)):
        local = [[group[i] for i in of] for group in groups for of in step.groups]
        steps.append(JobStep(step.name, step.operation, ordered(local)))
    return request(ALL, steps, groups, 1001, chunks=3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("chunks", but_the_first(3, 1))
def test_rows_and_groups_that_are_no_runs(chunks: int) -> None:
    """Eight ranks, started once for all of it."""
    several = program_request(ALL, "all-reduce inside root", (8,), 77)
    assert_verified(*rows_apart(chunks), axes(True), axes(False), several)


@pytest.mark.exhaustive
def test_timed_runs_of_a_large_payload() -> None:
    """Eight MiB: long enough that a call which reads what it writes would show."""
    asked = [
        replace(program_request(kind, text, (2, 2), 8 * 2**20, chunks), times=2)
        for kind, text in (
            (ALL, BLUE),
            (ALL, MASTERS),
            (ALL, RAILS),
            (SCATTER, "reduce-scatter parallel l1 in root; reduce-scatter inside l1"),
            (GATHER, "all-gather parallel l1 in root; all-gather inside l1"),
        )
        for chunks in (1, 3)
    ]
    result = assert_verified(*asked, options=replace(CHECK, repeat=2))
    for found in result.requests:
        assert len(found.total.samples) == len(found.baseline.samples) == 2
        assert all(len(step.samples) == 2 for step in found.steps)
        assert found.speedup is not None


# Broken programs --------------------------------------------------------------------------


def broken(factors: tuple[int, ...], most: int) -> list[JobRequest]:
    """Programs that can be carried out, and compute something else."""
    chance, found, ranks = random.Random(2), list[JobRequest](), math.prod(factors)
    while len(found) < most:
        kind, steps = (
            chance.choice(KINDS),
            chance.choices(every_step(factors), k=chance.randint(1, 4)),
        )
        if computes(kind, ranks, steps) is False:
            found.append(request(kind, steps, whole(ranks), 146))
    return found


@pytest.mark.exhaustive
def test_broken_programs_are_caught() -> None:
    """By both executors, and with the same words where rows are wrong."""
    asked = broken((2, 2), 120)
    for of, expected in zip(gloo(*asked).requests, reference(*asked).requests, strict=True):
        assert not of.verified
        assert not expected.verified
        assert of.errors[0] == expected.errors[0]


@pytest.mark.exhaustive
def test_named_mistakes() -> None:
    """Each names the rank; wrong values also the element, what was expected and what was found."""
    blue, right = list(steps_of(BLUE, (2, 2))), whole(4)
    swapped = replace(blue[1], groups=((0, 3), (1, 2)))
    others = replace(blue[1], groups=((0, 1), (2, 3)))
    masters = list(steps_of(MASTERS, (2, 2)))
    doubled = steps_of("all-reduce inside l1; all-reduce inside root", (2, 2))
    scatter = steps_of("reduce-scatter inside root", (2, 2))
    # As in a plan file whose groups were swapped: the rows fit, the sums are of others.
    groups, mixed = ((0, 1), (2, 3)), ((0, 2), (1, 3))
    pairs = steps_of("all-reduce inside root", (2,))[0]
    asked = [
        request(ALL, [masters[0], replace(masters[1], groups=((1, 3),)), masters[2]], right),
        request(ALL, doubled, right),
        request(ALL, [blue[0], blue[2]], right),
        request(ALL, blue[:2], right),
        request(ALL, [blue[0], swapped, blue[2]], right),
        request(ALL, [blue[0], others, blue[2]], right),
        request(SCATTER, scatter, right, shards=(0, 2, 1, 3)),
        request(ALL, [replace(pairs, groups=mixed)], groups),
    ]
    texts = [
        "request: step 2: rank 1: holds nothing that it could contribute",
        "request: rank 0, element 0: wrong value: expected ",
        "request: rank 0, element 0: wrong value: expected ",
        "request: rank 0: ends with 2 of 4 parts of the payload",
        "request: step 2: rank 3: holds other rows than rank 0, with which it reduces",
        "request: step 2: rank 1: holds other rows than rank 0, with which it reduces",
        "request: rank 1: ends with part 1; the plan says part 2",
        "request: rank 0, element 0: wrong value: expected ",
    ]
    for result in (gloo(*asked), reference(*asked)):
        for text, found in zip(texts, result.requests, strict=True):
            assert any(error.startswith(text) for error in found.errors), (text, found.errors)


@pytest.mark.exhaustive
def test_the_requests_go_on_after_a_wrong_one() -> None:
    everywhere = "all-reduce inside l1; all-reduce inside root"  # wrong on every rank
    elsewhere = "reduce inside root"  # right on one
    asked = [program_request(ALL, text, (2, 2)) for text in (everywhere, BLUE, elsewhere, BLUE)]
    result = gloo(*asked, options=replace(CHECK, repeat=1))
    assert [found.verified for found in result.requests] == [False, True, False, True]
    assert not result.verified

"""The reference executor and the semantics: each is a check of the other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Collective, RequestKind
from p2smt.programs import semantics
from p2smt.programs.semantics import Step, Trace, ViolationKind
from p2smt.runtime.job import JobStep, ordered
from p2smt.runtime.payload import DataType, RunOptions
from tests.runtime.programs.oracle_counts import Counts, computes
from tests.runtime.tools import (
    KINDS,
    REFERENCE,
    SCATTER,
    every_step,
    reference,
    request,
    valid_programs,
    whole,
)
from tests.strategies.draws import Draws, draws
from tests.tiers import examples_of

Program = tuple[JobStep, ...]

# What the semantics refuses although the result is right: conventions that decide which
# programs exist, not what they compute.
EXACT = RunOptions(backend="reference", data_type=DataType.INT64)
CONVENTIONS = {ViolationKind.AFTER_GOAL, ViolationKind.NOT_CONTAINED}


def trace_of(kind: RequestKind, ranks: int, steps: Sequence[JobStep]) -> Trace:
    """What the semantics says."""
    found = []
    for step in steps:
        assert isinstance(step.operation, Collective)
        found.append(Step(step.operation, np.array(step.groups, dtype=np.int64)))
    return semantics.run(demand_of(kind), ranks, found)


def agree(
    kind: RequestKind,
    ranks: int,
    steps: Sequence[JobStep],
    payload: int = 150,
    options: RunOptions = REFERENCE,
) -> str:
    """Run a program on the executor, the semantics and the model that counts.

    Valid programs verify.  A program verifies if and only if it computes the right result; if
    the semantics refuses one that does, it is for a convention.  Returns what it was.
    """
    trace, right = trace_of(kind, ranks, steps), computes(kind, ranks, steps)
    wanted = trace.shards if kind is SCATTER else None
    asked = request(kind, steps, whole(ranks), payload, shards=wanted)
    result = reference(asked, options=options)
    assert result.verified is (right is True), (steps, result.requests[0].errors)
    if trace.violation is None:
        assert result.verified, steps
        return "valid"
    if result.verified:
        assert trace.violation.kind in CONVENTIONS, (steps, trace.violation)
        return trace.violation.kind.value
    return "wrong" if right is False else "impossible"


def distinct(kind: RequestKind, factors: tuple[int, ...], length: int) -> Iterator[Program]:
    """Every program up to a length that can be carried out, but one for each outcome.

    Two programs with the same counts and the same violation, if any, have the same future.
    """
    ranks = math.prod(factors)
    layer: list[tuple[Program, Counts]] = [((), Counts.start(kind, ranks))]
    seen = set()
    for _ in range(length):
        longer = []
        for program, before in layer:
            for step in every_step(factors):
                after = before.copy()
                if not after.take(step):
                    continue
                broken = trace_of(kind, ranks, (*program, step)).violation
                # A missed goal is no violation of a step: longer programs may still reach it.
                missed = broken is None or broken.kind is ViolationKind.GOAL_MISSED
                key = (after.key(), None if missed or broken is None else broken.kind)
                if key not in seen:
                    seen.add(key)
                    longer.append(((*program, step), after))
        yield from (program for program, _ in longer)
        layer = longer


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("factors", "length"),
    [((2, 2), 3), ((2, 3), 2), pytest.param((2, 2, 2), 2, marks=pytest.mark.exhaustive)],
)
def test_every_short_program(kind: RequestKind, factors: tuple[int, ...], length: int) -> None:
    ranks = math.prod(factors)
    found = Counter(agree(kind, ranks, p, options=EXACT) for p in distinct(kind, factors, length))
    assert found["valid"] > 0
    assert found["wrong"] > 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", [(2, 3), (2, 2, 2)])
def test_every_fourth_program_of_three_steps(kind: RequestKind, factors: tuple[int, ...]) -> None:
    for program in islice(distinct(kind, factors, 3), 0, None, 4):
        agree(kind, math.prod(factors), program, options=EXACT)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", [(2, 2), (2, 3), (2, 2, 2)])
def test_every_valid_program_verifies(kind: RequestKind, factors: tuple[int, ...]) -> None:
    """By another road: brute force finds the programs, and none is left out as a duplicate."""
    ranks = math.prod(factors)
    for program in valid_programs(kind, factors, 3):
        assert agree(kind, ranks, program, options=EXACT) == "valid"


@st.composite
def programs(draw: st.DrawFn) -> tuple[RequestKind, int, Program]:
    """Steps that mostly can be carried out where they stand, some on groups of no hierarchy."""
    kind = draw(st.sampled_from(KINDS))
    factors = draw(st.sampled_from([(4,), (2, 2), (2, 3), (3, 2), (2, 2, 2), (3, 3)]))
    ranks, steps = math.prod(factors), tuple[JobStep, ...]()
    for _ in range(draw(st.integers(1, 6))):
        every = [*every_step(factors), draw(loose_steps(ranks))]
        good = [s for s in every if computes(kind, ranks, (*steps, s)) is not None]
        choice = good if good and draw(st.integers(0, 9)) > 0 else every
        steps = (*steps, draw(st.sampled_from(choice)))
    return kind, ranks, steps


@st.composite
def loose_steps(draw: st.DrawFn, ranks: int) -> JobStep:
    """Any collective on disjoint groups of one size, which may leave ranks out."""
    size = draw(st.integers(2, ranks))
    order = draw(st.permutations(range(ranks)))
    count = draw(st.integers(1, ranks // size))
    groups = ordered([order[i * size : (i + 1) * size] for i in range(count)])
    collective = draw(st.sampled_from(Collective))
    return JobStep(collective.value, collective, groups)


@settings(max_examples=examples_of(120))
@given(programs(), st.integers(1, 200))
def test_random_programs(case: tuple[RequestKind, int, Program], payload: int) -> None:
    kind, ranks, steps = case
    agree(kind, ranks, steps, 4 * ranks + payload)


@cache
def valid(kind: RequestKind, factors: tuple[int, ...]) -> list[tuple[JobStep, ...]]:
    """Every valid program of at most three steps."""
    return valid_programs(kind, factors, 3)


@settings(max_examples=examples_of(80))
@given(st.sampled_from(KINDS), draws())
def test_mutated_programs(kind: RequestKind, data: Draws) -> None:
    """One step of a valid program dropped, doubled, moved or changed."""
    factors = data.draw(st.sampled_from([(2, 2), (2, 3), (2, 2, 2)]))
    steps = list(data.draw(st.sampled_from(valid(kind, factors))))
    at, to = data.draw(st.integers(0, len(steps) - 1)), data.draw(st.integers(0, len(steps) - 1))
    match data.draw(st.sampled_from(["drop", "double", "swap", "change"])):
        case "drop":
            del steps[at]
        case "double":
            steps.insert(at, steps[at])
        case "swap":
            steps[at], steps[to] = steps[to], steps[at]
        case "change":
            steps[at] = data.draw(st.sampled_from(every_step(factors)))
    agree(kind, math.prod(factors), tuple(steps))

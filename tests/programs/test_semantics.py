"""The semantics of programs agrees with a model by sets, on valid and broken programs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Collective, RequestKind
from p2smt.errors import TooLarge
from p2smt.programs.program import Hierarchy, groupings, local_groups, parse_program
from p2smt.programs.semantics import MAX_DEVICES, Step, Trace, initial_state, is_goal, run
from tests.oracles.semantics import AR, K, Literal, literal_run
from tests.tiers import examples_of

ALL, SCATTER, GATHER = RequestKind.ALL_REDUCE, RequestKind.REDUCE_SCATTER, RequestKind.ALL_GATHER
KINDS = [ALL, SCATTER, GATHER]


def step(collective: Collective, *groups: Sequence[int]) -> Step:
    return Step(collective, np.array(groups, dtype=np.int64))


def text_steps(text: str, factors: tuple[int, ...]) -> list[Step]:
    """A program over levels l1, l2, .. as steps on positions."""
    hierarchy = Hierarchy.plain(factors)
    return [
        Step(i.reduction, local_groups(factors, hierarchy.grouping(i)))
        for i in parse_program(text).instructions
    ]


def agrees(kind: RequestKind, k: int, steps: Sequence[Step]) -> Trace:
    """Run both; they break the same rule at the same step, or both succeed alike."""
    trace, (broken, payloads, model) = run(demand_of(kind), k, steps), literal_run(kind, k, steps)
    assert list(trace.payload_rows) == payloads
    if broken is None:
        assert trace.violation is None
        if kind is SCATTER:
            assert trace.shards == tuple(row for rows in model.held for row in rows)
        return trace
    assert trace.violation is not None
    assert (trace.violation.step, trace.violation.kind in broken[1]) == (broken[0], True), broken
    if trace.violation.group:
        collective = steps[broken[0] - 1].collective
        assert trace.violation.kind in model.broken(collective, trace.violation.group)
    return trace


# Valid programs ---------------------------------------------------------------------------

VALID: list[tuple[RequestKind, tuple[int, ...], str]] = [
    (ALL, (4,), "all-reduce inside root"),
    (ALL, (2, 3), "all-reduce inside l1; all-reduce parallel l1 in root"),
    (ALL, (3, 2), "reduce inside l1; all-reduce master l1 in root; broadcast inside l1"),
    (ALL, (2, 2), "reduce inside root; broadcast inside root"),
    (ALL, (6,), "reduce-scatter inside root; all-gather inside root"),
    (
        ALL,
        (2, 4),
        "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1",
    ),
    (
        ALL,
        (2, 2, 2),
        "reduce-scatter inside l2; reduce-scatter parallel l2 in l1; all-reduce parallel l1 in "
        "root; all-gather parallel l2 in l1; all-gather inside l2",
    ),
    (
        ALL,
        (2, 2, 3),
        "reduce inside l2; reduce-scatter master l2 in root; all-gather master l2 in root; "
        "broadcast inside l2",
    ),
    (SCATTER, (5,), "reduce-scatter inside root"),
    (SCATTER, (2, 3), "reduce-scatter inside l1; reduce-scatter parallel l1 in root"),
    (GATHER, (2, 3), "all-gather inside l1; all-gather parallel l1 in root"),
    (GATHER, (3, 2), "all-gather inside root"),
]


@pytest.mark.parametrize(("kind", "factors", "text"), VALID)
def test_valid_programs(kind: RequestKind, factors: tuple[int, ...], text: str) -> None:
    assert agrees(kind, math.prod(factors), text_steps(text, factors)).violation is None


def test_payloads_and_peak() -> None:
    blue = "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1"
    trace = run(demand_of(ALL), 12, text_steps(blue, (3, 4)))
    assert (trace.payload_rows, trace.peak_rows, trace.shards) == ((12, 3, 12), 12, None)
    trace = run(
        demand_of(GATHER),
        6,
        text_steps("all-gather inside l1; all-gather parallel l1 in root", (2, 3)),
    )
    assert (trace.payload_rows, trace.peak_rows) == ((3, 6), 6)
    stopped = run(demand_of(ALL), 12, text_steps(blue.replace("all-gather", "broadcast"), (3, 4)))
    assert (stopped.payload_rows, stopped.peak_rows) == ((12, 3), 12)


@pytest.mark.parametrize(
    ("text", "shards"),
    [
        ("reduce-scatter inside root", (0, 1, 2, 3, 4, 5)),
        ("reduce-scatter parallel l1 in root; reduce-scatter inside l1", (0, 1, 2, 3, 4, 5)),
        ("reduce-scatter inside l1; reduce-scatter parallel l1 in root", (0, 2, 4, 1, 3, 5)),
    ],
)
def test_the_order_of_shards_is_reported(text: str, shards: tuple[int, ...]) -> None:
    assert agrees(SCATTER, 6, text_steps(text, (2, 3))).shards == shards


@pytest.mark.parametrize("kind", KINDS)
def test_one_device_is_at_the_goal(kind: RequestKind) -> None:
    assert is_goal(demand_of(kind), initial_state(demand_of(kind), 1))
    assert run(demand_of(kind), 1, []).violation is None


def test_too_many_devices() -> None:
    with pytest.raises(TooLarge, match="1024"):
        run(demand_of(ALL), MAX_DEVICES + 1, [])


# Mutations --------------------------------------------------------------------------------


def mutants(steps: list[Step], factors: tuple[int, ...]) -> Iterator[list[Step]]:
    """One step dropped, doubled, swapped with a later one, or changed."""
    shapes = [local_groups(factors, grouping) for grouping in groupings(len(factors))]
    for i, old in enumerate(steps):
        others = [Step(c, old.groups) for c in Collective]
        others += [Step(old.collective, groups) for groups in shapes]
        yield steps[:i] + steps[i + 1 :]
        yield steps[: i + 1] + steps[i:]
        yield from ([*steps[:i], new, *steps[i + 1 :]] for new in others)
        for j in range(i + 1, len(steps)):
            yield [*steps[:i], steps[j], *steps[i + 1 : j], old, *steps[j + 1 :]]


@pytest.mark.parametrize(("kind", "factors", "text"), VALID)
def test_mutants_are_rejected_unless_truly_valid(
    kind: RequestKind, factors: tuple[int, ...], text: str
) -> None:
    steps = text_steps(text, factors)
    traces = [agrees(kind, math.prod(factors), mutant) for mutant in mutants(steps, factors)]
    assert {K.GOAL_MISSED} < {t.violation.kind for t in traces if t.violation}


SIZES = st.sampled_from([(2,), (3,), (4,), (2, 2), (2, 3), (3, 2), (2, 4), (2, 2, 2), (3, 2, 2)])


@st.composite
def programs(draw: st.DrawFn) -> tuple[RequestKind, tuple[int, ...], list[Step]]:
    """Steps over the groupings of a hierarchy, most of them valid where they stand."""
    kind, factors = draw(st.sampled_from(KINDS)), draw(SIZES)
    model, steps = Literal.start(kind, math.prod(factors)), list[Step]()
    shapes = [local_groups(factors, grouping) for grouping in groupings(len(factors))]
    every = [Step(c, groups) for c in Collective for groups in shapes]
    for _ in range(draw(st.integers(0, 7))):
        good = [s for s in every if not model.broken_by(s)]
        one = draw(st.sampled_from(good if good and draw(st.integers(0, 9)) > 0 else every))
        steps.append(one)
        if model.broken_by(one):
            break
        model.take(one)
    return kind, factors, steps


@settings(max_examples=examples_of(400))
@given(programs())
def test_random_programs_agree(case: tuple[RequestKind, tuple[int, ...], list[Step]]) -> None:
    kind, factors, steps = case
    agrees(kind, math.prod(factors), steps)


@st.composite
def loose_steps(draw: st.DrawFn, devices: int) -> Step:
    """Any collective on any disjoint groups of one size."""
    size = draw(st.integers(2, devices))
    count = draw(st.integers(1, devices // size))
    order = draw(st.permutations(range(devices)))
    groups = [sorted(order[i * size : (i + 1) * size]) for i in range(count)]
    return step(draw(st.sampled_from(Collective)), *groups)


@settings(max_examples=examples_of(300))
@given(st.sampled_from(KINDS), st.lists(loose_steps(6), max_size=5))
def test_any_groups_agree(kind: RequestKind, steps: list[Step]) -> None:
    agrees(kind, 6, steps)


# More than one word of bits ---------------------------------------------------------------

WIDE = [(6, 16), (8, 16), (5, 13), (2, 32)]


@pytest.mark.parametrize("factors", WIDE)
@pytest.mark.parametrize("kind", KINDS)
def test_programs_on_more_than_64_devices(kind: RequestKind, factors: tuple[int, ...]) -> None:
    program = {
        ALL: "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1",
        SCATTER: "reduce-scatter inside l1; reduce-scatter parallel l1 in root",
        GATHER: "all-gather parallel l1 in root; all-gather inside l1",
    }[kind]
    steps, devices = text_steps(program, factors), math.prod(factors)
    trace = agrees(kind, devices, steps)
    assert trace.violation is None
    if kind is SCATTER:
        outer, inner = factors
        expected = [b * outer + a for a in range(outer) for b in range(inner)]
        assert trace.shards == tuple(expected)
    missed = agrees(kind, devices, steps[:-1]).violation
    assert missed is not None
    assert missed.kind is K.GOAL_MISSED


def test_a_doubled_contribution_beyond_the_first_word() -> None:
    found = run(
        demand_of(ALL), 96, [step(AR, [70, 90]), step(AR, [3, 70], [80, 90]), step(AR, [3, 80])]
    )
    assert found.violation is not None
    assert (found.violation.kind, found.violation.rank, found.violation.chunk) == (K.DOUBLED, 80, 0)
    assert found.violation.group == (3, 80)


def test_many_equal_contributions_are_counted_exactly() -> None:
    """Five times 64 contributions are 64 again if the count has eight bits."""
    summed = step(AR, range(64))
    found = run(demand_of(ALL), 65, [summed, step(AR, range(5))]).violation
    assert found is not None
    assert found.kind is K.DOUBLED

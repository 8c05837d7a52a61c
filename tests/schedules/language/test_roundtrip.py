"""Every schedule survives being written and read again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.collectives.contract import Contract, Contribution, Goal, contract
from p2smt.collectives.names import COLLECTIVES
from p2smt.errors import InputError
from p2smt.schedules.language.grammar import VERBS
from p2smt.schedules.language.instance import default_sizes, parse_schedule
from p2smt.schedules.language.schedule_text import dump_schedule, step_text
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span, Step, StepRef
from tests.tiers import examples_of

RANKS = 3
small = st.integers(0, 4)
signed = st.integers(-3, 4)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
names = st.one_of(texts, st.sampled_from(["a", "to", "up[3, -1]", "up[03]", "x y: z # w", "on"]))
kinds = st.one_of(st.sampled_from([*VERBS, "post", "await", "wait", "barrier", "signal"]), names)
spans = st.builds(Span, signed, st.sampled_from(Buffer), signed, small, st.booleans())
connections = st.none() | st.builds(Connection, signed, signed, signed)
refs = st.lists(st.builds(StepRef, signed, signed), max_size=2).map(tuple)
several = st.lists(spans, max_size=3).map(tuple)
counters = st.lists(names, max_size=2).map(tuple)


@st.composite
def step_tuples(draw: st.DrawFn) -> tuple[Step, ...]:
    """Steps of a few blocks, in any document order."""
    lengths: dict[tuple[int, int], int] = {}
    steps = []
    for _ in range(draw(st.integers(0, 6))):
        rank, block = draw(st.integers(0, RANKS - 1)), draw(st.integers(0, 1))
        index = lengths.get((rank, block), 0)
        lengths[rank, block] = index + 1
        fields: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
            {
                "kind": kinds,
                "count": small,
                "reads": several,
                "writes": several,
                "receive": connections,
                "send": connections,
                "waits": refs,
                "after": st.none() | refs,
                "posts": counters,
                "awaits": counters,
                "relaxed": st.booleans(),
                "barrier": st.none() | names,
                "background": st.booleans(),
            }
        )
        steps.append(Step(rank, block, index, **draw(fields)))
    return tuple(steps)


@st.composite
def contracts(draw: st.DrawFn) -> Contract:
    """Named ones, and any others."""
    in_place = draw(st.booleans())
    if draw(st.booleans()):
        kind, root = draw(st.sampled_from(COLLECTIVES)), draw(st.integers(0, RANKS - 1))
        return contract(kind, RANKS, draw(st.integers(1, 3)), in_place=in_place, root=root)
    parts = st.builds(Contribution, signed, signed)
    start = st.lists(st.none() | parts, max_size=4).map(tuple)
    goals = st.builds(Goal, signed, small, st.lists(parts, max_size=3).map(tuple))
    shift = draw(st.lists(signed, min_size=RANKS, max_size=RANKS)) if in_place else ()
    return Contract(
        draw(st.sampled_from(COLLECTIVES) | texts),
        tuple(draw(start) for _ in range(RANKS)),
        tuple(draw(st.lists(goals, max_size=4))),
        in_place,
        tuple(shift),
    )


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Any schedule, right or wrong."""
    promised = draw(contracts())
    sizes = draw(
        st.just(default_sizes(promised))
        | st.lists(st.builds(Sizes, small, small, small), min_size=RANKS, max_size=RANKS).map(tuple)
    )
    return Schedule(
        name=draw(texts),
        contract=promised,
        sizes=sizes,
        steps=draw(step_tuples()),
        form=draw(st.sampled_from(["yaml", "msccl-xml"])),
        protocol=draw(st.sampled_from(["Simple", "LL"])),
        initial=tuple(draw(st.lists(st.tuples(names, signed), max_size=2))),
        warnings=draw(counters),
    )


def without_lines(schedule: Schedule) -> Schedule:
    """The schedule without the line numbers of its steps."""
    return replace(schedule, steps=tuple(replace(step, line=None) for step in schedule.steps))


@settings(deadline=None, max_examples=examples_of(100))
@given(schedules())
def test_round_trip(schedule: Schedule) -> None:
    text = dump_schedule(schedule)
    again = parse_schedule(text)
    assert without_lines(again) == schedule
    assert dump_schedule(again) == text


@pytest.mark.parametrize("kind", COLLECTIVES)
@pytest.mark.parametrize("in_place", [False, True])
def test_named_collectives_are_written_in_one_line(kind: str, in_place: bool) -> None:
    promised = contract(kind, 4, 2, in_place=in_place, root=0)
    schedule = Schedule("x", promised, default_sizes(promised), ())
    line = f"collective: {{kind: {kind}, chunks: 2{', in_place: true' * in_place}}}\n"
    assert line in dump_schedule(schedule)


def test_the_line_of_each_step() -> None:
    promised = contract("allreduce", 2, 1)
    steps = (
        Step(0, 0, 0, "nop"),
        Step(0, 0, 1, "nop"),
        Step(1, 0, 0, "nop", awaits=("a: b",)),
    )
    text = dump_schedule(Schedule("x", promised, default_sizes(promised), steps))
    lines = text.splitlines()
    found = [lines[(step.line or 0) - 1].strip() for step in parse_schedule(text).steps]
    assert found == ["- nop", "- nop", r'- "nop await \"a: b\""']


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (
            Step(
                2,
                0,
                0,
                "receive-reduce-send",
                1,
                (Span(2, Buffer.INPUT, 3, 1),),
                (),
                Connection(3, 2, 0),
                Connection(2, 1, 1),
            ),
            "receive-reduce-send i[3] from 3 to 1 channel 1",
        ),
        (
            Step(
                0,
                0,
                0,
                "put",
                4,
                (Span(0, Buffer.INPUT, 0, 4),),
                (Span(5, Buffer.OUTPUT, 4, 4, packet=True),),
                posts=("there[5]",),
                after=(),
                background=True,
                lane="packet",
            ),
            "put i[0..3] into packet o[4..7]@5 post there[5] after nothing background lane packet",
        ),
        (Step(0, 0, 0, "signal", posts=("up",), relaxed=True), "post up relaxed as signal"),
        (Step(0, 0, 0, "wait", waits=(StepRef(2, 1),)), "wait for 2.1"),
        (Step(0, 0, 0, "flush"), "nop as flush"),
        (Step(0, 0, 0, "send", 2, receive=Connection(0, 1, 2)), "drop from 0 -> 1 channel 2"),
    ],
)
def test_canonical_text(step: Step, text: str) -> None:
    assert step_text(step).startswith(text)


def test_steps_out_of_order_are_refused() -> None:
    promised = contract("allreduce", 2, 1)
    schedule = Schedule("x", promised, default_sizes(promised), (Step(0, 0, 1, "nop"),))
    with pytest.raises(InputError, match="is step 0 of its block"):
        dump_schedule(schedule)

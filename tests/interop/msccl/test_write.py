"""Schedules to MSCCL XML and back, and what the format cannot express."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.collectives import contract as contracts
from p2smt.collectives.contract import Contract
from p2smt.errors import InputError
from p2smt.interop.msccl.parse import STEP_TYPES
from p2smt.interop.msccl.read import read_msccl
from p2smt.interop.msccl.write import write_msccl
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span, Step, StepRef
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import verify
from tests.interop.msccl.texts import ring, swap
from tests.schedules import small_schedules
from tests.schedules.building import Blocks, at
from tests.tiers import examples_of

RANKS, CHUNKS, SCRATCH = 3, 3, 4


def there_and_back(schedule: Schedule) -> Schedule:
    return read_msccl(write_msccl(schedule), "f.xml")


def bare(schedule: Schedule) -> Schedule:
    """Without what a file does not keep: line numbers, names of steps, the format it came from."""
    steps = sorted(schedule.steps, key=lambda step: (step.rank, step.block, step.index))
    plain = tuple(replace(step, line=None, kind="") for step in steps)
    return replace(schedule, steps=plain, form="", warnings=(), refused=())


def refusal(schedule: Schedule) -> str:
    with pytest.raises(InputError) as caught:
        write_msccl(schedule)
    return str(caught.value)


@st.composite
def steps_of_blocks(draw: st.DrawFn, rank: int) -> list[Step]:
    """Blocks 0, 1, .. of any steps that MSCCL XML has, right or wrong, at most one wait each."""
    lengths = draw(st.lists(st.integers(1, 4), max_size=3))
    steps: list[Step] = []
    for block, length in enumerate(lengths):
        peers = [draw(st.sampled_from([-1, *range(RANKS)])) for _ in range(2)]
        channel = draw(st.integers(0, 2))
        ends = (Connection(peers[0], rank, channel), Connection(rank, peers[1], channel))
        for index in range(length):
            kind = draw(st.sampled_from([kind for kind in STEP_TYPES if kind != "nop"]))
            known = [StepRef(b, i) for b, n in enumerate(lengths) for i in range(n)]
            waits = draw(st.lists(st.sampled_from(known), max_size=1))
            steps.append(draw(_step(rank, block, index, kind, ends, tuple(waits))))
    return steps


@st.composite
def _step(
    draw: st.DrawFn,
    rank: int,
    block: int,
    index: int,
    kind: str,
    ends: tuple[Connection, Connection],
    waits: tuple[StepRef, ...],
) -> Step:
    does, count = STEP_TYPES[kind], draw(st.integers(1, 2))
    buffers, starts = st.sampled_from(Buffer), st.integers(-1, 1)
    source, target = (Span(rank, draw(buffers), draw(starts), count) for _ in range(2))
    reads = [*[target] * does.adds, *[source] * does.reads]
    return Step(
        rank,
        block,
        index,
        kind,
        count,
        tuple(reads),
        (target,) * does.writes,
        ends[0] if does.receives else None,
        ends[1] if does.sends else None,
        waits,
    )


@st.composite
def two_sided(draw: st.DrawFn) -> Schedule:
    goal = draw(
        st.sampled_from(
            [
                contracts.contract("allreduce", RANKS, CHUNKS, in_place=True),
                contracts.contract("allreduce", RANKS, CHUNKS, in_place=False),
                contracts.contract("broadcast", RANKS, CHUNKS, in_place=False),
                contracts.contract("alltoall", RANKS, CHUNKS // RANKS, in_place=True),
            ]
        )
    )
    steps = [step for rank in range(RANKS) for step in draw(steps_of_blocks(rank))]
    size = Sizes(CHUNKS, CHUNKS, SCRATCH)
    protocol = draw(st.sampled_from(["Simple", "LL", "LL128"]))
    name = " ".join(draw(st.text("abc <>&\"'\u00e9\u4e00")).split())
    return Schedule(name, goal, (size,) * RANKS, tuple(steps), protocol=protocol)


@settings(max_examples=examples_of(50))
@given(two_sided())
def test_what_is_written_is_read_back(schedule: Schedule) -> None:
    assert bare(there_and_back(schedule)) == bare(schedule)


@pytest.mark.parametrize("text", [ring(2), ring(4), swap()])
def test_what_is_read_is_written(text: str) -> None:
    schedule = read_msccl(text, "f.xml")
    assert bare(there_and_back(schedule)) == bare(schedule)
    assert there_and_back(schedule).warnings == ()
    assert there_and_back(schedule).steps[0].line == 4


def _convertible() -> dict[str, Schedule]:
    return {
        "ring": small_schedules.ring_all_reduce(3),
        "two blocks": small_schedules.two_block_ring(),
        "all pairs": small_schedules.all_pairs(3),
        "tree": small_schedules.tree_all_reduce(),
        "chain reduce": small_schedules.chain_reduce(),
        "reduce scatter": small_schedules.direct_reduce_scatter(),
        "all to all": small_schedules.all_to_all_in_place(),
    }


@pytest.mark.parametrize("name", _convertible())
def test_small_schedules_stay_valid(name: str) -> None:
    again = there_and_back(_convertible()[name])
    assert verify(again).verdict is Verdict.VALID
    assert write_msccl(again) == write_msccl(_convertible()[name])
    assert not [text for text in again.warnings if "runtime" in text]


def waiting(*waits: tuple[StepRef, ...], kind: str = "cpy") -> Schedule:
    """Rank 0: blocks 0 and 1 of one copy each, and block 2 with steps that wait."""
    blocks = Blocks()
    blocks.copy(0, 0, "i0", "s0")
    blocks.copy(0, 1, "i1", "s1")
    for wait in waits:
        if kind == "cpy":
            blocks.copy(0, 2, "s0", "s2", waits=wait)
        else:
            blocks.add(0, 2, kind, count=0, waits=wait)
    return blocks.schedule("waits", contracts.contract("allreduce", 2, 2, in_place=False), 3)


def test_several_waits_become_nops() -> None:
    first, second = StepRef(0, 0), StepRef(1, 0)
    steps = there_and_back(waiting((), (first, second), (first,))).steps
    assert [(s.kind, s.waits) for s in steps if s.block == 2] == [
        ("cpy", ()),
        ("nop", (first,)),
        ("cpy", (second,)),
        ("cpy", (first,)),
    ]


def test_waits_for_steps_behind_nops_are_renumbered() -> None:
    schedule = waiting((StepRef(0, 0), StepRef(1, 0)))
    last = Step(0, 3, 0, "cpy", 1, (at("s2", 0),), (at("o0", 0),), waits=(StepRef(2, 0),))
    again = there_and_back(replace(schedule, steps=(*schedule.steps, last)))
    assert again.steps[-1].waits == (StepRef(2, 1),)
    assert again.warnings == ()


def test_nops_are_folded_into_the_next_step_or_left_out() -> None:
    blocks = Blocks()
    first = blocks.copy(0, 0, "i0", "s0")
    blocks.add(0, 1, "nop", count=0, waits=(first,))
    blocks.copy(0, 1, "s0", "o0")
    blocks.add(0, 1, "nop", count=0, waits=(first,))
    blocks.add(0, 2, "nop", count=0, waits=(first,))
    schedule = blocks.schedule("nops", contracts.contract("allreduce", 2, 1, in_place=False), 1)
    steps = there_and_back(schedule).steps
    assert [(s.kind, s.block, s.waits) for s in steps] == [("cpy", 0, ()), ("cpy", 1, (first,))]


def test_blocks_are_numbered_from_zero() -> None:
    blocks = Blocks()
    first = blocks.copy(0, 7, "i0", "s0")
    blocks.copy(0, 3, "s0", "o0", waits=(first,))
    schedule = blocks.schedule("blocks", contracts.contract("allreduce", 2, 1, in_place=False), 1)
    again = there_and_back(schedule)
    assert [(s.block, s.waits) for s in again.steps] == [(1, ()), (0, (StepRef(1, 0),))]
    assert again.warnings == ()


def test_attributes_that_executors_require() -> None:
    head, _, rest = write_msccl(small_schedules.ring_all_reduce(2)).partition("\n")
    assert head == (
        '<algo name="ring 2" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" '
        'coll="allreduce" inplace="1" outofplace="0" minBytes="0" maxBytes="1099511627776">'
    )
    assert rest.splitlines()[2] == (
        '      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" '
        'depid="-1" deps="-1" hasdep="0"/>'
    )


def test_the_other_end_of_a_message_is_shown() -> None:
    blocks = Blocks()
    blocks.send(0, 0, 1, "i0")
    blocks.receive("r", 1, 0, 0, "s2")
    schedule = blocks.schedule("x", contracts.contract("allreduce", 2, 1, in_place=False), 3)
    text = write_msccl(schedule)
    assert text.count('srcbuf="i" srcoff="0" dstbuf="s" dstoff="2"') == 2


def test_names_that_xml_cannot_hold() -> None:
    schedule = replace(small_schedules.ring_all_reduce(2), name='a\x00"<\ud800')
    assert there_and_back(schedule).name == 'a\ufffd"<\ufffd'


def one(**fields: Any) -> Schedule:
    """Rank 0 has one step, a copy of one chunk if not said otherwise."""
    usual = {"reads": (at("i0", 0),), "writes": (at("o0", 0),)}
    blocks = Blocks()
    blocks.add(0, 0, "step", **usual | fields)
    return blocks.schedule("one", contracts.contract("allreduce", 2, 1, in_place=False), 1)


IN, OUT = Connection(1, 0, 0), Connection(0, 1, 0)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"posts": ("x",)}, "has signals"),
        ({"awaits": ("x",)}, "has waits for signals"),
        ({"barrier": "x"}, "has a barrier"),
        ({"background": True}, "has a transfer beside its block"),
        ({"after": ()}, "has an order other than that of its block"),
        ({"reads": (at("i0", 1),)}, "uses i[0] of rank 1: MSCCL XML has no remote access"),
        ({"reads": (at("i0", 0, packet=True),)}, "as packets"),
        ({"reads": (at("i0", 0, 2),)}, "handles 1 chunks, but i[0..1] of rank 0 has 2"),
        ({"writes": (at("o0", 0), at("s0", 0))}, "reads 1 places, stores to 2: no type"),
        ({"send": OUT}, "reads 1 places, stores to 1, sends: no type"),
        ({"writes": ()}, "reads 1 places: no type"),
        ({"reads": (), "writes": (), "receive": IN}, "receives: no type"),
        ({"reads": (), "writes": (), "receive": IN, "send": OUT}, "receives, sends: no type"),
        ({"reads": (at("i0", 0),) * 2}, "stores a sum beside both its sources"),
        ({"reads": (at("o0", 0),) * 3}, "reads 3 places"),
        ({"reads": (at("i0", 0, 0),), "writes": (at("o0", 0, 0),), "count": 0}, "no chunks"),
        ({"writes": (), "send": Connection(1, 0, 0)}, "uses 1->0 channel 0, not its own"),
        ({"writes": (), "send": Connection(0, 1, -2)}, "channels are numbered from 0"),
        ({"waits": (StepRef(0, 5),)}, "waits for block 0 step 5, which is a nop or does not exist"),
        ({"waits": (StepRef(9, 0),)}, "waits for block 9 step 0, which is a nop or does not exist"),
    ],
)
def test_steps_that_cannot_be_written(fields: dict[str, Any], what: str) -> None:
    assert what in refusal(one(**fields))


def test_a_wait_for_a_nop_cannot_be_written() -> None:
    schedule = waiting((StepRef(0, 0),), kind="nop")
    last = Step(0, 3, 0, "cpy", 1, (at("i0", 0),), (at("o0", 0),), waits=(StepRef(2, 0),))
    shown = refusal(replace(schedule, steps=(*schedule.steps, last)))
    assert "waits for block 2 step 0, which is a nop" in shown


@pytest.mark.parametrize(
    ("second", "what"),
    [
        ({"peer": 2}, "rank 0 block 0: sends on 0->1 channel 0 and 0->2 channel 0"),
        ({"peer": 1, "channel": 1}, "rank 0 block 0: sends on 0->1 channel 0 and 0->1 channel 1"),
    ],
)
def test_one_peer_per_block(second: dict[str, Any], what: str) -> None:
    blocks = Blocks()
    blocks.send(0, 0, 1, "i0")
    blocks.send(0, 0, source="i0", **second)
    assert what in refusal(
        blocks.schedule("x", contracts.contract("allreduce", 3, 1, in_place=False))
    )


def test_one_channel_per_block() -> None:
    blocks = Blocks()
    blocks.send(0, 0, 1, "i0")
    blocks.receive("r", 0, 0, 2, "o0", channel=4)
    shown = refusal(blocks.schedule("x", contracts.contract("allreduce", 3, 1, in_place=False)))
    assert "sends on 0->1 channel 0 and receives on 2->0 channel 4" in shown


def test_steps_must_be_numbered() -> None:
    schedule = one()
    step = replace(schedule.steps[0], index=1)
    assert "is step 0 of its block in order" in refusal(replace(schedule, steps=(step,)))


def of_contract(goal: Contract, *steps: Step, size: int = 2, **more: Any) -> Schedule:
    return Schedule("x", goal, (Sizes(size, size, 0),) * goal.ranks, steps, **more)


CUSTOM = replace(contracts.contract("allreduce", 2, 2, in_place=False), goals=())


@pytest.mark.parametrize(
    ("schedule", "what"),
    [
        (
            of_contract(contracts.contract("scatter", 2, 1, in_place=False)),
            "no collective 'scatter'",
        ),
        (
            of_contract(contracts.contract("broadcast", 2, 2, in_place=True, root=1)),
            "(with root 0)",
        ),
        (of_contract(contracts.contract("reduce", 2, 2, in_place=True, root=1)), "(with root 0)"),
        (of_contract(CUSTOM), "is not the allreduce"),
        (
            of_contract(contracts.contract("allreduce", 2, 2, in_place=True), protocol="LL3"),
            "protocol 'LL3'",
        ),
        (
            of_contract(contracts.contract("allreduce", 2, 2, in_place=True), initial=(("x", 1),)),
            "semaphores",
        ),
    ],
)
def test_schedules_that_cannot_be_written(schedule: Schedule, what: str) -> None:
    assert what in refusal(schedule)


def test_memory_beyond_the_callers() -> None:
    step = Step(0, 0, 0, "cpy", 1, (at("i0", 0),), (at("o2", 0),))
    goal = contracts.contract("allreduce", 2, 2, in_place=False)
    shown = refusal(of_contract(goal, step, size=3))
    assert "rank 0 uses buffer o beyond the caller's 2 chunks; use scratch" in shown
    assert there_and_back(of_contract(goal, step)).steps[0].writes == (at("o2", 0),)

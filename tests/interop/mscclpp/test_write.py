"""Plans that are written say what the schedule says, or are refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from p2smt.collectives.contract import contract
from p2smt.errors import InputError
from p2smt.interop.mscclpp.read import read_mscclpp
from p2smt.interop.mscclpp.write import write_mscclpp
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span, Step, StepRef
from p2smt.schedules.verify.verify import verify
from tests.interop.mscclpp.plans import (
    NOP,
    Data,
    all_gather,
    far,
    lonely,
    move,
    near,
    op,
    over,
    pair,
    read,
)

IN, OUT, SCRATCH = Buffer


def _bare(schedule: Schedule) -> Schedule:
    steps = tuple(replace(step, line=None, place=None) for step in schedule.steps)
    return replace(schedule, steps=steps, warnings=())


def _back(schedule: Schedule) -> Schedule:
    return _bare(read_mscclpp(write_mscclpp(schedule), "back.json"))


_PUT = move("put", [near("i", 0), near("i", 1)], [far(0, 0), far(1, 1)])
_PORT = {"channel_type": "port", "channel_ids": [0]}
_PORT_PUT = move("put", [near("i", 0)], [far(0, 0)], **_PORT)
_PLANS = {
    "all-gather": all_gather(),
    "lists": pair([over("signal", 0, 1), over("wait", 0, 1), NOP, over("signal", 1), NOP]),
    "one-thread": pair([over("signal", 0), over("wait", 1), over("rlxsignal", 0), NOP]),
    "no-nop": pair([_PUT, over("signal", 0), over("wait", 1)]),
    "port": pair([_PORT_PUT, NOP, over("signal", 0, kind="port"), over("flush", 0, kind="port")]),
    "pws": pair([move("pws", [near("i", 0)], [far(0, 0)], **_PORT), NOP]),
    "pwsf": pair(
        [
            move(
                "pwsf",
                [near("i", 0), near("s", 0)],
                [far(0, 0), far(2, 0)],
                channel_type="port",
                channel_ids=[0, 1],
            ),
            over("wait", 0, kind="port"),
            NOP,
        ]
    ),
    "reduce": pair(
        [
            move("re", [near("i", 0), near("s", 0), near("s", 1)], [near("o", 0)]),
            move("res", [near("i", 1), near("s", 2)], [near("o", 1), far(0, 0)]),
            move("rre", [near("i", 2), far(0, 2), far(2, 2)], [near("o", 2)]),
            move("rres", [near("i", 3), far(0, 3)], [near("o", 3), far(1, 3)]),
            move("get", [far(2, 3)], [near("s", 3)]),
        ]
    ),
    "packets": pair(
        [
            move("ppkt", [near("i", 0), near("i", 1)], [far(2, 0), far(2, 1)]),
            move("cpkt", [near("i", 0)], [near("s", 0)]),
            move("rppkt", [near("s", 0)], [far(2, 2), far(2, 3)]),
            move("upkt", [near("s", 1)], [near("o", 1)]),
            move("repkt", [near("i", 0), near("s", 1)], [near("o", 0)]),
            move("respkt", [near("i", 0), near("s", 1)], [near("o", 0), far(2, 0)]),
            move("recpkt", [near("i", 0), near("s", 1)], [near("o", 0), near("s", 2)]),
            move("recspkt", [near("i", 0), near("s", 1)], [near("o", 0), near("s", 2), far(2, 0)]),
        ],
        protocol="LL",
    ),
    "port-packets": pair([move("ppkt", [near("s", 0)], [far(2, 0)], **_PORT), NOP], protocol="LL"),
    "blocks": lonely(
        [op("sem_acquire", semaphore_ids=[1, 0]), NOP],
        [
            op("sem_release", semaphore_ids=[1]),
            op("barrier", barrier_id=2, num_threadblocks=2),
        ],
        [op("barrier", barrier_id=2, num_threadblocks=2)],
        semaphores=(3, 0),
    ),
}


@pytest.mark.parametrize("name", _PLANS)
def test_what_was_read_is_written_back(name: str) -> None:
    schedule = _bare(read(_PLANS[name]))
    assert _back(schedule) == schedule


def _ring(ranks: int = 3) -> Schedule:
    """A ring all-gather by hand: each step waits, puts one chunk on, and signals."""
    steps = []
    for rank in range(ranks):
        after = (rank + 1) % ranks
        own = Span(rank, OUT, rank, 1)
        steps.append(Step(rank, 0, 0, "copy", 1, (Span(rank, IN, 0, 1),), (own,)))
        for k in range(ranks - 1):
            chunk = (rank - k) % ranks
            steps.append(
                Step(
                    rank,
                    0,
                    k + 1,
                    "put",
                    1,
                    (Span(rank, OUT, chunk, 1),),
                    (Span(after, OUT, chunk, 1),),
                    awaits=(f"token to {rank}",) if k else (),
                    posts=(f"token to {after}",),
                )
            )
        last = (f"token to {rank}",)
        steps.append(Step(rank, 0, ranks, "wait", awaits=last))
    sizes = (Sizes(1, ranks, 0),) * ranks
    return Schedule("ring", contract("allgather", ranks, 1), sizes, tuple(steps))


def test_a_ring_by_hand_becomes_a_valid_plan() -> None:
    ring = _ring()
    assert verify(ring).verdict == "valid"
    written = write_mscclpp(ring)
    back = read_mscclpp(written, "ring.json")
    assert verify(back).verdict == "valid"
    assert _back(back) == _bare(back)
    ops = json.loads(written)["gpus"][0]["threadblocks"][0]["ops"]
    assert [found["name"] for found in ops] == [
        *("copy", "put", "nop", "signal", "wait", "nop", "put", "nop", "signal", "wait"),
    ]


def test_a_wrong_schedule_stays_wrong() -> None:
    ring = _ring()
    wrong = replace(ring, steps=tuple(s for s in ring.steps if s.kind != "wait"))
    assert verify(wrong).verdict == "invalid"
    assert verify(_back(wrong)).verdict == "invalid"


def _alone(*steps: Step, **keys: object) -> Schedule:
    made = Schedule("own", contract("allreduce", 2, 4), (Sizes(4, 4, 4),) * 2, steps)
    return replace(made, **keys)  # type: ignore[arg-type]


def _copy(index: int, source: int, target: int, **keys: object) -> Step:
    reads, writes = (Span(0, IN, source, 1),), (Span(0, SCRATCH, target, 1),)
    step = Step(0, 0, index, "copy", 1, reads, writes)
    return replace(step, **keys)  # type: ignore[arg-type]


_SEND = Step(0, 0, 0, "s", 1, (Span(0, IN, 0, 1),), send=Connection(0, 1, 0))


@pytest.mark.parametrize(
    ("schedule", "part"),
    [
        (_alone(_SEND), "not received as sent"),
        (_alone(replace(_copy(0, 0, 9), waits=(StepRef(0, 0),))), "memory that does not exist"),
        (_alone(replace(_copy(0, 0, 0), waits=(StepRef(7, 0),))), "step that does not exist"),
        (_alone(replace(_copy(0, 0, 0), waits=(StepRef(0, 0),))), "wait for each other"),
        (_alone(_SEND, Step(1, 0, 0, "x", posts=("x",))), "either messages or one-sided"),
        (_alone(_copy(0, 0, 0), _copy(1, 1, 1, after=())), "need not come after"),
        (
            _alone(_copy(0, 0, 0), replace(_copy(0, 1, 1), block=1, after=(StepRef(0, 0),))),
            "of another block",
        ),
        (_alone(_copy(0, 0, 0, after=(StepRef(0, 7),))), "does not exist"),
        (
            _alone(Step(0, 0, 0, "x", 1, (Span(1, IN, 0, 1),), (Span(1, OUT, 0, 1),))),
            "no MSCCL[+][+] operation stores i.0. of rank 1 to o.0. of rank 1",
        ),
        (
            _alone(Step(0, 0, 0, "x", 1, (Span(0, IN, 0, 1),), (Span(0, OUT, 0, 1, packet=True),))),
            "has packets outside scratch",
        ),
        (_alone(_copy(0, 0, 0, barrier="b")), "a barrier that does more"),
        (
            _alone(Step(0, 0, 0, "a", posts=("x",)), Step(1, 0, 0, "b", posts=("x",))),
            "raised or awaited by several ranks",
        ),
        (
            _alone(
                Step(0, 0, 0, "a", posts=("x",)),
                Step(1, 0, 0, "b", awaits=("x",)),
                initial=(("x", 1),),
            ),
            "is between ranks and starts at 1",
        ),
        (_alone(contract=contract("reduce", 2, 4, root=1)), "is not what a plan of that name"),
        (
            _alone(_copy(0, 0, 0), _copy(1, 0, 1, writes=(Span(0, SCRATCH, 1, 1, packet=True),))),
            "which also holds packets",
        ),
        (
            _alone(_copy(0, 0, 0, background=True)),
            "is no transfer of a port channel|does not run in the background|one write",
        ),
    ],
)
def test_what_cannot_be_written(schedule: Schedule, part: str) -> None:
    with pytest.raises(InputError, match=part):
        write_mscclpp(schedule)


def test_custom_contracts_have_no_name() -> None:
    custom = replace(contract("allreduce", 2, 4), collective="custom")
    with pytest.raises(InputError, match="has no name in MSCCL"):
        write_mscclpp(_alone(contract=custom))


def test_a_step_is_put_behind_a_nop_where_no_thread_is_in_order() -> None:
    signal = Step(0, 0, 1, "signal", posts=("go",))
    wait = Step(1, 0, 0, "wait", awaits=("go",))
    data: Data = json.loads(write_mscclpp(_alone(_copy(0, 0, 0), signal, wait)))
    ops = data["gpus"][0]["threadblocks"][0]["ops"]
    assert [found["name"] for found in ops] == ["copy", "nop", "signal"]
    loose = replace(signal, after=())
    data = json.loads(write_mscclpp(_alone(_copy(0, 0, 0), loose, wait)))
    ops = data["gpus"][0]["threadblocks"][0]["ops"]
    assert [found["name"] for found in ops] == ["copy", "signal"]

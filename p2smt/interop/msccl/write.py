"""Writes a schedule as MSCCL XML that means the same, or says what the format cannot express.

All attributes that any executor requires are there.  What is read back is the same schedule, up
to line numbers, names of steps, ``nop`` steps (see raw_blocks), and the order in which the blocks
of different ranks stand.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from p2smt.collectives.contract import contract
from p2smt.collectives.names import MSCCL_NAMES
from p2smt.errors import InputError
from p2smt.interop.msccl.parse import (
    PROTOCOLS,
    STEP_TYPES,
    RawBlock,
    RawPlace,
    RawStep,
    StepType,
)
from p2smt.interop.msccl.read import PARTED, limits, needs, reach
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from p2smt.interop.msccl.parse import RawBlock, RawPlace, RawStep
    from p2smt.schedules.model import Connection, Schedule, Span, Step, StepRef


MAX_MESSAGE_BYTES = 1 << 40
"""Up to which message size a written file says it is to be used: any."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_msccl(schedule: Schedule) -> str:
    """The schedule as MSCCL XML.

    Raises:
        InputError: the format cannot express something in it; the message names it.
    """
    _check_contract(schedule)
    _check_memory(schedule)
    return "\n".join(_algo(schedule, raw_blocks(schedule))) + "\n"


def _given(schedule: Schedule) -> str:
    return f"schedule {schedule.name[:60]!r}"


def _check_contract(schedule: Schedule) -> None:
    goal, given = schedule.contract, _given(schedule)
    if goal.collective not in MSCCL_NAMES:
        rule = f"MSCCL XML has no collective {goal.collective[:40]!r}"
        raise InputError(given, rule, f"it has {', '.join(MSCCL_NAMES)}")
    chunks, parts = _chunks(schedule), goal.ranks if goal.collective in PARTED else 1
    usual = chunks > 0 and goal == contract(
        goal.collective, goal.ranks, chunks // parts, in_place=goal.in_place
    )
    if not usual:
        rule = f"is not the {goal.collective} (with root 0) that MSCCL XML means by this name"
        raise InputError(given, rule, "keep it as YAML")
    if schedule.protocol not in PROTOCOLS:
        rule = f"MSCCL XML has no protocol {schedule.protocol[:40]!r}"
        raise InputError(given, rule, f"it has {', '.join(PROTOCOLS)}")
    if schedule.initial:
        raise InputError(given, "MSCCL XML has no semaphores", "keep it as YAML")


def _chunks(schedule: Schedule) -> int:
    """``nchunksperloop``: chunks of the larger buffer."""
    return max(max(pair) for pair in needs(schedule.contract))


def _check_memory(schedule: Schedule) -> None:
    """The caller's buffers are as large as the collective needs, and no larger."""
    ends = reach(schedule.steps)
    for rank, limit in enumerate(limits(schedule.contract)):
        for buffer, most in zip((Buffer.INPUT, Buffer.OUTPUT), limit, strict=True):
            if most < ends.get((rank, buffer), 0) <= schedule.sizes[rank].of(buffer):
                rule = f"rank {rank} uses buffer {buffer.value} beyond the caller's {most} chunks"
                raise InputError(_given(schedule), rule, "use scratch for the rest")


def _algo(schedule: Schedule, blocks: Mapping[int, list[RawBlock]]) -> Iterator[str]:
    channels = [block.channel for gpu in blocks.values() for block in gpu]
    least, most = schedule.payloads or (0, MAX_MESSAGE_BYTES)
    yield _tag(
        "algo",
        name=_NOT_XML.sub("\ufffd", schedule.name),
        proto=schedule.protocol,
        nchannels=max(channels, default=0) + 1,
        nchunksperloop=_chunks(schedule),
        ngpus=schedule.ranks,
        coll=schedule.contract.collective,
        inplace=int(schedule.in_place),
        outofplace=int(not schedule.in_place),
        minBytes=least,
        maxBytes=most,
    )
    for rank, (inputs, outputs, scratch) in enumerate(schedule.sizes):
        yield "  " + _tag("gpu", id=rank, i_chunks=inputs, o_chunks=outputs, s_chunks=scratch)
        for block in blocks.get(rank, ()):
            yield from _block(block)
        yield "  </gpu>"
    yield "</algo>"


def _block(block: RawBlock) -> Iterator[str]:
    peers = {"send": block.send, "recv": block.receive, "chan": block.channel}
    yield "    " + _tag("tb", id=block.number, **peers)
    for index, step in enumerate(block.steps):
        yield "      " + _step(index, step)
    yield "    </tb>"


def _step(index: int, step: RawStep) -> str:
    depid, deps = step.wait or (-1, -1)
    srcbuf, srcoff = _place(step.source, Buffer.INPUT)
    dstbuf, dstoff = _place(step.target, Buffer.OUTPUT)
    tag = _tag(
        "step",
        s=index,
        type=step.kind,
        srcbuf=srcbuf,
        srcoff=srcoff,
        dstbuf=dstbuf,
        dstoff=dstoff,
        cnt=step.count,
        depid=depid,
        deps=deps,
        hasdep=int(bool(step.announced)),
    )
    return f"{tag[:-1]}/>"


def _place(place: RawPlace | None, default: Buffer) -> tuple[str, int]:
    """Attributes for a place; a nop has none, and the format wants some."""
    return (default.value, -1) if place is None else (place.buffer.value, place.start)


def _tag(element: str, **attributes: str | int) -> str:
    """The start of an element."""
    shown = (
        f'{name}="{value}"' if isinstance(value, int) else f"{name}={quoteattr(value)}"
        for name, value in attributes.items()
    )
    return f"<{element} {' '.join(shown)}>"


# Turns the steps of a schedule into the elements of MSCCL XML.
# A step has one dependency there: further ones become ``nop`` steps before it.  ``nop`` steps of
# the schedule are folded into the step after them, as the runtime does; at the end of a block they
# have no effect and are left out.  Blocks are numbered 0, 1, .. if they were not.


NOP = "nop"


@dataclass(slots=True)
class _Line:
    """A step to be written, or a nop in front of one, and what it waits for."""

    wait: StepRef | None
    step: Step
    extra: bool = False


@dataclass(slots=True)
class _Block:
    """A block to be written; ``places``: where the steps of the schedule are in it."""

    number: int
    lines: list[_Line] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Gpu:
    """The blocks of a rank by the schedule's numbers, and which lines another one waits for."""

    blocks: Mapping[int, _Block]
    awaited: set[tuple[int, int]] = field(default_factory=set)


def raw_blocks(schedule: Schedule) -> dict[int, list[RawBlock]]:
    """By rank, the blocks of MSCCL XML that do what the schedule's do.

    Raises:
        InputError: the format cannot express one of the steps.
    """
    types = {id(step): type_of(step) for step in schedule.steps}
    found: dict[int, dict[int, list[Step]]] = defaultdict(lambda: defaultdict(list))
    for step in schedule.steps:
        found[step.rank][step.block].append(step)
    gpus = {rank: _gpu(blocks, types) for rank, blocks in found.items()}
    far = _far_ends(gpus, types)
    return {rank: [*_raw(gpu, types, far)] for rank, gpu in gpus.items()}


def _gpu(blocks: Mapping[int, list[Step]], types: Mapping[int, str]) -> _Gpu:
    kept = [n for n, steps in blocks.items() if any(types[id(step)] != NOP for step in steps)]
    dense = {old: new for new, old in enumerate(sorted(kept))}
    gpu = _Gpu({old: _laid_out(dense[old], blocks[old], types) for old in kept})
    for line in chain.from_iterable(block.lines for block in gpu.blocks.values()):
        if line.wait is not None:
            gpu.awaited.add(_target(gpu, line.step, line.wait))
    return gpu


def _laid_out(number: int, steps: list[Step], types: Mapping[int, str]) -> _Block:
    """One dependency per line; nop steps go into what follows them."""
    block = _Block(number)
    waits: list[StepRef] = []
    for index, step in enumerate(sorted(steps, key=lambda step: step.index)):
        if step.index != index:
            rule = f"is step {index} of its block in order"
            raise InputError(str(step), rule, "number the steps 0, 1, ..")
        waits += step.waits
        if types[id(step)] != NOP:
            distinct = list(dict.fromkeys(waits))
            block.lines += [_Line(wait, step, extra=True) for wait in distinct[:-1]]
            block.places[index] = len(block.lines)
            block.lines.append(_Line(distinct[-1] if distinct else None, step))
            waits = []
    return block


def _target(gpu: _Gpu, step: Step, wait: StepRef) -> tuple[int, int]:
    """The written block and step that a step waits for."""
    block = gpu.blocks.get(wait.block)
    place = None if block is None else block.places.get(wait.index)
    if block is None or place is None:
        rule = f"waits for block {wait.block} step {wait.index}, which is a nop or does not exist"
        raise InputError(str(step), rule, "MSCCL XML waits for steps that move data")
    return block.number, place


def _far_ends(gpus: Mapping[int, _Gpu], types: Mapping[int, str]) -> dict[int, RawPlace]:
    """For plain sends and receives, the place at the other end of the message.

    Only for people, and for runtimes that write directly into the peer's memory.
    """
    sent: dict[Connection, list[Step]] = defaultdict(list)
    received: dict[Connection, list[Step]] = defaultdict(list)
    for step in _steps(gpus):
        if step.send is not None:
            sent[step.send].append(step)
        if step.receive is not None:
            received[step.receive].append(step)
    far: dict[int, RawPlace] = {}
    for connection, sends in sent.items():
        for send, receive in zip(sends, received[connection], strict=False):
            source, stored = places_of(send, types[id(send)])
            read, target = places_of(receive, types[id(receive)])
            for step, place in ((send, target or read), (receive, source or stored)):
                if place is not None and types[id(step)] in ("s", "r"):
                    far[id(step)] = place
    return far


def _steps(gpus: Mapping[int, _Gpu]) -> Iterator[Step]:
    for gpu in gpus.values():
        for block in gpu.blocks.values():
            yield from (line.step for line in block.lines if not line.extra)


def _raw(gpu: _Gpu, types: Mapping[int, str], far: Mapping[int, RawPlace]) -> Iterator[RawBlock]:
    for block in gpu.blocks.values():
        peers = peers_of([line.step for line in block.lines])
        steps = []
        for number, line in enumerate(block.lines):
            wait = None if line.wait is None else _target(gpu, line.step, line.wait)
            announced = (block.number, number) in gpu.awaited
            steps.append(_raw_step(line, types[id(line.step)], far, wait, announced))
        yield RawBlock(0, block.number, *peers, tuple(steps))


def _raw_step(
    line: _Line,
    kind: str,
    far: Mapping[int, RawPlace],
    wait: tuple[int, int] | None,
    announced: bool,
) -> RawStep:
    if line.extra:
        return RawStep(0, NOP, None, None, 0, wait, announced)
    source, target = places_of(line.step, kind)
    other = far.get(id(line.step)) or source or target
    return RawStep(0, kind, source or other, target or other, line.step.count, wait, announced)


# Which type of MSCCL XML step does what a step of a schedule does, and with which peers.


_TYPES = {does: kind for kind, does in STEP_TYPES.items()}
_KEEP = "keep it as YAML"


def type_of(step: Step) -> str:
    """The type of an MSCCL XML step that does the same.

    Raises:
        InputError: there is none.
    """
    _check_order(step)
    _check_spans(step)
    adds = step.receive is None and len(step.reads) == 2 and bool(step.writes)
    if adds and step.writes[0] not in step.reads:
        raise InputError(str(step), "stores a sum beside both its sources", "copy, then reduce")
    does = StepType(
        step.receive is not None,
        bool(step.reads),
        bool(step.writes),
        step.send is not None,
        adds,
    )
    kind = _TYPES.get(does)
    if kind is None or len(step.reads) > 1 + adds or len(step.writes) > 1:
        rule = f"{_shape(step)}: no type of MSCCL XML step does that"
        raise InputError(str(step), rule, "split it into several steps")
    if step.count == 0 and kind != "nop":
        raise InputError(str(step), "moves no chunks: MSCCL XML ignores that", "remove it")
    return kind


def _shape(step: Step) -> str:
    parts = [
        *(["receives"] if step.receive is not None else []),
        *([f"reads {len(step.reads)} places"] if step.reads else []),
        *([f"stores to {len(step.writes)}"] if step.writes else []),
        *(["sends"] if step.send is not None else []),
    ]
    return ", ".join(parts)


def _check_order(step: Step) -> None:
    """MSCCL XML has program order and waits for steps, and nothing else."""
    unknown = {
        "an order other than that of its block": step.after is not None,
        "signals": bool(step.posts),
        "waits for signals": bool(step.awaits),
        "a barrier": step.barrier is not None,
        "a transfer beside its block": step.background,
    }
    for what, given in unknown.items():
        if given:
            raise InputError(str(step), f"has {what}, which MSCCL XML has not", _KEEP)


def _check_spans(step: Step) -> None:
    for span in (*step.reads, *step.writes):
        if span.rank != step.rank:
            raise InputError(str(step), f"uses {span}: MSCCL XML has no remote access", _KEEP)
        if span.packet:
            raise InputError(str(step), f"uses {span} as packets: MSCCL XML has none", _KEEP)
        if span.count != step.count:
            rule = f"handles {step.count} chunks, but {span} has {span.count}"
            raise InputError(str(step), rule, "MSCCL XML has one number for both")


def places_of(step: Step, kind: str) -> tuple[RawPlace | None, RawPlace | None]:
    """Source and target of a step of that type, None where it has none."""
    target = _place_of_span(step.writes[0]) if step.writes else None
    sources = list(step.reads)
    if kind == "re":
        sources.remove(step.writes[0])
    return _place_of_span(sources[0]) if sources else None, target


def _place_of_span(span: Span) -> RawPlace:
    return RawPlace(span.buffer, span.start)


def peers_of(steps: Sequence[Step]) -> tuple[int, int, int]:
    """The rank that a block sends to, the one it receives from (-1: none), and the channel.

    Raises:
        InputError: there are several, or a connection of other ranks.
    """
    sends = _only(steps, [step.send for step in steps], "sends on")
    receives = _only(steps, [step.receive for step in steps], "receives on")
    if sends and receives and sends.channel != receives.channel:
        rule = f"sends on {sends} and receives on {receives}"
        raise InputError(_name(steps), rule, "a block of MSCCL XML has one channel")
    either = sends or receives
    for connection, own in ((sends, 0), (receives, 1)):
        if connection and connection[own] != steps[0].rank:
            raise InputError(_name(steps), f"uses {connection}, not its own", "name its own rank")
    if either and either.channel < 0:
        raise InputError(_name(steps), f"uses {either}", "channels are numbered from 0")
    peers = (sends.target if sends else -1, receives.source if receives else -1)
    return (*peers, either.channel if either else 0)


def _only(
    steps: Sequence[Step], connections: Iterable[Connection | None], verb: str
) -> Connection | None:
    known = list(dict.fromkeys(connection for connection in connections if connection))
    if len(known) > 1:
        rule = f"{verb} {known[0]} and {known[1]}: a block of MSCCL XML has one peer for that"
        raise InputError(_name(steps), rule, "put them into blocks of their own")
    return known[0] if known else None


def _name(steps: Sequence[Step]) -> str:
    return f"rank {steps[0].rank} block {steps[0].block}"

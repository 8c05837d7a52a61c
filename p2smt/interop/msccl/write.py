"""Writes a schedule as MSCCL XML that means the same, or says what the format cannot express.

All attributes that any executor requires are there.  What is read back is the same schedule, up
to line numbers, names of steps, ``nop`` steps (see raw_blocks), and the order in which the blocks
of different ranks stand.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from p2smt.collectives.contract import contract
from p2smt.collectives.names import MSCCL_NAMES
from p2smt.errors import InputError
from p2smt.interop.msccl.parse import PROTOCOLS
from p2smt.interop.msccl.raw_blocks import raw_blocks
from p2smt.interop.msccl.sizes import PARTED, limits, needs, reach
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from p2smt.interop.msccl.elements import RawBlock, RawPlace, RawStep
    from p2smt.schedules.model import Schedule

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
        minBytes=0,
        maxBytes=MAX_MESSAGE_BYTES,
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

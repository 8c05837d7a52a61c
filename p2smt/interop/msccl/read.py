"""Reads MSCCL XML as a schedule.

What the file says about buffers, peers and dependencies is kept even if it is wrong, for the
checker to report with the line number.  Choices:

- Steps run in document order, as in the runtime.
- ``<copy>`` elements run before the steps of their gpu: they become a block of their own, which
  the first step of every other block waits for.
- A step of no chunks does nothing but wait: the runtime's loop over its chunks does not start.
- A wait ends when the runtime ends it: see announcements.
- A file for both uses is read in place unless asked otherwise.
- The root of reduce and broadcast is the caller's to say: the format does not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from p2smt.collectives.contract import contract
from p2smt.collectives.names import CUSTOM, MSCCL_NAMES
from p2smt.errors import TooLarge
from p2smt.files.suggest import did_you_mean
from p2smt.interop.msccl.announcements import announced_by, announcements_of, says_announcements
from p2smt.interop.msccl.elements import STEP_TYPES
from p2smt.interop.msccl.parse import parse_msccl
from p2smt.interop.msccl.runtime_limits import refusals
from p2smt.interop.msccl.runtime_warnings import warnings_of
from p2smt.interop.msccl.sizes import PARTED, sizes_of
from p2smt.interop.reading import AS_IT_STANDS
from p2smt.schedules.model import Connection, Schedule, Span, Step, StepRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.collectives.contract import Contract
    from p2smt.interop.msccl.elements import RawAlgo, RawBlock, RawGpu, RawPlace, RawStep
    from p2smt.interop.reading import Reading

Announcements: TypeAlias = "Mapping[int, Sequence[int | None]]"
FORMAT = "msccl-xml"
MAX_CELLS = 1 << 20
"""Most chunks in the larger buffers of all ranks."""


def read_msccl(text: str, source: str, reading: Reading = AS_IT_STANDS) -> Schedule:
    """The schedule in an MSCCL XML text; ``source`` names the file in messages.

    Raises:
        InputError: the text is not such a file, or too large.
    """
    algo = parse_msccl(text, source)
    in_place = bool(algo.in_place) if reading.in_place is None else reading.in_place
    goal = _contract(algo, reading, in_place)
    stated = says_announcements(algo)
    gpus = [algo.gpus[rank] for rank in range(algo.ranks)]
    steps = tuple(
        step for gpu in gpus for step in _gpu(gpu, announcements_of(gpu) if stated else {})
    )
    declared = [algo.gpus[rank].chunks for rank in range(algo.ranks)]
    sizes = sizes_of(goal, declared, steps)
    warnings = (*_renamed(algo, goal), *warnings_of(algo, in_place, steps))
    refused = refusals(algo)
    return Schedule(algo.name, goal, sizes, steps, FORMAT, algo.protocol, (), warnings, refused)


def _contract(algo: RawAlgo, reading: Reading, in_place: bool) -> Contract:
    name = reading.collective or _stated(algo)
    chunks = algo.chunks or max(max(gpu.chunks[:2]) for gpu in algo.gpus.values())
    if chunks < 1:
        raise algo.error("there is no nchunksperloop, nor any chunk", "add nchunksperloop")
    if chunks * algo.ranks > MAX_CELLS:
        error = algo.error(f"has more than {MAX_CELLS} chunks over all ranks", "use fewer chunks")
        raise TooLarge(error.given, error.rule, error.remedy)
    if name in PARTED:
        chunks, rest = divmod(chunks, algo.ranks)
        if rest:
            rule = f"nchunksperloop of {name} is not a multiple of ngpus={algo.ranks}"
            raise algo.error(rule, "give every rank as many chunks")
    return contract(name, algo.ranks, chunks, in_place=in_place, root=reading.root_of(name))


def _stated(algo: RawAlgo) -> str:
    """The collective that the file names.

    Raises:
        InputError: it names none, or none that is known.
    """
    name = algo.collective
    if name in MSCCL_NAMES:
        return str(name)
    if name is None or name == CUSTOM:
        has = "coll is missing" if name is None else "coll is custom"
        rule = f"{has}, so the file does not say what it must produce"
        raise algo.error(rule, "name a collective with --collective")
    known = (*MSCCL_NAMES, CUSTOM)
    shown = ascii(name if len(name) <= 40 else f"{name[:40]}...")
    rule = f"<algo> has coll={shown}, not one of {', '.join(known)}"
    raise algo.error(rule, did_you_mean(name, known) or "name a collective with --collective")


def _renamed(algo: RawAlgo, goal: Contract) -> Iterator[str]:
    """A warning where the file names another collective than it is checked as."""
    if algo.collective not in (None, CUSTOM, goal.collective):
        shown = ascii(str(algo.collective)[:40])
        yield f"line {algo.line}: the file is for {shown}: checked as {goal.collective}, as asked"


def _gpu(gpu: RawGpu, announcements: Announcements) -> Iterator[Step]:
    """The steps of a gpu: copies first, in a block after all others."""
    copied: tuple[StepRef, ...] = ()
    if gpu.copies:
        own = max(gpu.blocks, default=-1) + 1
        copied = (StepRef(own, len(gpu.copies) - 1),)
        for index, raw in enumerate(gpu.copies):
            yield _step(gpu.rank, own, index, raw, None, None)
    for block in gpu.blocks.values():
        for step, raw in zip(_block(gpu.rank, block, copied), block.steps, strict=True):
            yield step if raw.wait is None else _waiting(step, StepRef(*raw.wait), announcements)


def _waiting(step: Step, named: StepRef, announcements: Announcements) -> Step:
    """The step with its wait for another block, which ends when the runtime ends it."""
    ended = announced_by(announcements, (named.block, named.index))
    if ended is None:
        return replace(step, waits=(named, *step.waits), unannounced=(named,))
    return replace(step, waits=(StepRef(named.block, ended), *step.waits))


def _block(rank: int, block: RawBlock, copied: tuple[StepRef, ...]) -> Iterator[Step]:
    send = Connection(rank, block.send, block.channel)
    receive = Connection(block.receive, rank, block.channel)
    for index, raw in enumerate(block.steps):
        first = copied if index == 0 else ()
        yield _step(rank, block.number, index, raw, receive, send, first)


def _step(
    rank: int,
    block: int,
    index: int,
    raw: RawStep,
    receive: Connection | None,
    send: Connection | None,
    waits: tuple[StepRef, ...] = (),
) -> Step:
    if not raw.count:
        return Step(rank, block, index, raw.kind, waits=waits, line=raw.line)
    does = STEP_TYPES[raw.kind]
    source, target = _spans(rank, raw.source, raw.count), _spans(rank, raw.target, raw.count)
    return Step(
        rank,
        block,
        index,
        raw.kind,
        raw.count,
        reads=(*target, *source) if does.adds else source,
        writes=target,
        receive=receive if does.receives else None,
        send=send if does.sends else None,
        waits=waits,
        line=raw.line,
    )


def _spans(rank: int, place: RawPlace | None, count: int) -> tuple[Span, ...]:
    return () if place is None else (Span(rank, place.buffer, place.start, count),)

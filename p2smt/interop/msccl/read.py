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

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from p2smt.collectives.contract import contract
from p2smt.collectives.names import CUSTOM, MSCCL_NAMES
from p2smt.errors import InputError, TooLarge, did_you_mean
from p2smt.interop.msccl.parse import STEP_TYPES, parse_msccl
from p2smt.interop.reading import AS_IT_STANDS, NoKind
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span, Step, StepRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from p2smt.collectives.contract import Contract
    from p2smt.interop.msccl.parse import RawAlgo, RawBlock, RawGpu, RawPlace, RawStep
    from p2smt.interop.reading import Reading
    from p2smt.schedules.model import Step


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
    warnings = (*_beside(algo), *_renamed(algo, goal), *warnings_of(algo, in_place, steps))
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
            raise _no_kind(algo.error(rule, "give every rank as many chunks"))
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
        raise _no_kind(algo.error(rule, "name a collective with --collective"))
    known = (*MSCCL_NAMES, CUSTOM)
    shown = ascii(name if len(name) <= 40 else f"{name[:40]}...")
    rule = f"<algo> has coll={shown}, not one of {', '.join(known)}"
    remedy = did_you_mean(name, known) or "name a collective with --collective"
    raise _no_kind(algo.error(rule, remedy))


def _no_kind(error: InputError) -> NoKind:
    return NoKind(error.given, error.rule, error.remedy)


def _beside(algo: RawAlgo) -> Iterator[str]:
    """Warnings of what the file leaves out or has besides the algorithm."""
    if algo.counted:
        yield f"line {algo.line}: ngpus is missing: {algo.ranks}, as many as there are gpus"
    for text, line in algo.beside:
        yield (
            f"line {line}: text beside <algo> is left out, such as a generator prints of its own "
            f"check: {text[:80]!a}"
        )


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
        yield from _block(gpu.rank, block, copied, announcements)


def _block(
    rank: int, block: RawBlock, copied: tuple[StepRef, ...], announcements: Announcements
) -> Iterator[Step]:
    send = Connection(rank, block.send, block.channel)
    receive = Connection(block.receive, rank, block.channel)
    for index, raw in enumerate(block.steps):
        named, never = _waits(raw, announcements)
        waits = (*named, *copied) if index == 0 else named
        yield _step(rank, block.number, index, raw, receive, send, waits, never)


def _waits(
    raw: RawStep, announcements: Announcements
) -> tuple[tuple[StepRef, ...], tuple[StepRef, ...]]:
    """A wait for another block, which ends when the runtime ends it; again, if it never does."""
    if raw.wait is None:
        return (), ()
    ended = announced_by(announcements, raw.wait)
    if ended is None:
        named = (StepRef(*raw.wait),)
        return named, named
    return (StepRef(raw.wait[0], ended),), ()


def _step(
    rank: int,
    block: int,
    index: int,
    raw: RawStep,
    receive: Connection | None,
    send: Connection | None,
    waits: tuple[StepRef, ...] = (),
    unannounced: tuple[StepRef, ...] = (),
) -> Step:
    if not raw.count:
        return Step(
            rank, block, index, raw.kind, waits=waits, unannounced=unannounced, line=raw.line
        )
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
        unannounced=unannounced,
        line=raw.line,
    )


def _spans(rank: int, place: RawPlace | None, count: int) -> tuple[Span, ...]:
    return () if place is None else (Span(rank, place.buffer, place.start, count),)


# What a wait for a step of another block comes to, given which steps the runtime announces.
# The runtime announces a step only if its ``hasdep`` is 1, as one rising number per block, and a
# waiting block compares with that number (``msccl_interpreter.h``).  So a wait for a step that is
# not announced ends with the next one of its block that is.  Where there is none, it never ends: in
# the last iteration over the data no higher number comes any more.
#
# ``nop`` is folded into the step after it and never announced itself.  The interpreter counts a
# step and one more for each dependency of it after the first; the loader (``msccl_parser.cc``,
# ``mscclGetAlgoFromXMLAndSetAlgo``) makes a dependency of a ``nop`` that waits, and nothing of one
# that does not.  So a step is announced with its place less the idle ``nop`` steps before it, and a
# wait, which names a place, ends with the first announced number that is no smaller.


def says_announcements(algo: RawAlgo) -> bool:
    """Whether a file has ``hasdep`` at all; one dialect leaves it to the runtime."""
    blocks = (block for gpu in algo.gpus.values() for block in gpu.blocks.values())
    return any(step.announced is not None for block in blocks for step in block.steps)


def announcements_of(gpu: RawGpu) -> dict[int, list[int | None]]:
    """By block and step: the step of that block whose announcement ends a wait for it, or None."""
    return {number: _announced(block) for number, block in gpu.blocks.items()}


def _announced(block: RawBlock) -> list[int | None]:
    found: list[int | None] = []
    idle = 0
    for index, step in enumerate(block.steps):
        if step.kind == "nop":
            idle += step.wait is None
        elif step.announced:
            found += [index] * (index - idle + 1 - len(found))
    return found + [None] * (len(block.steps) - len(found))


def announced_by(
    announcements: Mapping[int, Sequence[int | None]], wait: tuple[int, int]
) -> int | None:
    """The step of that block whose announcement ends a wait; None: none does.

    A wait for a step that does not exist stays what it is.
    """
    block, index = wait
    known = announcements.get(block, ())
    return known[index] if 0 <= index < len(known) else index


# What there is to say about lines of a file: equal texts together.


_SHOWN = 4

Finding = tuple[str, int]
"""What there is to say, and about which line."""


def by_subject(findings: Iterable[Finding]) -> tuple[str, ...]:
    """One text per subject, with the first lines that it is about."""
    lines: dict[str, list[int]] = defaultdict(list)
    for text, line in findings:
        lines[text].append(line)
    return tuple(f"{_lines(where)}: {text}" for text, where in lines.items())


def _lines(found: list[int]) -> str:
    lines = sorted(set(found))
    shown = ", ".join(map(str, lines[:_SHOWN]))
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return f"line{'s' * (len(lines) > 1)} {shown}{more}"


# Why a runtime would refuse an MSCCL XML file, whatever the file means.
# Sources: microsoft/msccl, src/include/msccl.h and src/graph/topo.cc; ROCm/rccl,
# src/include/msccl/msccl_struct.h and src/misc/msccl/msccl_parser.cc.  Both hold ``s`` to the most
# steps, so that a ``nop`` counts, although it is folded into the step after it.


@dataclass(frozen=True, slots=True)
class RuntimeLimits:
    """The tables of a runtime.

    steps: per block.  blocks: per gpu.  blocks_of_channel: per channel of a gpu.
    count: the most chunks in a step.
    wants_uses: whether it needs ``outofplace``, ``minBytes`` and ``maxBytes``.
    """

    steps: int
    blocks: int
    blocks_of_channel: int = 32
    count: int = 71
    wants_uses: bool = False


MSCCL = RuntimeLimits(steps=256, blocks=216)
RCCL = RuntimeLimits(steps=64, blocks=1024, wants_uses=True)
"""It has room for 32 blocks on each channel, of which every version has at least 32."""


def refusals(algo: RawAlgo, limits: RuntimeLimits = MSCCL) -> tuple[str, ...]:
    """Why the runtime does not run a file; one text per subject, none if it does."""
    return by_subject(_broken_limits(algo, limits))


def msccl_refusals(text: str, source: str) -> tuple[str, ...]:
    """Why MSCCL would not run a text; InputError as from ``parse_msccl``."""
    return refusals(parse_msccl(text, source), MSCCL)


def rccl_refusals(text: str, source: str) -> tuple[str, ...]:
    """Why RCCL would not run a text; InputError as from ``parse_msccl``."""
    return refusals(parse_msccl(text, source), RCCL)


def _broken_limits(algo: RawAlgo, limits: RuntimeLimits) -> Iterator[Finding]:
    yield from _attributes(algo, limits)
    for gpu in algo.gpus.values():
        yield from _blocks(algo, gpu, limits)
        for block in gpu.blocks.values():
            if len(block.steps) > limits.steps:
                yield f"the runtime runs at most {limits.steps} steps per block", block.line
            yield from _unfolded_nops(block)
            for step in block.steps:
                if step.count > limits.count:
                    text = f"the runtime handles at most {limits.count} chunks in a step"
                    yield text, step.line
                yield from _places(gpu, step)


def _attributes(algo: RawAlgo, limits: RuntimeLimits) -> Iterator[Finding]:
    """Those of the first line without which the runtime does not read on."""
    missing = [] if algo.collective is not None else ["coll"]
    missing += ["ngpus"] if algo.counted else []
    if limits.wants_uses:
        missing += [] if algo.out_of_place is not None else ["outofplace"]
        missing += [] if algo.sized else ["minBytes and maxBytes"]
    for name in missing:
        yield f"the runtime needs {name}", algo.line


def _blocks(algo: RawAlgo, gpu: RawGpu, limits: RuntimeLimits) -> Iterator[Finding]:
    """How many blocks a gpu has, how they are numbered, and on which channels they are."""
    blocks = gpu.blocks.values()
    if len(blocks) > limits.blocks:
        yield f"the runtime runs at most {limits.blocks} blocks per gpu", gpu.line
    if blocks and max(gpu.blocks) >= len(blocks):
        yield "the runtime refuses a gpu whose blocks are not numbered 0, 1, ..", gpu.line
    channels = Counter(block.channel for block in blocks)
    if channels and max(channels.values()) > limits.blocks_of_channel:
        most = limits.blocks_of_channel
        yield f"the runtime runs at most {most} blocks per channel", gpu.line
    for block in blocks:
        if algo.channels is not None and block.channel >= algo.channels:
            yield f"the runtime connects channels below nchannels={algo.channels} only", block.line


def _unfolded_nops(block: RawBlock) -> Iterator[Finding]:
    """Those that the runtime cannot fold into the next step."""
    pending = False
    for step in block.steps:
        if step.kind == "nop":
            pending = pending or step.wait is not None
            continue
        if pending and step.wait is None:
            text = "the runtime refuses a step that waits for nothing after a nop that does"
            yield text, step.line
        pending = False


def _places(gpu: RawGpu, step: RawStep) -> Iterator[Finding]:
    """Places whose first chunk is not among those declared; of ``rrc`` they are not looked at."""
    for place in (step.source, step.target):
        if place is None or step.kind == "rrc":
            continue
        declared = gpu.chunks[(Buffer.INPUT, Buffer.OUTPUT, Buffer.SCRATCH).index(place.buffer)]
        if not 0 <= place.start < declared:
            name = f"{place.buffer.value}_chunks"
            yield f"the runtime refuses a place beyond {name} of its gpu", step.line


# What the runtime makes of an MSCCL XML file besides what its steps say.
# What it refuses is in :mod:`~p2smt.interop.msccl.read`.  Waits: see announcements.
# ``nop`` is folded into the step after it: it counts only by its dependency.


_NOT_ANNOUNCED = "waits for a step with hasdep=0: the runtime waits for the next with hasdep=1"
_TOO_LOW = (
    "waits for a step that is announced too low, as the runtime does not count a nop before it: it "
    "waits for a later one with hasdep=1"
)


def warnings_of(algo: RawAlgo, in_place: bool, steps: Iterable[Step]) -> tuple[str, ...]:
    """What to know about a file that is used in place or not; one text per subject."""
    return by_subject(_warnings(algo, in_place, steps))


def _warnings(algo: RawAlgo, in_place: bool, steps: Iterable[Step]) -> Iterator[Finding]:
    yield from _uses(algo, in_place)
    stated = says_announcements(algo)
    for gpu in algo.gpus.values():
        if stated:
            yield from _dependencies(gpu)
        for block in gpu.blocks.values():
            yield from _shifting_nops(block)
            yield from _chains(block)
    if in_place:
        yield from _overruns(algo, steps)
    else:
        yield from _clobbered(steps)


def _uses(algo: RawAlgo, in_place: bool) -> Iterator[Finding]:
    """In place or out of place: what the file is for, and how it was read."""
    inside, outside = bool(algo.in_place), algo.out_of_place
    if outside is None:
        outside = not inside
    used, other = ("in place", "out of place") if in_place else ("out of place", "in place")
    if inside and outside:
        yield f"the file is for use in place and out of place: checked {used}", algo.line
    elif not inside and not outside:
        yield f"the file is for use neither in place nor out of place: checked {used}", algo.line
    elif inside != in_place:
        yield f"the file is for use {other}: checked {used}, as asked", algo.line


def _dependencies(gpu: RawGpu) -> Iterator[Finding]:
    """Waits that end later than they say; those that never end make the file invalid."""
    announcements = announcements_of(gpu)
    for block in gpu.blocks.values():
        for step in block.steps:
            ended = None if step.wait is None else announced_by(announcements, step.wait)
            if step.wait is not None and ended not in (None, step.wait[1]):
                awaited = gpu.blocks[step.wait[0]].steps[step.wait[1]]
                yield (_TOO_LOW if awaited.announced else _NOT_ANNOUNCED), step.line


def _shifting_nops(block: RawBlock) -> Iterator[Finding]:
    """Those that shift the runtime's numbers."""
    uncounted: int | None = None
    for step in block.steps:
        if step.kind == "nop":
            if step.wait is None and uncounted is None:
                uncounted = step.line
        elif uncounted is not None and step.announced:
            yield (
                "the runtime does not count a nop that waits for nothing: it announces later "
                "steps of the block too low",
                uncounted,
            )
            uncounted = None


def _chains(block: RawBlock) -> Iterator[Finding]:
    """Reductions that the runtime makes one of, with the size of the last."""
    text = "the runtime joins this re to the one before it and takes this cnt for both"
    for one, two in pairwise(block.steps):
        joined = one.kind == two.kind == "re" and two.wait is None and not one.announced
        same = one.target == two.target and _buffer(one) == _buffer(two)
        if joined and same and one.count != two.count:
            yield text, two.line


def _buffer(step: RawStep) -> Buffer | None:
    return None if step.source is None else step.source.buffer


def _overruns(algo: RawAlgo, steps: Iterable[Step]) -> Iterator[Finding]:
    """Steps that use shared memory by the name for which fewer chunks are declared."""
    for step in steps:
        for span in (*step.reads, *step.writes):
            if span.buffer is Buffer.SCRATCH or step.line is None:
                continue
            claim = algo.gpus[span.rank].chunks[span.buffer is Buffer.OUTPUT]
            if span.start + span.count > claim:
                name = f"{span.buffer.value}_chunks"
                yield f"goes beyond {name} of its gpu, to which the runtime holds it", step.line


def _clobbered(steps: Iterable[Step]) -> Iterator[Finding]:
    for step in steps:
        if step.line is not None and any(span.buffer is Buffer.INPUT for span in step.writes):
            yield "overwrites the caller's input, although the file is used out of place", step.line


# How many chunks the buffers of an MSCCL XML file have.
# ``nchunksperloop`` chunks make up the larger of the caller's two buffers, so that the collective
# and the number of ranks say how much memory there is; ``i_chunks`` and ``o_chunks`` are what the
# file claims to use, and what the runtime holds every step against.


PARTED = ("allgather", "reduce_scatter", "alltoall", "scatter", "gather")
"""Collectives whose larger buffer has a part for every rank."""

Pair = tuple[int, int]
"""Chunks of input and of output."""


def needs(contract: Contract) -> list[Pair]:
    """By rank, the chunks that the collective is given and must produce."""
    outputs = [0] * contract.ranks
    for goal in contract.goals:
        outputs[goal.rank] = max(outputs[goal.rank], goal.chunk + 1)
    return [(len(given), out) for given, out in zip(contract.starts, outputs, strict=True)]


def limits(contract: Contract) -> list[Pair]:
    """By rank, the chunks that are the caller's memory under the name of input and of output.

    Every rank is handed buffers of the same size, also one whose output is not looked at.
    """
    needed = needs(contract)
    inputs, outputs = (max(pair[side] for pair in needed) for side in (0, 1))
    if not contract.in_place:
        return [(inputs, outputs)] * len(needed)
    places = [(max(shift, 0), max(-shift, 0)) for shift in contract.shift]
    totals = [max(at_in + inputs, at_out + outputs) for at_in, at_out in places]
    return [(t - at_in, t - at_out) for t, (at_in, at_out) in zip(totals, places, strict=True)]


def reach(steps: Iterable[Step]) -> Mapping[tuple[int, Buffer], int]:
    """By rank and buffer, the end of the furthest span."""
    found: dict[tuple[int, Buffer], int] = defaultdict(int)
    for step in steps:
        for span in (*step.reads, *step.writes):
            end = span.start + span.count
            if end > found[span.rank, span.buffer]:
                found[span.rank, span.buffer] = end
    return found


def sizes_of(
    contract: Contract, declared: Sequence[tuple[int, int, int]], steps: Sequence[Step]
) -> tuple[Sizes, ...]:
    """The sizes by which steps are held in bounds.

    They are what the file declares, or the collective needs if that is more, except that

    - in place, one name may be used as far as the memory behind it goes;
    - out of place, a step beyond what is declared is out of bounds;
    - a step beyond the caller's memory is out of bounds, whatever is declared.
    """
    ends = reach(steps)
    found: list[Sizes] = []
    bounds = zip(needs(contract), limits(contract), declared, strict=True)
    for rank, (needed, limit, claim) in enumerate(bounds):
        pair = [
            _size(contract.in_place, needed[side], limit[side], claim[side], ends[rank, buffer])
            for side, buffer in enumerate((Buffer.INPUT, Buffer.OUTPUT))
        ]
        found.append(Sizes(pair[0], pair[1], claim[2]))
    return tuple(found)


def _size(in_place: bool, needed: int, limit: int, claim: int, end: int) -> int:
    size = max(claim, needed)
    if in_place and end > size:
        size = max(size, limit)
    elif not in_place and end > claim:
        size = claim
    return min(size, limit) if end > limit else size

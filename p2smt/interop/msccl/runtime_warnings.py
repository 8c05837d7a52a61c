"""What the runtime makes of an MSCCL XML file besides what its steps say.

What it refuses is in :mod:`~p2smt.interop.msccl.runtime_limits`.  Waits: see announcements.
``nop`` is folded into the step after it: it counts only by its dependency.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from p2smt.interop.msccl.announcements import announced_by, announcements_of, says_announcements
from p2smt.interop.msccl.findings import by_subject
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from p2smt.interop.msccl.elements import RawAlgo, RawBlock, RawGpu, RawStep
    from p2smt.interop.msccl.findings import Finding
    from p2smt.schedules.model import Step


_NOT_ANNOUNCED = "waits for a step with hasdep=0: the runtime waits for the next with hasdep=1"
_TOO_LOW = (
    "waits for a step that is announced too low, as the runtime does not count a nop before it: it "
    "waits for a later one with hasdep=1"
)


def warnings_of(algo: RawAlgo, in_place: bool, steps: Iterable[Step]) -> tuple[str, ...]:
    """What to know about a file that is used in place or not; one text per subject."""
    return by_subject(_findings(algo, in_place, steps))


def _findings(algo: RawAlgo, in_place: bool, steps: Iterable[Step]) -> Iterator[Finding]:
    yield from _uses(algo, in_place)
    stated = says_announcements(algo)
    for gpu in algo.gpus.values():
        if stated:
            yield from _dependencies(gpu)
        for block in gpu.blocks.values():
            yield from _nops(block)
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


def _nops(block: RawBlock) -> Iterator[Finding]:
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

"""Schedules as timelines for chrome://tracing and Perfetto, in the Trace Event Format.

Google, "Trace Event Format": a JSON object with ``traceEvents``.  A process is a rank, a thread a
thread block; complete events (X) are steps, flow events (s, f) messages and signals from the step
that sends to the step that takes them; metadata events (M) name things.  Times are microseconds.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from p2smt.schedules.model import Buffer, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from p2smt.schedules.cost.predict import ScheduleCost
    from p2smt.schedules.model import Schedule, Step
    from p2smt.schedules.verify.report import Violation

Json: TypeAlias = "dict[str, Any]"
Item: TypeAlias = "int | tuple[int, str]"
"""A step of an interleaving, by number, or a part of it: (step, phase)."""

# Names of colours that the format reserves.
_CULPRIT, _INVOLVED = "terrible", "bad"


@dataclass(frozen=True, slots=True)
class Slice:
    """A step, or a phase of it, from one time to another, in microseconds."""

    step: int
    start_us: float
    end_us: float
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """What is remarkable about a step: its colour, and what a click on it shows."""

    colour: str | None = None
    critical: bool | None = None
    violation: str | None = None
    wrong: str | None = None
    message: str | None = None


# The format's objects: keys in its own words and in the order of the file, without those of None.


@dataclass(frozen=True, slots=True)
class _StepArgs:
    """What a click on a step shows: the step, and its mark."""

    kind: str
    block: int
    step: int
    line: int | None
    chunks: int | None
    reads: list[str] | None
    writes: list[str] | None
    receive: str | None
    send: str | None
    posts: list[str] | None
    awaits: list[str] | None
    barrier: str | None
    critical: bool | None
    violation: str | None
    wrong: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class _CompleteEvent:
    """A slice from ``ts`` on, ``dur`` long, in microseconds."""

    name: str
    cat: str
    ph: Literal["X"]
    pid: int
    tid: int
    ts: float
    dur: float
    args: Json
    cname: str | None


@dataclass(frozen=True, slots=True)
class _FlowEvent:
    """An end of an arrow; ``bp`` "e": it ends at the slice that encloses it."""

    name: str
    cat: str
    ph: Literal["s", "f"]
    id: int
    pid: int
    tid: int
    ts: float
    bp: Literal["e"] | None


@dataclass(frozen=True, slots=True)
class _MetadataEvent:
    """What a process or a thread is called, or where it stands."""

    name: str
    ph: Literal["M"]
    pid: int
    args: Json
    tid: int | None = None


_Event: TypeAlias = "_CompleteEvent | _FlowEvent | _MetadataEvent"


@dataclass(frozen=True, slots=True)
class _Trace:
    """The file."""

    traceEvents: list[Json]  # noqa: N815
    displayTimeUnit: Literal["ns"]  # noqa: N815
    otherData: Json  # noqa: N815


def _written(part: _Trace | _Event | _StepArgs) -> Json:
    found = ((one.name, getattr(part, one.name)) for one in fields(part))
    return {name: value for name, value in found if value is not None}


def cost_trace(schedule: Schedule, cost: ScheduleCost) -> Json:
    """The predicted timeline; ``args.critical`` marks the steps of the critical path."""
    times = zip(cost.starts_s, cost.finishes_s, strict=True)
    slices = [Slice(n, 1e6 * start, 1e6 * end) for n, (start, end) in enumerate(times)]
    marks = dict.fromkeys(cost.critical, Mark(critical=True))
    notes = {"time": "predicted", "time_us": 1e6 * cost.time_s, "bytes": cost.payload_bytes}
    if cost.bottleneck is not None:
        notes["bottleneck"] = str(cost.bottleneck.link)
        notes["busy share of bottleneck"] = cost.busy_share
    return _trace(schedule, slices, marks, notes)


def order_trace(
    schedule: Schedule, order: Sequence[Item], violation: Violation | None = None
) -> Json:
    """An interleaving, one microsecond for each item; a violation's steps are marked.

    Its ``order`` is what to show, or any other where every interleaving is wrong.
    """
    slices = []
    for time, item in enumerate(order):
        number, phase = (item, "") if isinstance(item, int) else item
        slices.append(Slice(number, float(time), float(time + 1), phase))
    notes: Json = {"time": "one microsecond for each step, in the order shown"}
    if violation is None:
        return _trace(schedule, slices, {}, notes)
    notes |= {"violation": violation.kind.value, "message": violation.message}
    if violation.details:
        notes["details"] = list(violation.details)
    return _trace(schedule, slices, _marks(violation), notes)


def _marks(violation: Violation) -> dict[int, Mark]:
    """Colour and remark of each step involved, the culprit first."""
    wrong = None
    if violation.rank is not None and violation.chunk is not None:
        wrong = str(Span(violation.rank, Buffer.OUTPUT, violation.chunk, 1))
    involved = Mark(_INVOLVED, violation=violation.kind.value, wrong=wrong)
    marks = dict.fromkeys(violation.steps[1:], involved)
    for culprit in violation.steps[:1]:
        marks[culprit] = replace(involved, colour=_CULPRIT, message=violation.message)
    return marks


def _trace(
    schedule: Schedule, slices: Sequence[Slice], marks: Mapping[int, Mark], notes: Json
) -> Json:
    threads = _threads(schedule, slices)
    events: list[_Event] = list(_names(schedule, threads))
    for piece, thread in zip(slices, threads, strict=True):
        events.append(_complete(schedule, piece, thread, marks.get(piece.step, Mark())))
    events += _flows(schedule, slices, threads)
    other = {"schedule": schedule.name, "collective": schedule.contract.collective, **notes}
    return _written(_Trace([_written(event) for event in events], "ns", other))


def _complete(schedule: Schedule, piece: Slice, thread: int, mark: Mark) -> _CompleteEvent:
    step = schedule.steps[piece.step]
    return _CompleteEvent(
        name=f"{step.kind} {piece.phase}".rstrip(),
        cat="step",
        ph="X",
        pid=step.rank,
        tid=thread,
        ts=piece.start_us,
        dur=piece.end_us - piece.start_us,
        args=_written(_args(step, mark)),
        cname=mark.colour,
    )


def _args(step: Step, mark: Mark) -> _StepArgs:
    return _StepArgs(
        kind=step.kind,
        block=step.block,
        step=step.index,
        line=step.line,
        chunks=step.count or None,
        reads=[str(span) for span in step.reads] or None,
        writes=[str(span) for span in step.writes] or None,
        receive=None if step.receive is None else str(step.receive),
        send=None if step.send is None else str(step.send),
        posts=list(step.posts) or None,
        awaits=list(step.awaits) or None,
        barrier=step.barrier,
        critical=mark.critical,
        violation=mark.violation,
        wrong=mark.wrong,
        message=mark.message,
    )


def _threads(schedule: Schedule, slices: Sequence[Slice]) -> list[int]:
    """The thread of each slice: its block; another one for what runs beside the block.

    Complete events of a thread must not overlap.
    """
    free: dict[tuple[int, int], float] = {}
    spare = max((step.block for step in schedule.steps), default=0) + 1
    threads = [0] * len(slices)
    for k in sorted(range(len(slices)), key=lambda k: (slices[k].start_us, slices[k].end_us)):
        step = schedule.steps[slices[k].step]
        thread = step.block
        while slices[k].start_us < free.get((step.rank, thread), 0.0):
            thread += spare
        free[step.rank, thread] = slices[k].end_us
        threads[k] = thread
    return threads


def _names(schedule: Schedule, threads: Iterable[int]) -> Iterator[_MetadataEvent]:
    blocks = max((step.block for step in schedule.steps), default=0) + 1
    beside = sorted({thread for thread in threads if thread >= blocks})
    used = defaultdict(set)
    for step in schedule.steps:
        used[step.rank].add(step.block)
    for rank in range(schedule.ranks):
        yield _MetadataEvent("process_name", "M", rank, {"name": f"rank {rank}"})
        yield _MetadataEvent("process_sort_index", "M", rank, {"sort_index": rank})
        for block in sorted(used[rank]):
            yield _MetadataEvent("thread_name", "M", rank, {"name": f"block {block}"}, block)
        for thread in beside:
            if thread % blocks in used[rank]:
                name = f"block {thread % blocks}, beside it"
                yield _MetadataEvent("thread_name", "M", rank, {"name": name}, thread)


def _flows(
    schedule: Schedule, slices: Sequence[Slice], threads: Sequence[int]
) -> Iterator[_FlowEvent]:
    """Arrows: each from the beginning of the slice that sends, so that it is sure to be on it."""
    pairs = _pairs(schedule, slices)
    for number, (category, name, source, target) in enumerate(pairs):
        for k, taken in ((source, False), (target, True)):
            yield _FlowEvent(
                name=name,
                cat=category,
                ph="f" if taken else "s",
                id=number,
                pid=schedule.steps[slices[k].step].rank,
                tid=threads[k],
                ts=slices[k].start_us,
                bp="e" if taken else None,
            )


def _pairs(schedule: Schedule, slices: Sequence[Slice]) -> Iterator[tuple[str, str, int, int]]:
    """Category, name, sending slice and taking slice of each message and signal, first in first
    out: a step's last slice sends and its first takes."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for k, piece in enumerate(slices):
        first.setdefault(piece.step, k)
        last[piece.step] = k
    moments = [(slices[k].end_us, 0, k) for k in last.values()]
    moments += [(slices[k].start_us, 1, k) for k in first.values()]
    sent: dict[tuple[str, str], deque[int]] = defaultdict(deque)
    for _, takes, k in sorted(moments):
        step = schedule.steps[slices[k].step]
        for key in _taken(step) if takes else _sent(step):
            if not takes:
                sent[key].append(k)
            elif sent[key]:
                yield *key, sent[key].popleft(), k


def _taken(step: Step) -> Iterator[tuple[str, str]]:
    if step.receive is not None:
        yield "message", str(step.receive)
    for counter in step.awaits:
        yield "signal", counter


def _sent(step: Step) -> Iterator[tuple[str, str]]:
    if step.send is not None:
        yield "message", str(step.send)
    for counter in step.posts:
        yield "signal", counter

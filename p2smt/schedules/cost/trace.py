"""Schedules as timelines for chrome://tracing and Perfetto, in the Trace Event Format.

Google, "Trace Event Format": a JSON object with ``traceEvents``.  A process is a rank, a thread a
thread block; complete events (X) are steps, flow events (s, f) messages and signals from the step
that sends to the step that takes them; metadata events (M) name things.  Times are microseconds.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

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


def cost_trace(schedule: Schedule, cost: ScheduleCost) -> Json:
    """The predicted timeline; ``args.critical`` marks the steps of the critical path."""
    times = zip(cost.starts_s, cost.finishes_s, strict=True)
    slices = [Slice(n, 1e6 * start, 1e6 * end) for n, (start, end) in enumerate(times)]
    marks: dict[int, Json] = {n: {"args": {"critical": True}} for n in cost.critical}
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


def _marks(violation: Violation) -> dict[int, Json]:
    """Colour and remark of each step involved, the culprit first."""
    args: Json = {"violation": violation.kind.value}
    if violation.rank is not None and violation.chunk is not None:
        args["wrong"] = str(Span(violation.rank, Buffer.OUTPUT, violation.chunk, 1))
    marks: dict[int, Json] = {
        step: {"cname": _INVOLVED, "args": args} for step in violation.steps[1:]
    }
    for culprit in violation.steps[:1]:
        marks[culprit] = {"cname": _CULPRIT, "args": {**args, "message": violation.message}}
    return marks


def _trace(
    schedule: Schedule, slices: Sequence[Slice], marks: Mapping[int, Json], notes: Json
) -> Json:
    threads = _threads(schedule, slices)
    events = list(_names(schedule, threads))
    for piece, thread in zip(slices, threads, strict=True):
        events.append(_complete(schedule, piece, thread, marks.get(piece.step, {})))
    events += _flows(schedule, slices, threads)
    other = {"schedule": schedule.name, "collective": schedule.contract.collective, **notes}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": other}


def _complete(schedule: Schedule, piece: Slice, thread: int, mark: Json) -> Json:
    step = schedule.steps[piece.step]
    event: Json = {
        "name": f"{step.kind} {piece.phase}".rstrip(),
        "cat": "step",
        "ph": "X",
        "pid": step.rank,
        "tid": thread,
        "ts": piece.start_us,
        "dur": piece.end_us - piece.start_us,
        "args": _args(step) | mark.get("args", {}),
    }
    if "cname" in mark:
        event["cname"] = mark["cname"]
    return event


def _args(step: Step) -> Json:
    found: Json = {"kind": step.kind, "block": step.block, "step": step.index}
    if step.line is not None:
        found["line"] = step.line
    if step.count:
        found["chunks"] = step.count
    for name, spans in (("reads", step.reads), ("writes", step.writes)):
        if spans:
            found[name] = [str(span) for span in spans]
    for name, connection in (("receive", step.receive), ("send", step.send)):
        if connection is not None:
            found[name] = str(connection)
    for name, counters in (("posts", step.posts), ("awaits", step.awaits)):
        if counters:
            found[name] = list(counters)
    if step.barrier is not None:
        found["barrier"] = step.barrier
    return found


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


def _names(schedule: Schedule, threads: Iterable[int]) -> Iterator[Json]:
    blocks = max((step.block for step in schedule.steps), default=0) + 1
    beside = sorted({thread for thread in threads if thread >= blocks})
    used = defaultdict(set)
    for step in schedule.steps:
        used[step.rank].add(step.block)
    for rank in range(schedule.ranks):
        yield _metadata("process_name", rank, None, {"name": f"rank {rank}"})
        yield _metadata("process_sort_index", rank, None, {"sort_index": rank})
        for block in sorted(used[rank]):
            yield _metadata("thread_name", rank, block, {"name": f"block {block}"})
        for thread in beside:
            if thread % blocks in used[rank]:
                name = f"block {thread % blocks}, beside it"
                yield _metadata("thread_name", rank, thread, {"name": name})


def _metadata(name: str, rank: int, thread: int | None, args: Json) -> Json:
    event: Json = {"name": name, "ph": "M", "pid": rank, "args": args}
    return event if thread is None else {**event, "tid": thread}


def _flows(schedule: Schedule, slices: Sequence[Slice], threads: Sequence[int]) -> Iterator[Json]:
    """Arrows: each from the beginning of the slice that sends, so that it is sure to be on it."""
    pairs = _pairs(schedule, slices)
    for number, (category, name, source, target) in enumerate(pairs):
        for phase, k in (("s", source), ("f", target)):
            event: Json = {
                "name": name,
                "cat": category,
                "ph": phase,
                "id": number,
                "pid": schedule.steps[slices[k].step].rank,
                "tid": threads[k],
                "ts": slices[k].start_us,
            }
            yield event if phase == "s" else {**event, "bp": "e"}


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

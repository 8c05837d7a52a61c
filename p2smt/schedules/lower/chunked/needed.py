"""The messages of a schedule that some result needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from p2smt.errors import InputError
from p2smt.problems.edge_ways import EdgeRow
from p2smt.problems.sums import Arrival, SumSchedule, SumSend, SumStep

_Message = tuple[int, Arrival]
"""A chunk, and where a message of it arrives."""


def needed(schedule: SumSchedule, edges: Sequence[EdgeRow]) -> SumSchedule:
    """The schedule without messages that reach no result, directly or in another's sum.

    Raises:
        InputError: a message or a result is made of what does not come to its rank in time, or
            of something twice.
    """
    wanted: set[_Message] = set()
    known = {key for number, step in enumerate(schedule.steps) for key in _brought(number, step)}
    for result in schedule.results:
        what = f"chunk {result.chunk} at rank {result.rank}"
        wanted |= _parts(what, result.chunk, result.rank, result.parts, len(schedule.steps), edges)
    kept: list[SumStep] = []
    for number, step in reversed(list(enumerate(schedule.steps))):
        sends = tuple(s for s in step.sends if (s.chunk, arrival_of(number, s)) in wanted)
        for send in sends:
            what = f"step {number + 1}: the message of chunk {send.chunk} over edge {send.edge}"
            source = edges[send.edge][0]
            wanted |= _parts(what, send.chunk, source, send.parts, number, edges)
        kept.append(SumStep(step.rounds, sends))
    if missing := sorted(wanted - known):
        chunk, came = missing[0]
        given = f"chunk {chunk} over edge {came.edge} in step {came.step + 1}"
        raise InputError(given, "is used, and never sent", "replay the schedule")
    return SumSchedule(tuple(reversed(kept)), schedule.results)


def arrival_of(step: int, send: SumSend) -> Arrival:
    """How what a message brings is named at its target."""
    return Arrival(step, send.edge, send.slot)


def _brought(number: int, step: SumStep) -> Iterable[_Message]:
    return ((send.chunk, arrival_of(number, send)) for send in step.sends)


def _parts(
    what: str,
    chunk: int,
    rank: int,
    parts: Sequence[Arrival | None],
    before: int,
    edges: Sequence[EdgeRow],
) -> set[_Message]:
    """The messages that a sum at a rank is made of."""
    if not parts or len(set(parts)) < len(parts):
        raise InputError(what, "is a sum of nothing, or of a value twice", "replay the schedule")
    came = [part for part in parts if part is not None]
    for part in came:
        if part.step >= before or not 0 <= part.edge < len(edges) or edges[part.edge][1] != rank:
            rule = f"is made of what did not come to rank {rank} before (edge {part.edge})"
            raise InputError(what, rule, "replay the schedule")
    return {(chunk, part) for part in came}

"""Schedules of sums from what a solver chose; no solver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from p2smt.encodings.schedule.points import SumPart, SumPoint, results
from p2smt.problems.sums import (
    AllReduceProblem,
    Arrival,
    FinalSum,
    SumSchedule,
    SumSend,
    SumStep,
)


def kept_schedule(
    problem: AllReduceProblem,
    rounds: Sequence[int],
    sends: Collection[tuple[int, int, int]],
    drops: Collection[tuple[int, int, int]],
) -> SumSchedule:
    """The schedule in which messages (chunk, edge, step) carry the sums that ranks keep.

    In the steps of ``drops``, (chunk, rank, step), a rank first drops its sum, which it may still
    send in that step; then it adds what arrives.  Messages of nothing, or for nothing, are left
    out.
    """
    kept: dict[tuple[int, int], tuple[Arrival | None, ...]] = {
        (c, v): (None,) for c in range(problem.chunks) for v in range(problem.ranks)
    }
    steps = []
    for s, count in enumerate(rounds):
        now = sorted((c, e) for c, e, step in sends if step == s)
        sent = [SumSend(c, e, kept[c, problem.edges[e][0]]) for c, e in now]
        sent = [one for one in sent if one.parts]
        steps.append(SumStep(count, tuple(sent)))
        kept |= {(c, v): () for c, v, step in drops if step == s}
        for one in sent:
            kept[one.chunk, problem.edges[one.edge][1]] += (Arrival(s, one.edge),)
    ends = tuple(FinalSum(c, v, parts) for (c, v), parts in sorted(kept.items()))
    return _needed(problem, steps, ends)


def summed_schedule(
    problem: AllReduceProblem, rounds: Sequence[int], chosen: Iterable[SumPart]
) -> SumSchedule:
    """The schedule whose messages and results have these parts, without messages for nothing."""
    into: dict[SumPoint, list[Arrival | None]] = defaultdict(list)
    for (_, step, edge, slot), m in chosen:
        into[m].append(None if step < 0 else Arrival(step, edge, slot))
    steps = []
    for s, count in enumerate(rounds):
        now = sorted((c, e, slot, m) for m in into for c, at, e, slot in [m] if at == s)
        sends = tuple(SumSend(c, e, _ordered(into[m]), slot) for c, e, slot, m in now)
        steps.append(SumStep(count, sends))
    ends = tuple(FinalSum(m[0], m[2], _ordered(into[m])) for m in results(problem))
    return _needed(problem, steps, ends)


def _needed(
    problem: AllReduceProblem, steps: Sequence[SumStep], results: tuple[FinalSum, ...]
) -> SumSchedule:
    """The schedule without messages that are no part of any result, by way of others or not."""
    wanted = {(end.chunk, part) for end in results for part in end.parts}
    kept: list[SumStep] = []
    for s in reversed(range(problem.steps)):
        sends = tuple(
            one for one in steps[s].sends if (one.chunk, Arrival(s, one.edge, one.slot)) in wanted
        )
        wanted |= {(one.chunk, part) for one in sends for part in one.parts}
        kept.append(SumStep(steps[s].rounds, sends))
    return SumSchedule(tuple(reversed(kept)), results)


def _ordered(parts: Iterable[Arrival | None]) -> tuple[Arrival | None, ...]:
    """The own input first, then arrivals as they came."""
    return tuple(sorted(parts, key=lambda part: (part is not None, part or Arrival(0, 0))))

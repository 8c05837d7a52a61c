"""Schedules of sums made by hand and at random, all right by construction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from p2smt.fabric.fabric import Fabric
from p2smt.problems.schedule import Arrival, FinalSum, SumSchedule, SumSend, SumStep

Edge = tuple[int, int, tuple[int, ...]]
Part = Arrival | None
Values = dict[Part, frozenset[int]]
"""What a rank holds of a chunk: the value, and whose inputs are in it."""


def edges_of(fabric: Fabric) -> tuple[Edge, ...]:
    """As schedules number them."""
    return tuple((edge.source, edge.target, edge.loads) for edge in fabric.edges)


def ring_all_reduce(edges: Sequence[Edge], ranks: int) -> SumSchedule:
    """Chunk c is added up on its way to rank c - 1, and then copied round: class trees."""
    number = {(source, target): n for n, (source, target, _) in enumerate(edges)}
    sums: dict[tuple[int, int], list[Part]] = {
        (c, r): [None] for c in range(ranks) for r in range(ranks)
    }
    steps: list[SumStep] = []
    for step in range(2 * (ranks - 1)):
        sends = []
        for rank in range(ranks):
            edge, chunk = number[rank, (rank + 1) % ranks], (rank - step) % ranks
            sends.append(SumSend(chunk, edge, tuple(sums[chunk, rank])))
        for send in sends:
            came, target = Arrival(step, send.edge), edges[send.edge][1]
            kept = sums[send.chunk, target] if step < ranks - 1 else []
            sums[send.chunk, target] = [*kept, came]
        steps.append(SumStep(1, tuple(sorted(sends, key=lambda s: (s.chunk, s.edge)))))
    return SumSchedule(tuple(steps), _results(sums))


def two_steps_of_ring_5(edges: Sequence[Edge]) -> SumSchedule:
    """One chunk in two steps: a rank sends what came from each side on to the other, unadded."""
    number = {(source, target): n for n, (source, target, _) in enumerate(edges)}
    first = tuple(SumSend(0, e, (None,)) for e in range(len(edges)))
    second = []
    results = []
    for rank in range(5):
        left, right = (rank - 1) % 5, (rank + 1) % 5
        ways = ((left, right), (right, left))
        for source, target in ways:
            came = Arrival(0, number[source, rank])
            second.append(SumSend(0, number[rank, target], (came,)))
        both = [Arrival(step, number[side, rank]) for step in (0, 1) for side in (left, right)]
        results.append(FinalSum(0, rank, (None, *both)))
    second.sort(key=lambda send: send.edge)
    return SumSchedule((SumStep(1, first), SumStep(1, tuple(second))), tuple(results))


def _results(sums: dict[tuple[int, int], list[Part]]) -> tuple[FinalSum, ...]:
    return tuple(FinalSum(c, rank, tuple(parts)) for (c, rank), parts in sorted(sums.items()))


def random_all_reduce(
    random: Random, edges: Sequence[Edge], ranks: int, chunks: int, steps: int, slots: int = 1
) -> SumSchedule:
    """Any sums of values over any edges of a mesh; a last step brings what may still be missing.

    Every rank ends with any of its ways to make the whole sum.
    """
    held: dict[tuple[int, int], Values] = {
        (c, r): {None: frozenset((r,))} for c in range(chunks) for r in range(ranks)
    }
    found: list[SumStep] = []
    for step in range(steps + 1):
        sends = [
            SumSend(c, e, (None,) if step == steps else _any_sum(random, held[c, source]), slot)
            for c in range(chunks)
            for e, (source, _, _) in enumerate(edges)
            for slot in range(1 if step == steps else slots)
            if step == steps or random.random() < 0.4
        ]
        for send in sends:
            source, target, _ = edges[send.edge]
            inside = frozenset(r for part in send.parts for r in held[send.chunk, source][part])
            held[send.chunk, target][Arrival(step, send.edge, send.slot)] = inside
        found.append(SumStep(random.randint(1, 3), tuple(sends)))
    whole = frozenset(range(ranks))
    results = []
    for (c, r), values in sorted(held.items()):
        early = {p: v for p, v in values.items() if p is None or p.step < steps}
        results.append(FinalSum(c, r, _way(random, early, whole) or _way(random, values, whole)))
    return SumSchedule(tuple(found), tuple(results))


def _any_sum(random: Random, values: Values) -> tuple[Part, ...]:
    """Some values no two of which share an input."""
    chosen: list[Part] = []
    for part in random.sample(list(values), len(values)):
        apart = not any(values[part] & values[other] for other in chosen)
        if apart and (not chosen or random.random() < 0.6):
            chosen.append(part)
    return tuple(chosen)


def _way(random: Random, values: Values, missing: frozenset[int]) -> tuple[Part, ...]:
    """A sum of values that holds every input once; empty if there is none."""
    for part in random.sample(list(values), len(values)):
        if min(missing) in values[part] and values[part] <= missing:
            if values[part] == missing:
                return (part,)
            if rest := _way(random, values, missing - values[part]):
                return (part, *rest)
    return ()


def sums_in(schedule: SumSchedule) -> Iterable[SumSend]:
    """Messages that are sums of several values."""
    return (s for step in schedule.steps for s in step.sends if len(s.parts) > 1)

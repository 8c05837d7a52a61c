"""What happens to a chunk in an all-reduce, as points that symmetries move; no solver.

A point is (chunk, step, place, slot).  In a step from 0 to S - 1 the place is an edge: the point is
a message.  In step -1 it is a rank, and the point that rank's own input; in step S it is a rank,
and the point what the rank makes of the chunk at last.

A symmetry that reverses time takes step s to S - 1 - s, so own inputs to results.  A schedule is a
network of sums in which exactly one way leads from each input of a chunk to each of its results;
with all arrows turned round it is one again.  So it is enough to state what must hold for one chunk
of each orbit: the others have its network, moved or turned round.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from p2smt.problems.schedule import (
    AllReduceProblem,
    Arrival,
    DisseminationProblem,
    FinalSum,
    ScheduleSymmetry,
    SumSchedule,
    SumSend,
    SumStep,
    edge_distances,
)

SumPoint = tuple[int, int, int, int]
"""A point; see the file's head."""
SumPart = tuple[SumPoint, SumPoint]
"""(p, m): what p brings to the rank where m is made may be a part of m."""
AnyPoint = TypeVar("AnyPoint", bound=Hashable)


def slots(problem: AllReduceProblem) -> int:
    """The messages of a chunk over an edge in a step: K, or what the widest edge carries."""
    most = problem.rounds - problem.steps + 1
    widths = (min(problem.capacities[k] for k in loads) for _, _, loads in problem.edges if loads)
    return min(problem.messages, int(max(widths, default=problem.messages) * most))


def messages(problem: AllReduceProblem) -> Iterator[SumPoint]:
    """All messages that may be sent."""
    for c in range(problem.chunks):
        for s in range(problem.steps):
            for e in range(len(problem.edges)):
                yield from ((c, s, e, slot) for slot in range(slots(problem)))


def results(problem: AllReduceProblem) -> Iterator[SumPoint]:
    """What every rank makes of every chunk."""
    for c in range(problem.chunks):
        yield from ((c, problem.steps, v, 0) for v in range(problem.ranks))


def parts(problem: AllReduceProblem) -> Iterator[SumPart]:
    """All parts that a message or a result may have: own inputs, and what came before it."""
    into, width = edges_into(problem), slots(problem)
    for m in chain(messages(problem), results(problem)):
        c, s, place, _ = m
        v = place if s == problem.steps else problem.edges[place][0]
        yield (c, -1, v, 0), m
        for t in range(s):
            yield from (((c, t, e, slot), m) for e in into[v] for slot in range(width))


def orbits(
    points: Iterable[AnyPoint], images: Sequence[Callable[[AnyPoint], AnyPoint]]
) -> dict[AnyPoint, AnyPoint]:
    """Every point, and the first one of those that ``images``, all one to one, take it to."""
    first: dict[AnyPoint, AnyPoint] = {}
    for start in points:
        if start in first:
            continue
        first[start], frontier = start, [start]
        for point in frontier:
            for image in images:
                if (at := image(point)) not in first:
                    first[at] = start
                    frontier.append(at)
    return first


def first_chunks(problem: AllReduceProblem) -> tuple[int, ...]:
    """The first chunk of every orbit."""
    images = [one.chunks.__getitem__ for one in problem.symmetries]
    return tuple(sorted(set(orbits(range(problem.chunks), images).values())))


def part_count(problem: AllReduceProblem) -> int:
    """How many :func:`parts` there are, for each chunk."""
    into, width, steps = edges_into(problem), slots(problem), problem.steps
    came = [width * len(into[v]) for v in range(problem.ranks)]  # in a step
    earlier = steps * (steps - 1) // 2
    sent = sum(width * (steps + earlier * came[source]) for source, _, _ in problem.edges)
    return sent + sum(1 + steps * count for count in came)


def point_image(
    problem: AllReduceProblem, symmetry: ScheduleSymmetry
) -> Callable[[SumPoint], SumPoint]:
    """Where a symmetry takes points."""
    last = problem.steps - 1

    def image(point: SumPoint) -> SumPoint:
        chunk, step, place, slot = point
        places = symmetry.edges if 0 <= step <= last else symmetry.ranks
        at = last - step if symmetry.reverses else step
        return symmetry.chunks[chunk], at, places[place], slot

    return image


def part_image(
    problem: AllReduceProblem, symmetry: ScheduleSymmetry
) -> Callable[[SumPart], SumPart]:
    """Where a symmetry takes parts: in reversed time a message is a part of its parts."""
    moved = point_image(problem, symmetry)
    if symmetry.reverses:
        return lambda pair: (moved(pair[1]), moved(pair[0]))
    return lambda pair: (moved(pair[0]), moved(pair[1]))


def distances(problem: AllReduceProblem) -> tuple[tuple[int, ...], ...]:
    """[u][v]: the steps that data of rank u needs to v, at least; S + 1: more than there are."""
    far = problem.steps + 1
    rows = (edge_distances(problem.ranks, problem.edges, [u]) for u in range(problem.ranks))
    return tuple(tuple(far if d is None else min(d, far) for d in row) for row in rows)


def edges_into(problem: AllReduceProblem | DisseminationProblem) -> Mapping[int, list[int]]:
    """The edges that lead to each rank."""
    into = defaultdict(list)
    for e, (_, target, _) in enumerate(problem.edges):
        into[target].append(e)
    return into


def edges_out(problem: AllReduceProblem) -> Mapping[int, list[int]]:
    """The edges that begin at each rank."""
    out = defaultdict(list)
    for e, (source, _, _) in enumerate(problem.edges):
        out[source].append(e)
    return out


def full_capacities(problem: AllReduceProblem) -> frozenset[int]:
    """Capacities that every all-reduce fills in all rounds, because it needs so many messages.

    A chunk needs 2 (n - 1) over n ranks.  Put its messages in an order in which each comes after
    its parts: before some rank has all inputs every other one has sent, n - 1 messages, and the
    last of them completes only one rank; every other one must get one more.  Where each edge loads
    just one capacity of a set (all, those by which ranks send, those by which they receive), and
    together these carry no more than that in all rounds, all of the set are full in every step.
    """
    loading: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for source, target, capacities in problem.edges:
        for k in capacities:
            loading[k].append((source, target))
    sets = [set(loading)]
    sets += [{k for k, ends in loading.items() if len({e[at] for e in ends}) == 1} for at in (0, 1)]
    needed, found = 2 * (problem.ranks - 1) * problem.chunks, set[int]()
    for chosen in sets:
        once = all(len(chosen & set(named)) == 1 for _, _, named in problem.edges)
        if once and sum(problem.capacities[k] for k in chosen) * problem.rounds <= needed:
            found |= chosen
    return frozenset(found)


def loads(
    problem: AllReduceProblem,
    sent: Mapping[tuple[int, int], Sequence[AnyPoint]],
    charged: Iterable[Sequence[int]] | None = None,
) -> Iterator[tuple[int, int, Counter[AnyPoint]]]:
    """(capacity, step, how often each message loads it), equal ones once.

    ``sent``: what may go over an edge in a step, by (edge, step), or pass a port, of which
    ``charged`` says the capacities that it loads.  Two capacities are equal in a step if they have
    the same bandwidth and the same load.
    """
    loading = defaultdict(list)
    rows = [edge[2] for edge in problem.edges] if charged is None else charged
    for place, capacities in enumerate(rows):
        for k in capacities:
            loading[k].append(place)
    stated = set()
    for k, places in loading.items():
        for step in range(problem.steps):
            counts = Counter(chain.from_iterable(sent.get((at, step), ()) for at in places))
            same = (problem.capacities[k], step, frozenset(counts.items()))
            if counts and same not in stated:
                stated.add(same)
                yield k, step, counts


# Schedules of sums from what a solver chose; no solver.


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

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
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from p2smt.problems.edge_ways import edge_distances
from p2smt.problems.schedule import ScheduleSymmetry
from p2smt.problems.sums import AllReduceProblem

SumPoint = tuple[int, int, int, int]
"""A point; see the file's head."""
SumPart = tuple[SumPoint, SumPoint]
"""(p, m): what p brings to the rank where m is made may be a part of m."""
P = TypeVar("P", bound=Hashable)


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


def orbits(points: Iterable[P], images: Sequence[Callable[[P], P]]) -> dict[P, P]:
    """Every point, and the first one of those that ``images``, all one to one, take it to."""
    first: dict[P, P] = {}
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


def edges_into(problem: AllReduceProblem) -> Mapping[int, list[int]]:
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
    problem: AllReduceProblem, sent: Mapping[tuple[int, int], Sequence[P]]
) -> Iterator[tuple[int, int, Counter[P]]]:
    """(capacity, step, how often each message loads it), equal ones once.

    ``sent``: what may go over an edge in a step, by (edge, step).  Two capacities are equal in a
    step if they have the same bandwidth and the same load.
    """
    loading = defaultdict(list)
    for e, (_, _, capacities) in enumerate(problem.edges):
        for k in capacities:
            loading[k].append(e)
    stated = set()
    for k, edges in loading.items():
        for step in range(problem.steps):
            counts = Counter(one for e in edges for one in sent.get((e, step), ()))
            same = (problem.capacities[k], step, frozenset(counts.items()))
            if counts and same not in stated:
                stated.add(same)
                yield k, step, counts

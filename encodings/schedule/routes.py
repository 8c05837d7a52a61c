"""Routes that load a fabric evenly, for chunks with one goal each: a guess where to look first.

Each chunk takes a shortest way; those that symmetries take to each other take images of one way.
Ways are chosen one after the other, and again in some sweeps, so that edges of which much is asked
are avoided.  Schedules with other routes are left out, so that there is none says nothing.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np

from p2smt.encodings.schedule.orbits import Firsts
from p2smt.problems.schedule import DisseminationProblem

SWEEPS = 4


def even_routes(problem: DisseminationProblem, send_of: Firsts) -> frozenset[int] | None:
    """The first pairs (:data:`.Firsts`) of the messages to allow; None: a chunk has several goals.

    Every goal must be reachable.
    """
    if any(len(chunk.goals) != 1 for chunk in problem.chunks):
        return None
    kinds = _edge_kinds(problem)
    mates = Counter(kinds)
    chosen: dict[int, list[int]] = {}
    loads: Counter[int] = Counter()
    drawn = random.Random(0)
    leaders = _leaders(problem)
    for _ in range(SWEEPS):
        for c in sorted(leaders):
            for e in chosen.get(c, []):
                loads[kinds[e]] -= leaders[c]
            chosen[c] = _way(problem, c, {k: loads[k] / mates[k] for k in mates}, kinds, drawn)
            for e in chosen[c]:
                loads[kinds[e]] += leaders[c]
    return frozenset(int(send_of[c, e]) for c, way in chosen.items() for e in way)


def _leaders(problem: DisseminationProblem) -> Counter[int]:
    """The first chunk of every orbit, and how many chunks are in it."""
    return Counter(_classes([one.chunks for one in problem.symmetries], len(problem.chunks)))


def _edge_kinds(problem: DisseminationProblem) -> list[int]:
    """Of every edge the first one that symmetries take it to."""
    return _classes([one.edges for one in problem.symmetries], len(problem.edges))


def _classes(images: list[tuple[int, ...]], size: int) -> list[int]:
    first = np.arange(size)
    while True:
        before = first
        for image in images:
            moved = np.array(image)
            least = np.minimum(first, first[moved])
            least[moved] = np.minimum(least[moved], least)
            first = least
        first = first[first]
        if np.array_equal(first, before):
            return [int(n) for n in first]


def _way(
    problem: DisseminationProblem,
    chunk: int,
    loads: dict[int, float],
    kinds: list[int],
    drawn: random.Random,
) -> list[int]:
    """A shortest way whose edges carry least, by the squares of what they carry."""
    (goal,), root = problem.chunks[chunk].goals, problem.chunks[chunk].root
    left = problem.distances([goal], back=True)
    cost: dict[int, tuple[float, list[int]]] = {goal: (0.0, [])}
    out: dict[int, list[int]] = {}
    for e, (source, target, _) in enumerate(problem.edges):
        here, there = left[source], left[target]
        if here is not None and there is not None and here == there + 1:
            out.setdefault(source, []).append(e)
    order = sorted((r for r in out if left[r] is not None), key=lambda r: left[r] or 0)
    for rank in order:
        options = []
        for e in out[rank]:
            price, way = cost[problem.edges[e][1]]
            again = sum(kinds[e] == kinds[other] for other in way)
            options.append((price + loads[kinds[e]] + again, drawn.random(), [e, *way]))
        best = min(options)
        cost[rank] = best[0], best[2]
    return cost[root][1]

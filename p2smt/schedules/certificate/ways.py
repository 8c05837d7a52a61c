"""The cheapest ways through a fabric, step by step or in any number of steps, in whole numbers."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

Cost = Callable[[int, int | None], int]
"""What an edge costs in a step, 0 or more."""
_Edges = Sequence[tuple[int, int, tuple[int, ...]]]


def cheapest(
    ranks: int, edges: _Edges, source: int, cost: Cost, steps: int | None
) -> list[int | None]:
    """The least cost from ``source`` to each rank, in ``steps`` steps of one edge or none each.

    ``steps`` None: along any number of edges, whose costs are those of step None.  None: there is
    no way.
    """
    if steps is None:
        return _without_steps(ranks, edges, source, cost)
    found: list[int | None] = [None] * ranks
    found[source] = 0
    for step in range(steps):
        before = list(found)
        for e, (a, b, _) in enumerate(edges):
            start = before[a]
            if start is None:
                continue
            there, known = start + cost(e, step), found[b]
            if known is None or there < known:
                found[b] = there
    return found


def _without_steps(ranks: int, edges: _Edges, source: int, cost: Cost) -> list[int | None]:
    after: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
    for e, (a, b, _) in enumerate(edges):
        after[a].append((b, cost(e, None)))
    found: list[int | None] = [None] * ranks
    found[source], waiting = 0, [(0, source)]
    while waiting:
        spent, rank = heapq.heappop(waiting)
        if spent != found[rank]:  # a cheaper way was followed
            continue
        for other, price in after[rank]:
            known = found[other]
            if known is None or spent + price < known:
                found[other] = spent + price
                heapq.heappush(waiting, (spent + price, other))
    return found

"""The least cap that some plan meets."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

from p2smt.arrays.ends import Ends
from p2smt.arrays.memory import MemoryLimit
from p2smt.cost.redistribution.prices import StepPrices
from p2smt.result import StopWatch
from p2smt.search.redistribution.exact.graph import StateGraph
from p2smt.search.redistribution.exact.table import StateTable, can_tabulate


def least_limit(
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    watch: StopWatch | None = None,
) -> int | None:
    """Bytes of the least cap, of states or of steps as ``memory`` says, that some plan meets.

    Its ``limit_bytes`` does not count.  None: there are too many types to tell, no plan at all, or
    the time of ``watch`` is up.
    """
    found = []
    for one, price in zip(ends, prices, strict=True):
        if watch is not None and watch.expired():
            return None
        if can_tabulate(one):
            found.append(_least(one, price, memory, watch))
    if watch is not None and watch.expired():
        return None  # of some ends nothing may be known
    return min((limit for limit in found if limit is not None), default=None)


def _least(
    ends: Ends, prices: StepPrices, memory: MemoryLimit, watch: StopWatch | None
) -> int | None:
    """Dijkstra, a path being as long as its dearest step; None: no path, or no time."""
    table = StateTable.of(ends)
    graph = StateGraph(ends, table, prices, replace(memory, limit_bytes=2**62), counted=False)
    source, target = table.index(ends.source), table.index(ends.target)
    start = int(table.size[source])
    best, heap, closed = {source: start}, [(start, int(source != target), source)], set()
    while heap:
        needed, _, state = heapq.heappop(heap)
        if state == target:
            return needed
        if state in closed:
            continue
        if watch is not None and watch.expired():
            return None
        closed.add(state)
        edges = graph.untimed_from(state, first=state == source)
        for there, size in zip(edges.targets.tolist(), edges.bytes.tolist(), strict=True):
            then = max(needed, size)
            if then < best.get(there, 2**62):
                best[there] = then
                heapq.heappush(heap, (then, int(there != target), there))
    return None

"""A cheapest tree from a root to all ranks, where every way over switches pays for its arcs.

Chu and Liu (1965), Edmonds (1967): every part takes its cheapest way in, and parts that go round in
a circle become one, whose ways in cost what they cost more.  All circles of a round become parts at
once, so there are few rounds.  In a round one search finds, for every vertex, the nearest ranks of
two different parts: one of them is of another part than the rank that asks.

A cheapest tree of few messages from its root is hard to find; a cheap one is made of two, each
mended as long as a rank, with all that hangs on it, has a cheaper place that is not too deep.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from p2smt.parallelism.placement import FloatArray
from p2smt.synthesis.certificate.forest import TreeNetwork


class _Label(NamedTuple):
    """Data of a part's rank comes to a vertex for a price; ``before``: the label it is from."""

    price: float
    order: int
    vertex: int
    part: int
    source: int
    arc: int
    before: _Label | None


@dataclass(frozen=True, slots=True)
class _WayIn:
    """A way into a part, for more than the part's cheapest ways before cost."""

    price: float
    source: int
    target: int
    arcs: tuple[int, ...]


@dataclass(slots=True)
class TreeSearch:
    """Cheapest trees of a network, for one list of prices of its arcs after the other."""

    net: TreeNetwork
    after: list[list[tuple[int, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.after = [[] for _ in self.net.vertices]
        for number, (tail, head, _) in enumerate(self.net.arcs):
            self.after[tail].append((number, head))

    def tree(self, root: int, prices: Sequence[float]) -> tuple[tuple[int, ...], ...]:
        """The arcs that lead to each rank but the root from the one before it."""
        parts = _Parts(self.net.ranks)
        while True:
            ways = self._ways_in(root, prices, parts)
            circles = list(_circles(ways, parts))
            if not circles:
                return parts.ways(ways)
            for circle in circles:
                parts.merge(circle, ways)

    def _ways_in(self, root: int, prices: Sequence[float], parts: _Parts) -> dict[int, _WayIn]:
        """By part its cheapest way in; that of the root has none."""
        found: dict[int, tuple[float, _Label]] = {}
        own = parts.part[root]
        for rank, label in enumerate(self._nearest(prices, parts.part)):
            part = parts.part[rank]
            if part == own or label is None:
                continue
            price = label.price - parts.paid[rank]
            if part not in found or price < found[part][0]:
                found[part] = (price, label)
        return {
            part: _WayIn(price, label.source, label.vertex, _arcs(label))
            for part, (price, label) in found.items()
        }

    def _nearest(self, prices: Sequence[float], part: Sequence[int]) -> list[_Label | None]:
        """For every rank the nearest one of another part."""
        ranks = self.net.ranks
        found: list[_Label | None] = [None] * ranks
        known: list[list[int]] = [[] for _ in self.net.vertices]
        heap, order = list[_Label](), 0
        for rank in range(ranks):
            for arc, head in self.after[rank]:
                heap.append(_Label(prices[arc], order, head, part[rank], rank, arc, None))
                order += 1
        heapify(heap)
        while heap:
            label = heappop(heap)
            vertex = label.vertex
            if vertex < ranks:
                if found[vertex] is None and part[vertex] != label.part:
                    found[vertex] = label
                continue
            if len(known[vertex]) == 2 or label.part in known[vertex]:
                continue
            known[vertex].append(label.part)
            for arc, head in self.after[vertex]:
                price = label.price + prices[arc]
                heappush(heap, _Label(price, order, head, label.part, label.source, arc, label))
                order += 1
        return found


def _arcs(label: _Label | None) -> tuple[int, ...]:
    found = []
    while label is not None:
        found.append(label.arc)
        label = label.before
    return tuple(reversed(found))


def _circles(ways: dict[int, _WayIn], parts: _Parts) -> Iterator[list[int]]:
    """The parts that lie in a circle, each circle once, if everybody takes the way in."""
    state: dict[int, int] = {}
    for start in ways:
        trail, at = list[int](), start
        while at in ways and at not in state:
            state[at] = start
            trail.append(at)
            at = parts.part[ways[at].source]
        if at in ways and state[at] == start:
            yield trail[trail.index(at) :]


# Trees of few messages from their root.


@dataclass(slots=True)
class LowTreeSearch(TreeSearch):
    """Cheap trees of at most ``height`` messages from the root, not always the cheapest."""

    height: int = 1
    _priced: tuple[Sequence[float], FloatArray] | None = None

    def needs(self, root: int) -> int:
        """The fewest messages after which all ranks can have the root's data."""
        deep, line = {root: 0}, deque([root])
        while line:
            vertex = line.popleft()
            for _, head in self.after[vertex]:
                if head not in deep:
                    deep[head] = deep[vertex] + (head < self.net.ranks)
                    (line.append if head < self.net.ranks else line.appendleft)(head)
        return max(deep.values())

    def tree(self, root: int, prices: Sequence[float]) -> tuple[tuple[int, ...], ...]:
        """The arcs that lead to each rank but the root from the one before it.

        No rank is more than ``height`` messages away.
        """
        costs = self._costs(prices)
        low = _LowTree.of_layers(costs, root, self.height)
        low.mend()
        near = _LowTree.of_nearest(costs, root, self.height)
        if near is not None:
            near.mend()
            low = min(low, near, key=_LowTree.price)
        ways = {source: self._ways_out(source, prices) for source in sorted({*low.before} - {-1})}
        return tuple(ways[before][rank][1] for rank, before in enumerate(low.before) if before >= 0)

    def _costs(self, prices: Sequence[float]) -> FloatArray:
        """The price of the cheapest way from rank to rank, kept for the next root."""
        if self._priced is None or self._priced[0] is not prices:
            costs = np.full((self.net.ranks, self.net.ranks), np.inf)
            for source in range(self.net.ranks):
                for target, (price, _) in self._ways_out(source, prices).items():
                    costs[source, target] = price
            self._priced = prices, costs
        return self._priced[1]

    def _ways_out(
        self, source: int, prices: Sequence[float]
    ) -> dict[int, tuple[float, tuple[int, ...]]]:
        """By rank the price and the arcs of the cheapest way to it over switches alone."""
        found: dict[int, tuple[float, tuple[int, ...]]] = {}
        heap: list[tuple[float, tuple[int, ...], int]] = [
            (prices[arc], (arc,), head) for arc, head in self.after[source]
        ]
        heapify(heap)
        while heap:
            price, arcs, vertex = heappop(heap)
            if vertex in found or vertex == source:
                continue
            found[vertex] = price, arcs
            if vertex >= self.net.ranks:
                for arc, head in self.after[vertex]:
                    heappush(heap, (price + prices[arc], (*arcs, arc), head))
        return {rank: way for rank, way in found.items() if rank < self.net.ranks}


@dataclass(slots=True)
class _LowTree:
    """A tree by the rank before each (-1: the root), and how many messages each is deep."""

    costs: FloatArray
    height: int
    before: list[int]
    depth: list[int]

    @classmethod
    def of_layers(cls, costs: FloatArray, root: int, height: int) -> _LowTree:
        """Every rank as near to the root as it can be, by its cheapest way there."""
        ranks = len(costs)
        made = cls(costs, height, [-1] * ranks, [0 if r == root else -1 for r in range(ranks)])
        layer, deep = [root], 0
        while layer:
            deep += 1
            near = costs[layer].min(axis=0)
            after = [r for r in range(ranks) if made.depth[r] < 0 and near[r] < np.inf]
            for rank in after:
                made.before[rank] = layer[int(costs[layer, rank].argmin())]
            for rank in after:
                made.depth[rank] = deep
            layer = after
        return made

    @classmethod
    def of_nearest(cls, costs: FloatArray, root: int, height: int) -> _LowTree | None:
        """The cheapest way to any rank first (Prim, 1957), none of them too deep; None: a rank
        is left that only deep ones reach.
        """
        ranks = len(costs)
        made = cls(costs, height, [-1] * ranks, [-1] * ranks)
        made.depth[root] = 0
        price, by = costs[root].copy(), np.full(ranks, root)
        price[root] = np.inf
        left = np.ones(ranks, dtype=bool)
        left[root] = False
        while left.any():
            rank = int(np.where(left, price, np.inf).argmin())
            if not left[rank] or np.isinf(price[rank]):
                return None
            left[rank] = False
            made.before[rank], made.depth[rank] = int(by[rank]), made.depth[by[rank]] + 1
            if made.depth[rank] < height:
                closer = costs[rank] < price
                price, by = np.where(closer, costs[rank], price), np.where(closer, rank, by)
        return made

    def price(self) -> float:
        """Of all its ways."""
        return sum(float(self.costs[b, r]) for r, b in enumerate(self.before) if b >= 0)

    def mend(self) -> None:
        """Move ranks, each with all that hangs on it, to cheaper places that are not too deep."""
        moved = True
        while moved:
            moved = False
            for rank, before in enumerate(self.before):
                if before < 0:
                    continue
                hanging = self._hanging(rank)
                room = self.height - 1 - max(self.depth[one] for one in hanging) + self.depth[rank]
                costs = np.where(np.array(self.depth) <= room, self.costs[:, rank], np.inf)
                costs[hanging] = np.inf
                best = int(costs.argmin())
                if costs[best] < self.costs[before, rank]:
                    deeper = self.depth[best] + 1 - self.depth[rank]
                    self.before[rank] = best
                    for one in hanging:
                        self.depth[one] += deeper
                    moved = True

    def _hanging(self, rank: int) -> list[int]:
        """A rank and all that get their data from it."""
        after: dict[int, list[int]] = {}
        for one, before in enumerate(self.before):
            after.setdefault(before, []).append(one)
        found = [rank]
        for one in found:
            found += after.get(one, [])
        return found


class _Parts:
    """The part that each rank is in, what it has paid, and how parts were made of parts."""

    def __init__(self, ranks: int) -> None:
        self.part = list(range(ranks))
        self.paid = [0.0] * ranks
        self._members: dict[int, list[int]] = {rank: [rank] for rank in range(ranks)}
        self._above: dict[int, int] = {}
        self._inside: dict[int, dict[int, _WayIn]] = {}

    def merge(self, circle: Sequence[int], ways: dict[int, _WayIn]) -> None:
        """Make one part of several, each of which has taken its way in."""
        new = len(self.part) + len(self._inside)
        self._inside[new] = {part: ways[part] for part in circle}
        self._members[new] = []
        for part in circle:
            self._above[part] = new
            for rank in self._members.pop(part):
                self.part[rank] = new
                self.paid[rank] += ways[part].price
                self._members[new].append(rank)

    def ways(self, outer: dict[int, _WayIn]) -> tuple[tuple[int, ...], ...]:
        """The ways of a tree from those of the last parts: circles open where one is entered."""
        found, left = list[tuple[int, ...]](), list(outer.items())
        for part, way in left:
            if part not in self._inside:
                found.append(way.arcs)
                continue
            entered = way.target
            while self._above[entered] != part:
                entered = self._above[entered]
            left += [(p, way if p == entered else own) for p, own in self._inside[part].items()]
        return tuple(found)

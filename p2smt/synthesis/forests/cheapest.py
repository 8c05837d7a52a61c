"""A cheapest tree from a root to all ranks, where every way over switches pays for its arcs.

Chu and Liu (1965), Edmonds (1967): every part takes its cheapest way in, and parts that go round in
a circle become one, whose ways in cost what they cost more.  All circles of a round become parts at
once, so there are few rounds.  In a round one search finds, for every vertex, the nearest ranks of
two different parts: one of them is of another part than the rank that asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

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

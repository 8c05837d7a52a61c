"""Sets of ranks into which, or out of which, more must go than some rounds let pass.

A network has a node for every rank and two for every capacity, so that edges share these; where an
edge loads several, one after the other.  That lets more pass than the fabric does, so not every
set is found, and what is found is reckoned again with its edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm

from p2smt.fabric.fabric import Fabric
from p2smt.problems.flow import FlowCrossing, Pairs
from p2smt.synthesis.certificate.certificate import BoundedCollective

_OWN = BoundedCollective
_COPIES = (_OWN.ALL_GATHER, _OWN.BROADCAST)
_SUMS = {_OWN.REDUCE_SCATTER: _OWN.ALL_GATHER, _OWN.REDUCE: _OWN.BROADCAST}


def narrow_cut(
    fabric: Fabric, collective: BoundedCollective, root: int, rank: int, rounds: Fraction
) -> Ranks | None:
    """Ranks that cannot be served in so many rounds a chunk, ``rank`` among them; None: none found.

    Of collectives that copy everything to all, or add everything from all; the ranks are those to
    enter, as in :func:`~p2smt.synthesis.min_cuts.cut_crossing`.
    """
    if collective in _COPIES:
        return _entered(fabric, _held(fabric, collective, root), rank, rounds)
    if collective in _SUMS:
        held = _held(fabric, _SUMS[collective], root)
        inside = _entered(fabric.reversed(), held, rank, rounds)
        return None if inside is None else _others(fabric, inside)
    return None


def _others(fabric: Fabric, ranks: Ranks) -> Ranks:
    return tuple(r for r in range(fabric.ranks) if r not in set(ranks))


def _held(fabric: Fabric, collective: BoundedCollective, root: int) -> Mapping[int, int]:
    """Kinds of chunks by the rank that holds them at first."""
    if collective is _OWN.BROADCAST:
        return {root: 1}
    return dict.fromkeys(range(fabric.ranks), 1)


def _entered(
    fabric: Fabric, held: Mapping[int, int], target: int, rounds: Fraction
) -> Ranks | None:
    """The ranks on the target's side of a cut that lets too little pass; None: there is none."""
    rates = [one.bandwidth * rounds for one in fabric.capacities]
    unit = lcm(*(rate.denominator for rate in rates))
    ranks, source = fabric.ranks, fabric.ranks + 2 * len(rates)
    network = Network(source + 1)
    for k, rate in enumerate(rates):
        network.join(ranks + 2 * k, ranks + 2 * k + 1, int(rate * unit))
    plenty = sum(held.values()) * unit
    for start, end in sorted(_arcs(fabric)):
        network.join(start, end, plenty)
    for rank, count in held.items():
        network.join(source, rank, count * unit)
    if network.fill(source, target) >= plenty:
        return None
    reached = network.reached(source)
    return tuple(rank for rank in range(ranks) if rank not in reached)


def _arcs(fabric: Fabric) -> set[tuple[int, int]]:
    """From ranks to the capacities of their edges, from one to the next, and to ranks."""
    found = set()
    sources: list[set[int]] = [set() for _ in fabric.capacities]
    for edge in fabric.edges:
        for k in edge.loads:
            sources[k].add(edge.source)
    for edge in fabric.edges:
        at = edge.source
        for k in sorted(edge.loads, key=lambda k: len(sources[k])):
            found.add((at, fabric.ranks + 2 * k))
            at = fabric.ranks + 2 * k + 1
        found.add((at, edge.target))
    return found


# Sets and partitions of the ranks that data must cross.


Ranks = tuple[int, ...]
RankParts = tuple[Ranks, ...]


@dataclass(frozen=True, slots=True)
class PairEnds:
    """By rank, (group, other end) of the pairs that end there, and of those that begin there."""

    coming: list[list[tuple[int, int]]]
    going: list[list[tuple[int, int]]]


def single_cuts(fabric: Fabric) -> list[Ranks]:
    """Every rank alone, and all but it: what goes into them, and comes out of it."""
    every = range(fabric.ranks)
    alone = [(rank,) for rank in every]
    others = [tuple(r for r in every if r != rank) for rank in every]
    return list(dict.fromkeys(alone + others))


def partitions(fabric: Fabric) -> list[RankParts]:
    """All ranks apart, and the ranks that stay connected without the slowest edges."""
    return list(dict.fromkeys([tuple((r,) for r in range(fabric.ranks)), *_connected(fabric)]))


def _connected(fabric: Fabric) -> Iterator[RankParts]:
    """For every bandwidth, the parts joined by edges whose capacities are all above it."""
    rates = [min(fabric.capacities[k].bandwidth for k in edge.loads) for edge in fabric.edges]
    for least in sorted(set(rates)):
        kept = [e for e, rate in zip(fabric.edges, rates, strict=True) if rate > least]
        parts = _components(fabric.ranks, [(e.source, e.target) for e in kept])
        if 1 < len(parts) < fabric.ranks:
            yield parts


def _components(ranks: int, pairs: Sequence[tuple[int, int]]) -> RankParts:
    """The parts that pairs join, whichever way these lead."""
    beside: list[set[int]] = [set() for _ in range(ranks)]
    for a, b in pairs:
        beside[a].add(b)
        beside[b].add(a)
    found, seen = [], set[int]()
    for start in range(ranks):
        if start not in seen:
            part, frontier = {start}, [start]
            for rank in frontier:
                frontier += sorted(beside[rank] - part)
                part |= beside[rank]
            seen |= part
            found.append(tuple(sorted(part)))
    return tuple(found)


def part_cuts(fabric: Fabric) -> list[Ranks]:
    """The parts of partitions, and all ranks outside each."""
    every = range(fabric.ranks)
    inside = [part for parts in _connected(fabric) for part in parts]
    outside = [tuple(r for r in every if r not in set(part)) for part in inside]
    return list(dict.fromkeys(inside + outside))


def pair_ends(groups: Sequence[Pairs], ranks: int) -> PairEnds:
    """The pairs of groups by the rank where they end, and by that where they begin."""
    ends = PairEnds([[] for _ in range(ranks)], [[] for _ in range(ranks)])
    for g, pairs in enumerate(groups):
        for source, target in pairs:
            ends.coming[target].append((g, source))
            ends.going[source].append((g, target))
    return ends


def edge_ends(fabric: Fabric) -> PairEnds:
    """The edges by the rank where they end, and by that where they begin: (edge, other end)."""
    return pair_ends([((edge.source, edge.target),) for edge in fabric.edges], fabric.ranks)


def cut_crossing(edges: PairEnds, pairs: PairEnds, ranks: Ranks) -> FlowCrossing:
    """What must come into a set of ranks: every chunk with a goal inside and its data outside."""
    return FlowCrossing(tuple(sorted(_entering(edges, ranks))), len(_entering(pairs, ranks)))


def _entering(ends: PairEnds, ranks: Ranks) -> set[int]:
    """The numbers of what comes into a set of ranks, seen from the side that has fewer."""
    inside, every = set(ranks), len(ends.coming)
    if 2 * len(inside) <= every:
        return {n for rank in inside for n, a in ends.coming[rank] if a not in inside}
    outside = set(range(every)) - inside
    return {n for rank in outside for n, b in ends.going[rank] if b in inside}


def partition_crossing(fabric: Fabric, parts: RankParts) -> FlowCrossing:
    """What must go between k parts in an all-reduce: 2(k - 1) messages a chunk.

    Before some part is the first to know all contributions there are k - 1 messages, or it would
    lack one; each of the others then takes another.
    """
    part = {rank: n for n, ranks in enumerate(parts) for rank in ranks}
    edges = tuple(
        e for e, edge in enumerate(fabric.edges) if part[edge.source] != part[edge.target]
    )
    return FlowCrossing(edges, 2 * (len(parts) - 1))


# The most that flows through a network, and the narrowest cut (Dinic, 1970), in whole numbers.


@dataclass(slots=True)
class Network:
    """Nodes 0, 1, ..; arc 2i goes somewhere and arc 2i + 1 back."""

    nodes: int
    heads: list[int] = field(default_factory=list)
    room: list[int] = field(default_factory=list)
    leaving: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.leaving = [[] for _ in range(self.nodes)]

    def join(self, tail: int, head: int, room: int) -> None:
        """An arc that carries up to ``room``."""
        for start, end, free in ((tail, head, room), (head, tail, 0)):
            self.leaving[start].append(len(self.heads))
            self.heads.append(end)
            self.room.append(free)

    def fill(self, source: int, target: int) -> int:
        """Send as much as can be sent; how much that is."""
        total = 0
        while (level := self._levels(source))[target] >= 0:
            tried = [0] * self.nodes
            while sent := self._one_way(source, target, level, tried):
                total += sent
        return total

    def reached(self, source: int) -> set[int]:
        """The nodes to which more could be sent."""
        return {node for node, level in enumerate(self._levels(source)) if level >= 0}

    def _levels(self, source: int) -> list[int]:
        level = [-1] * self.nodes
        level[source], frontier = 0, [source]
        for node in frontier:
            for arc in self.leaving[node]:
                head = self.heads[arc]
                if self.room[arc] and level[head] < 0:
                    level[head] = level[node] + 1
                    frontier.append(head)
        return level

    def _one_way(self, source: int, target: int, level: list[int], tried: list[int]) -> int:
        """Send along one way up the levels; 0: there is none any more."""
        way: list[int] = []
        node = source
        while node != target:
            arcs = self.leaving[node]
            while tried[node] < len(arcs):
                arc = arcs[tried[node]]
                if self.room[arc] and level[self.heads[arc]] == level[node] + 1:
                    break
                tried[node] += 1
            if tried[node] < len(arcs):
                way.append(arcs[tried[node]])
                node = self.heads[way[-1]]
            elif way:
                node = self.heads[way.pop() ^ 1]
                tried[node] += 1
            else:
                return 0
        sent = min(self.room[arc] for arc in way)
        for arc in way:
            self.room[arc] -= sent
            self.room[arc ^ 1] += sent
        return sent

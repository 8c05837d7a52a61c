"""Sets and partitions of the ranks that data must cross."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.problems.flow import FlowCrossing, Pairs

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

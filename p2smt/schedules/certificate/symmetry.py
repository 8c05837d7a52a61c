"""Verifies generators: permutations of ranks and edges that keep the fabric and the demand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from p2smt.schedules.certificate.certificate import CertifiedFabric, CertifiedMap
from p2smt.schedules.certificate.demand import ChunkPairs

T = TypeVar("T")


def fault_of_generator(
    fabric: CertifiedFabric, one: CertifiedMap, groups: Sequence[ChunkPairs]
) -> str | None:
    """Why a map is no symmetry of fabric and demand, in words; None: it is one."""
    if sorted(one.ranks) != list(range(fabric.ranks)):
        return "does not permute the ranks"
    if sorted(one.edges) != list(range(len(fabric.edges))):
        return "does not permute the edges"
    for e, (source, target, _) in enumerate(fabric.edges):
        if fabric.edges[one.edges[e]][:2] != (one.ranks[source], one.ranks[target]):
            return f"takes edge {e} to one between other ranks than its own"
    same = tuple(range(len(fabric.edges)))
    if Counter(_named(fabric, one.edges)) != Counter(_named(fabric, same)):
        return "does not take capacities to capacities of the same bandwidth"
    if Counter(image_of_pairs(one, pairs) for pairs in groups) != Counter(groups):
        return "does not take what is asked for to itself"
    return None


def image_of_pairs(one: CertifiedMap, pairs: ChunkPairs) -> ChunkPairs:
    """Where a generator takes pairs of ranks."""
    return frozenset((one.ranks[a], one.ranks[b]) for a, b in pairs)


def capacity_images(fabric: CertifiedFabric, one: CertifiedMap) -> list[int]:
    """Where a generator takes each capacity: it is known by its bandwidth and its edges."""
    same = tuple(range(len(fabric.edges)))
    images = defaultdict(list)
    for k, name in enumerate(_named(fabric, same)):
        images[name].append(k)
    return [images[name].pop(0) for name in _named(fabric, one.edges)]


def _named(fabric: CertifiedFabric, edges: Sequence[int]) -> list[tuple[object, ...]]:
    """Every capacity by its bandwidth and its edges, these after a permutation."""
    loading: list[list[int]] = [[] for _ in fabric.capacities]
    for e, (_, _, loads) in enumerate(fabric.edges):
        for k in loads:
            loading[k].append(edges[e])
    return [(rate, *sorted(on)) for rate, on in zip(fabric.capacities, loading, strict=True)]


def orbit(start: T, maps: Sequence[Callable[[T], T]]) -> Iterator[T]:
    """Everything that maps and their products make of one thing, which comes first."""
    known, frontier = {start}, [start]
    for one in frontier:
        yield one
        for image in maps:
            if (other := image(one)) not in known:
                known.add(other)
                frontier.append(other)

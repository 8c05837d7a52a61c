"""Symmetries of small fabrics, by trying ranks one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from p2smt.fabric.fabric import Fabric


@dataclass(frozen=True)
class Map:
    """Where a symmetry takes ranks and edges."""

    ranks: tuple[int, ...]
    edges: tuple[int, ...]


def maps_of(fabric: Fabric) -> Iterator[Map]:
    """Every automorphism of a fabric with one edge a pair, each with a capacity of its own."""
    rates = {(e.source, e.target): fabric.capacities[e.loads[0]].bandwidth for e in fabric.edges}
    number = {(e.source, e.target): n for n, e in enumerate(fabric.edges)}
    for ranks in _images(fabric.ranks, rates, ()):
        edges = tuple(number[ranks[e.source], ranks[e.target]] for e in fabric.edges)
        yield Map(ranks, edges)


def _images(
    count: int, rates: dict[tuple[int, int], Fraction], so_far: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    last = len(so_far)
    if last == count:
        yield so_far
        return
    for image in set(range(count)) - set(so_far):
        if all(
            rates.get((r, last)) == rates.get((at, image))
            and rates.get((last, r)) == rates.get((image, at))
            for r, at in enumerate(so_far)
        ):
            yield from _images(count, rates, (*so_far, image))

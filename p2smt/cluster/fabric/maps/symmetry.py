"""A map of a fabric onto itself, or onto its reverse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.errors import InputError


@dataclass(frozen=True, slots=True)
class FabricSymmetry:
    """Where a symmetry takes every rank and every edge, by their numbers.

    One that ``reverses`` takes an edge from a to b to one from the image of b to that of a.
    """

    ranks: tuple[int, ...]
    edges: tuple[int, ...]
    reverses: bool = False

    def after(self, first: FabricSymmetry) -> FabricSymmetry:
        """The symmetry that does ``first``, and then this."""
        return FabricSymmetry(
            tuple([self.ranks[r] for r in first.ranks]),
            tuple([self.edges[e] for e in first.edges]),
            self.reverses != first.reverses,
        )


def identity_of(fabric: Fabric) -> FabricSymmetry:
    """The symmetry that leaves everything where it is."""
    return FabricSymmetry(tuple(range(fabric.ranks)), tuple(range(len(fabric.edges))))


def check_symmetry(fabric: Fabric, symmetry: FabricSymmetry) -> None:
    """Refuse a map that is no symmetry of the fabric.

    What shares a capacity must come to what shares one of the same bandwidth.

    Raises:
        InputError: naming the first rank, edge or capacity that it does not keep.
    """
    given = f"a symmetry of fabric {fabric.name[:60]}"
    for image, size, word in (
        (symmetry.ranks, fabric.ranks, "ranks"),
        (symmetry.edges, len(fabric.edges), "edges"),
    ):
        if sorted(image) != list(range(size)):
            raise InputError(given, f"must permute the {word} 0 to {size - 1}")
    if broken := broken_edge(fabric, symmetry):
        raise InputError(given, broken)
    if broken := _broken_capacity(fabric, symmetry):
        raise InputError(given, broken)


def broken_edge(fabric: Fabric, symmetry: FabricSymmetry) -> str | None:
    """The first edge whose image does not join the images of its ends, in words."""
    for number, edge in enumerate(fabric.edges):
        ends = symmetry.ranks[edge.source], symmetry.ranks[edge.target]
        source, target = reversed(ends) if symmetry.reverses else ends
        image = fabric.edges[symmetry.edges[number]]
        if (image.source, image.target) != (source, target):
            there = f"{image.source} to {image.target}"
            return (
                f"takes the edge {edge.source} to {edge.target} to {there}, "
                f"not to {source} to {target}"
            )
    return None


def _broken_capacity(fabric: Fabric, symmetry: FabricSymmetry) -> str | None:
    loaders = _loaders(fabric)
    wanted: Counter[tuple[Fraction, frozenset[int]]] = Counter(
        (c.bandwidth, frozenset(edges))
        for c, edges in zip(fabric.capacities, loaders, strict=True)
        if edges
    )
    for capacity, edges in zip(fabric.capacities, loaders, strict=True):
        image = (capacity.bandwidth, frozenset(symmetry.edges[e] for e in edges))
        if edges and not wanted[image]:
            return f"takes capacity {capacity.name[:60]} to none of the same edges and bandwidth"
        wanted[image] -= 1
    return None


def _loaders(fabric: Fabric) -> Sequence[list[int]]:
    """The edges that load each capacity."""
    found: list[list[int]] = [[] for _ in fabric.capacities]
    for number, edge in enumerate(fabric.edges):
        for k in edge.loads:
            found[k].append(number)
    return found

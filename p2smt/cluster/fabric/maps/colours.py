"""Colours that tell ranks and edges of a fabric apart, whatever numbers they have.

What a symmetry takes to each other has the same colour; what has the same colour need not be taken
to each other.  A colour is a hash of the colours around, refined until no more differ (colour
refinement, Weisfeiler and Leman 1968); that two hashes agree by chance makes it coarser, not wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p2smt.cluster.fabric.fabric import Fabric

Hashes = NDArray[np.uint64]
RankNumbers = NDArray[np.int64]
_MARK = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False)
class Wires:
    """A fabric as arrays: ends of the edges, pairs (edge, capacity) of loads, rates as numbers.

    ``kept``: permutations of the ranks that a symmetry has to commute with.
    """

    ranks: int
    source: RankNumbers
    target: RankNumbers
    loading: RankNumbers
    loaded: RankNumbers
    rates: Hashes
    kept: tuple[RankNumbers, ...] = ()

    @property
    def reversed(self) -> Wires:
        """The same with every edge turned round."""
        ends = (self.target, self.source)
        return Wires(self.ranks, *ends, self.loading, self.loaded, self.rates, self.kept)


@dataclass(frozen=True, slots=True, eq=False)
class Colours:
    """A colour for every rank and every edge."""

    ranks: Hashes
    edges: Hashes

    def agree(self, other: Colours) -> bool:
        """Whether both give every colour as often."""
        return all(
            np.array_equal(np.sort(one), np.sort(two))
            for one, two in ((self.ranks, other.ranks), (self.edges, other.edges))
        )

    def marked(self, point: int) -> Colours:
        """The same with a rank, or an edge (counted on from the ranks), made different."""
        ranks, edges = self.ranks.copy(), self.edges.copy()
        if point < len(ranks):
            ranks[point] ^= _MARK
        else:
            edges[point - len(ranks)] ^= _MARK
        return Colours(ranks, edges)

    def kinds(self) -> int:
        """How many colours there are."""
        return len(np.unique(self.ranks)) + len(np.unique(self.edges))


def wires_of(fabric: Fabric, kept: Sequence[Sequence[int]] = ()) -> Wires:
    """The arrays of a fabric, and of the permutations that a symmetry has to commute with."""
    rates = sorted({capacity.bandwidth for capacity in fabric.capacities})
    loads = [(number, k) for number, edge in enumerate(fabric.edges) for k in edge.loads]
    return Wires(
        fabric.ranks,
        np.array([edge.source for edge in fabric.edges], dtype=np.int64),
        np.array([edge.target for edge in fabric.edges], dtype=np.int64),
        np.array([number for number, _ in loads], dtype=np.int64),
        np.array([k for _, k in loads], dtype=np.int64),
        np.array([rates.index(c.bandwidth) for c in fabric.capacities], dtype=np.uint64),
        tuple(np.array(image, dtype=np.int64) for image in kept),
    )


def plain_colours(wires: Wires) -> Colours:
    """One colour for all ranks, one for all edges."""
    return Colours(
        np.zeros(wires.ranks, dtype=np.uint64), np.zeros(len(wires.source), dtype=np.uint64)
    )


def refined(wires: Wires, colours: Colours, times: int | None = None) -> tuple[Colours, int]:
    """Colours that differ wherever those around do, and how often they were refined.

    ``times``: refine so often; None: until no more colours come up.
    """
    kinds, done = colours.kinds(), 0
    while times is None or done < times:
        finer, done = _once(wires, colours), done + 1
        more = finer.kinds() if times is None else kinds
        colours = finer
        if times is None and more <= kinds:
            break
        kinds = more
    return colours, done


def _once(wires: Wires, colours: Colours) -> Colours:
    shared = _mixed(wires.rates + _sums(_mixed(colours.edges, 1)[wires.loading], wires.loaded,
                                        len(wires.rates)), 2)  # fmt: skip
    edges = _mixed(
        _mixed(colours.edges, 3)
        + _mixed(colours.ranks, 4)[wires.source]
        + _mixed(colours.ranks, 5)[wires.target]
        + _sums(shared[wires.loaded], wires.loading, len(colours.edges)),
        6,
    )
    ranks = (
        _mixed(colours.ranks, 7)
        + _sums(_mixed(edges, 8), wires.source, wires.ranks)
        + _sums(_mixed(edges, 9), wires.target, wires.ranks)
    )
    for number, image in enumerate(wires.kept):
        after = _mixed(colours.ranks, 10 + 2 * number)
        before = _mixed(colours.ranks, 11 + 2 * number)
        ranks = ranks + after[image]
        ranks[image] += before
    return Colours(_mixed(ranks, 0), edges)


def _sums(values: Hashes, places: RankNumbers, size: int) -> Hashes:
    """Sums of values by place, modulo 2^64."""
    found = np.zeros(size, dtype=np.uint64)
    np.add.at(found, places, values)
    return found


def _mixed(values: Hashes, salt: int) -> Hashes:
    """A hash of each value (the finalizer of splitmix64)."""
    mixed = values + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))

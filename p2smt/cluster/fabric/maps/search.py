"""Searches for one map: backtracking over colours, from a chain of marked ranks and edges.

The chain marks points of the fabric until all have colours of their own (or those that still share
one can be taken to each other at will); a map takes it to another chain with the same colours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.cluster.fabric.maps.colours import Colours, Hashes, Wires, refined
from p2smt.cluster.fabric.maps.symmetry import FabricSymmetry, check_symmetry
from p2smt.errors import InputError
from p2smt.result import StopWatch

MAX_WORK = 3 * 10**7
"""Edges and ranks that are coloured anew before a search gives up: some seconds."""


@dataclass(slots=True)
class Effort:
    """What is left to spend; with a watch also of time."""

    left: int = MAX_WORK
    watch: StopWatch | None = None

    @property
    def over(self) -> bool:
        """Whether nothing is left, or the watch's time is over."""
        return self.left <= 0 or (self.watch is not None and self.watch.expired())

    def spend(self, wires: Wires, times: int) -> None:
        """Colours refined so often."""
        self.left -= times * (wires.ranks + len(wires.source))


@dataclass(frozen=True, slots=True, eq=False)
class MarkedPoint:
    """A link of the chain: the colours before ``point`` is marked, and the times refined after."""

    colours: Colours
    point: int
    times: int


@dataclass(frozen=True, slots=True, eq=False)
class MarkedChain:
    """Points marked one after the other; ``first`` refinements come before them."""

    wires: Wires
    first: int
    links: tuple[MarkedPoint, ...]
    last: Colours

    def colours(self, depth: int) -> Colours:
        """The colours with ``depth`` points marked."""
        return self.links[depth].colours if depth < len(self.links) else self.last


def chain_of(wires: Wires, start: Colours, effort: Effort) -> MarkedChain:
    """The chain that marks the first point of those that share a colour, ranks before edges."""
    colours, first = refined(wires, start)
    effort.spend(wires, first)
    links: list[MarkedPoint] = []
    while not effort.over and (point := _shared_point(colours)) is not None:
        finer, times = refined(wires, colours.marked(point))
        effort.spend(wires, times)
        links.append(MarkedPoint(colours, point, times))
        colours = finer
    return MarkedChain(wires, first, tuple(links), colours)


def _shared_point(colours: Colours) -> int | None:
    """The first rank, else edge, whose colour another one has."""
    for offset, hashes in ((0, colours.ranks), (len(colours.ranks), colours.edges)):
        _, where, counts = np.unique(hashes, return_inverse=True, return_counts=True)
        shared = np.flatnonzero(counts[where] > 1)
        if len(shared):
            return offset + int(shared[0])
    return None


def like(colours: Colours, model: Colours, point: int) -> list[int]:
    """The points that have the colour of ``point`` in ``model``."""
    ranks = len(colours.ranks)
    if point < ranks:
        return [int(r) for r in np.flatnonzero(colours.ranks == model.ranks[point])]
    wanted = model.edges[point - ranks]
    return [ranks + int(e) for e in np.flatnonzero(colours.edges == wanted)]


def map_from(
    fabric: Fabric,
    chain: MarkedChain,
    depth: int,
    colours: Colours,
    effort: Effort,
    *,
    reverses: bool = False,
) -> FabricSymmetry | None:
    """A map that takes the chain's colours at ``depth`` to ``colours``; None: none, or no effort.

    ``reverses``: onto the reverse of the fabric, whose colours ``colours`` are.
    """
    if effort.over or not chain.colours(depth).agree(colours):
        return None
    guess = _guess(fabric, chain.colours(depth), colours, reverses)
    if guess is not None or depth == len(chain.links):
        return guess
    link = chain.links[depth]
    for point in like(colours, link.colours, link.point):
        found = map_to(fabric, chain, depth, colours, point, effort, reverses=reverses)
        if found is not None:
            return found
    return None


def map_to(
    fabric: Fabric,
    chain: MarkedChain,
    depth: int,
    colours: Colours,
    point: int,
    effort: Effort,
    *,
    reverses: bool = False,
) -> FabricSymmetry | None:
    """As :func:`map_from`, with the chain's next point taken to ``point``."""
    wires = chain.wires.reversed if reverses else chain.wires
    times = chain.links[depth].times
    effort.spend(wires, times)
    finer, _ = refined(wires, colours.marked(point), times)
    return map_from(fabric, chain, depth + 1, finer, effort, reverses=reverses)


def _guess(
    fabric: Fabric, model: Colours, colours: Colours, reverses: bool
) -> FabricSymmetry | None:
    """The map that takes each colour to itself and moves as little as it can, if it is one."""
    ranks = _matched(model.ranks.tolist(), colours.ranks.tolist())
    ends = [(edge.source, edge.target) for edge in fabric.edges]
    moved = [(ranks[b], ranks[a]) if reverses else (ranks[a], ranks[b]) for a, b in ends]
    edges = _matched(_keys(moved, model.edges), _keys(ends, colours.edges))
    if len(edges) < len(ends):
        return None
    found = FabricSymmetry(
        tuple(ranks[r] for r in range(fabric.ranks)),
        tuple(edges[e] for e in range(len(ends))),
        reverses,
    )
    try:
        check_symmetry(fabric, found)
    except InputError:
        return None
    return found


def _keys(ends: Iterable[tuple[int, int]], colours: Hashes) -> list[tuple[int, int, int]]:
    return [(a, b, colour) for (a, b), colour in zip(ends, colours.tolist(), strict=True)]


def _matched(here: Sequence[object], there: Sequence[object]) -> dict[int, int]:
    """Numbers of things to those of things alike, themselves where that is one; or fewer."""
    found, free = {}, defaultdict(list)
    for number, (one, other) in enumerate(zip(here, there, strict=True)):
        if one == other:
            found[number] = number
        else:
            free[other].append(number)
    for number, one in enumerate(here):
        if number not in found and free[one]:
            found[number] = free[one].pop(0)
    return found

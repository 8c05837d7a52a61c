"""Maps of a fabric onto itself, or onto its reverse: searched for, and checked.

Ranks and edges are told apart by colours first; a permutation is then searched for step by step,
and is a symmetry only if the check says so, which shares nothing with the search.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric
from p2smt.result import StopWatch

# Searches for one map: backtracking over colours, from a chain of marked ranks and edges.
# The chain marks points of the fabric until all have colours of their own (or those that still
# share one can be taken to each other at will); a map takes it to another chain with the same
# colours.


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


# Colours that tell ranks and edges of a fabric apart, whatever numbers they have.
# What a symmetry takes to each other has the same colour; what has the same colour need not be
# taken to each other.  A colour is a hash of the colours around, refined until no more differ
# (colour refinement, Weisfeiler and Leman 1968); that two hashes agree by chance makes it coarser,
# not wrong.


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


# Symmetries that somebody names by what they do to the ranks: what they do to the edges.


def named_symmetry(fabric: Fabric, ranks: Sequence[int]) -> FabricSymmetry:
    """A symmetry that takes the ranks as told.

    Raises:
        InputError: there is none; names the first ranks that it does not keep together.
    """
    shown = str(list(ranks)[:12])
    shown = shown.replace("]", ", ..]") if len(ranks) > 12 else shown
    given = f"symmetry {shown} of fabric {fabric.name[:60]}"
    if sorted(ranks) != list(range(fabric.ranks)):
        rule = f"must name each of the ranks 0 to {fabric.ranks - 1} once"
        raise InputError(given, rule)
    ways = Counter((edge.source, edge.target) for edge in fabric.edges)
    for (a, b), count in sorted(ways.items()):
        there = ways[ranks[a], ranks[b]]
        if there != count:
            rule = f"takes ranks {a} and {b} to {ranks[a]} and {ranks[b]}"
            rule += f", with {there} ways between them, not {count}"
            raise InputError(given, rule, "see topology fabric --json for the ways")
    found = symmetry_of_ranks(fabric, ranks)
    if found is None:
        rule = "does not keep the bandwidths, or what is shared"
        raise InputError(given, rule, "see topology fabric --json for the capacities")
    return found


def symmetry_of_ranks(fabric: Fabric, ranks: Sequence[int]) -> FabricSymmetry | None:
    """A symmetry that takes the ranks as told; None: there is none."""
    wires, effort = wires_of(fabric), Effort()
    here, there = plain_colours(wires), plain_colours(wires)
    here.ranks[:] = range(1, fabric.ranks + 1)
    there.ranks[list(ranks)] = here.ranks
    chain = chain_of(wires, here, effort)
    colours, _ = refined(wires, there, chain.first)
    return map_from(fabric, chain, 0, colours, effort)


# A map of a fabric onto itself, or onto its reverse.


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


# Fabrics whose ranks can be permuted at will, such as those in which all pairs are linked alike.
# Two maps say so: one that turns all ranks round, and one that swaps two of them.


FEWEST = 3
"""Ranks that can be permuted, or there is nothing to save."""


def all_permutations(
    fabric: Fabric, fixed: Sequence[int] = (), *, reversing: bool = False
) -> tuple[FabricSymmetry, ...]:
    """A map that turns all ranks but ``fixed`` round, and one that swaps two of them.

    They generate all permutations of these ranks.  Empty: one of them is no symmetry, or several
    edges join the same ranks, so that what they do to ranks does not settle what they do to edges.

    Args:
        fabric: edges and capacities.
        fixed: ranks that stay.
        reversing: a third one leaves all ranks, and turns the edges round; empty if there is none.
    """
    free = [rank for rank in range(fabric.ranks) if rank not in set(fixed)]
    if len(free) < FEWEST or len(fabric.edges) != fabric.ranks * (fabric.ranks - 1):
        return ()
    found = [permuted(fabric, [free]), permuted(fabric, [free[:2]])]
    if reversing:
        found.append(permuted(fabric, [], reverses=True))
    every = tuple(one for one in found if one is not None)
    return every if len(every) == len(found) else ()


def permuted(
    fabric: Fabric, cycles: Sequence[Sequence[int]], *, reverses: bool = False
) -> FabricSymmetry | None:
    """The symmetry that moves the ranks in these cycles; None: it is none, or edges are not told.

    ``reverses``: turns the edges round too.
    """
    numbers = {(edge.source, edge.target): e for e, edge in enumerate(fabric.edges)}
    if len(numbers) < len(fabric.edges):
        return None
    ranks = list(range(fabric.ranks))
    for cycle in cycles:
        for here, there in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True):
            ranks[here] = there
    ends = [(ranks[edge.source], ranks[edge.target]) for edge in fabric.edges]
    edges = [numbers.get((b, a) if reverses else (a, b)) for a, b in ends]
    moved = tuple([edge for edge in edges if edge is not None])
    if len(moved) < len(edges):
        return None
    found = FabricSymmetry(tuple(ranks), moved, reverses)
    try:
        check_symmetry(fabric, found)
    except InputError:
        return None
    return found


# Generators of all symmetries of a fabric.
# A chain of points is fixed one after the other (Sims 1970): of the symmetries that fix all points
# before one, it is enough to know one for every place to which they take that point.


def fabric_symmetries(
    fabric: Fabric,
    *,
    reversing: bool = False,
    commuting: Sequence[FabricSymmetry] = (),
    fixed: Sequence[int] = (),
    effort: Effort | None = None,
) -> tuple[FabricSymmetry, ...]:
    """Generators of the group of a fabric's symmetries; none if it has the identity alone.

    Args:
        fabric: edges that cannot be told apart are taken to each other too.
        reversing: of the maps onto its reverse as well: one of them comes last, if there is any.
        commuting: only symmetries that commute with these, as maps of the ranks.
        fixed: only symmetries that leave these ranks where they are.
        effort: where it ends, the group is smaller than it could be.
    """
    left = Effort() if effort is None else effort
    free = not (commuting or fabric.symmetries or left.over)
    if free and (every := all_permutations(fabric, fixed, reversing=reversing)):
        return every
    wires = wires_of(fabric, [one.ranks for one in commuting])
    start = plain_colours(wires)
    start.ranks[list(fixed)] = range(1, len(fixed) + 1)
    chain = chain_of(wires, start, left)
    found = [
        one
        for one in _named(fabric)
        if _commutes(one, commuting) and all(one.ranks[rank] == rank for rank in fixed)
    ]
    for depth in reversed(range(len(chain.links))):
        found += _movers(fabric, chain, depth, found, left)
    if reversing and (turn := _reversal(fabric, chain, start, left)) is not None:
        found.append(turn)
    return tuple(found)


def _movers(
    fabric: Fabric, chain: MarkedChain, depth: int, known: Sequence[FabricSymmetry], effort: Effort
) -> list[FabricSymmetry]:
    """Symmetries that fix the chain before ``depth``, and move its next point."""
    link, found = chain.links[depth], list[FabricSymmetry]()
    marked = [before.point for before in chain.links[:depth]]
    able = [one for one in known if all(_image(one, p) == p for p in marked)]
    refuted = set[int]()
    for point in like(link.colours, link.colours, link.point):
        if effort.over:
            break
        if point in refuted or point in _orbit([link.point], [*able, *found]):
            continue
        one = map_to(fabric, chain, depth, link.colours, point, effort)
        if one is None:
            refuted |= _orbit([point], [*able, *found])
        else:
            found.append(one)
    return found


def _image(one: FabricSymmetry, point: int) -> int:
    """Where a symmetry takes a rank, or an edge counted on from the ranks."""
    ranks = len(one.ranks)
    return one.ranks[point] if point < ranks else ranks + one.edges[point - ranks]


def _orbit(points: Iterable[int], group: Sequence[FabricSymmetry]) -> set[int]:
    """Where the symmetries take points: ranks, and edges counted on from them."""
    known = set(points)
    frontier = sorted(known)
    for point in frontier:
        for one in group:
            at = _image(one, point)
            if at not in known:
                known.add(at)
                frontier.append(at)
    return known


def _reversal(
    fabric: Fabric, chain: MarkedChain, start: Colours, effort: Effort
) -> FabricSymmetry | None:
    """A map onto the reverse, if there is one."""
    wires = chain.wires.reversed
    colours, _ = refined(wires, start, chain.first)
    effort.spend(wires, chain.first)
    return map_from(fabric, chain, 0, colours, effort, reverses=True)


def _named(fabric: Fabric) -> Iterator[FabricSymmetry]:
    """The symmetries that the fabric is said to have."""
    return (named_symmetry(fabric, image) for image in fabric.symmetries)


def _commutes(one: FabricSymmetry, others: Sequence[FabricSymmetry]) -> bool:
    return all(one.after(other).ranks == other.after(one).ranks for other in others)

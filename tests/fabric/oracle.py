"""Brute force: all symmetries of a small fabric, by trying all permutations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product

from hypothesis import strategies as st

from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge
from p2smt.fabric.symmetries import FabricSymmetry


def every_symmetry(fabric: Fabric, *, reverses: bool = False) -> Iterator[FabricSymmetry]:
    """All of them: ranks in every order, edges in every way that follows the ranks."""
    for ranks in permutations(range(fabric.ranks)):
        for edges in _edge_images(fabric, ranks, reverses):
            if _keeps_capacities(fabric, edges):
                yield FabricSymmetry(ranks, edges, reverses)


def _edge_images(fabric: Fabric, ranks: Sequence[int], reverses: bool) -> Iterator[tuple[int, ...]]:
    wanted = [
        (ranks[e.target], ranks[e.source]) if reverses else (ranks[e.source], ranks[e.target])
        for e in fabric.edges
    ]
    options = [
        [n for n, e in enumerate(fabric.edges) if (e.source, e.target) == ends] for ends in wanted
    ]
    return (image for image in product(*options) if len(set(image)) == len(image))


def _keeps_capacities(fabric: Fabric, edges: Sequence[int]) -> bool:
    """Whether the multiset of (bandwidth, edges that share it) stays the same."""
    users = [
        frozenset(n for n, e in enumerate(fabric.edges) if k in e.loads)
        for k in range(len(fabric.capacities))
    ]
    before = Counter((c.bandwidth, u) for c, u in zip(fabric.capacities, users, strict=True) if u)
    after = Counter(
        (c.bandwidth, frozenset(edges[n] for n in u))
        for c, u in zip(fabric.capacities, users, strict=True)
        if u
    )
    return before == after


@st.composite
def small_fabrics(draw: st.DrawFn) -> Fabric:
    """Two to four ranks; edges may be parallel, even alike, and share capacities."""
    ranks = draw(st.integers(2, 4))
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    capacities = draw(st.lists(st.sampled_from([Fraction(1), Fraction(2)]), min_size=1, max_size=4))
    some = st.lists(st.sampled_from(range(len(capacities))), min_size=1, max_size=2, unique=True)
    loads = some.map(sorted).map(tuple)
    way = st.tuples(st.sampled_from(pairs), loads)
    ways = draw(st.lists(way, min_size=1, max_size=5, unique=True))
    if draw(st.booleans()):  # both ways, which makes symmetries likely, and edges alike
        ways += [((b, a), shared) for (a, b), shared in ways[:3]]
    edges = sorted(FabricEdge(a, b, shared) for (a, b), shared in ways)
    named = tuple(Capacity(f"c{n}", rate) for n, rate in enumerate(capacities))
    return Fabric("drawn", ranks, named, tuple(edges))

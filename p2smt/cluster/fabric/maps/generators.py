"""Generators of all symmetries of a fabric.

A chain of points is fixed one after the other (Sims 1970): of the symmetries that fix all points
before one, it is enough to know one for every place to which they take that point.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.cluster.fabric.maps.colours import Colours, plain_colours, refined, wires_of
from p2smt.cluster.fabric.maps.named import named_symmetry
from p2smt.cluster.fabric.maps.permutations import all_permutations
from p2smt.cluster.fabric.maps.search import Effort, MarkedChain, chain_of, like, map_from, map_to
from p2smt.cluster.fabric.maps.symmetry import FabricSymmetry


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

"""Fabrics whose ranks can be permuted at will, such as those in which all pairs are linked alike.

Two maps say so: one that turns all ranks round, and one that swaps two of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.cluster.fabric.maps.symmetry import FabricSymmetry, check_symmetry
from p2smt.errors import InputError

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

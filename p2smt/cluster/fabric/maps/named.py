"""Symmetries that somebody names by what they do to the ranks: what they do to the edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.cluster.fabric.maps.colours import plain_colours, refined, wires_of
from p2smt.cluster.fabric.maps.search import Effort, chain_of, map_from
from p2smt.cluster.fabric.maps.symmetry import FabricSymmetry
from p2smt.errors import InputError


def named_symmetry(fabric: Fabric, ranks: Sequence[int]) -> FabricSymmetry:
    """A symmetry that takes the ranks as told.

    Raises:
        InputError: there is none; names the first ranks that it does not keep together.
    """
    given = f"symmetry {list(ranks)[:12]} of fabric {fabric.name[:60]}"
    if sorted(ranks) != list(range(fabric.ranks)):
        rule = f"must name each of the ranks 0 to {fabric.ranks - 1} once"
        raise InputError(given.replace("]", ", ..]") if len(ranks) > 12 else given, rule)
    ways = Counter((edge.source, edge.target) for edge in fabric.edges)
    for (a, b), count in sorted(ways.items()):
        there = ways[ranks[a], ranks[b]]
        if there != count:
            rule = f"takes ranks {a} and {b} to {ranks[a]} and {ranks[b]}"
            raise InputError(given, f"{rule}, with {there} ways between them, not {count}")
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

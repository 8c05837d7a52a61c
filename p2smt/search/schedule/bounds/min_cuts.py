"""Sets of ranks into which, or out of which, more must go than some rounds let pass.

A network has a node for every rank and two for every capacity, so that edges share these; where an
edge loads several, one after the other.  That lets more pass than the fabric does, so not every
set is found, and what is found is reckoned again with its edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import lcm

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.schedules.certificate.certificate import BoundedCollective
from p2smt.search.schedule.bounds.crossings import Ranks
from p2smt.search.schedule.bounds.max_flow import Network

_OWN = BoundedCollective
_COPIES = (_OWN.ALL_GATHER, _OWN.BROADCAST)
_SUMS = {_OWN.REDUCE_SCATTER: _OWN.ALL_GATHER, _OWN.REDUCE: _OWN.BROADCAST}


def narrow_cut(
    fabric: Fabric, collective: BoundedCollective, root: int, rank: int, rounds: Fraction
) -> Ranks | None:
    """Ranks that cannot be served in so many rounds a chunk, ``rank`` among them; None: none found.

    Of collectives that copy everything to all, or add everything from all; the ranks are those to
    enter, as in :func:`~p2smt.search.schedule.bounds.crossings.cut_crossing`.
    """
    if collective in _COPIES:
        return _entered(fabric, _held(fabric, collective, root), rank, rounds)
    if collective in _SUMS:
        held = _held(fabric, _SUMS[collective], root)
        inside = _entered(fabric.reversed(), held, rank, rounds)
        return None if inside is None else _others(fabric, inside)
    return None


def _others(fabric: Fabric, ranks: Ranks) -> Ranks:
    return tuple(r for r in range(fabric.ranks) if r not in set(ranks))


def _held(fabric: Fabric, collective: BoundedCollective, root: int) -> Mapping[int, int]:
    """Kinds of chunks by the rank that holds them at first."""
    if collective is _OWN.BROADCAST:
        return {root: 1}
    return dict.fromkeys(range(fabric.ranks), 1)


def _entered(
    fabric: Fabric, held: Mapping[int, int], target: int, rounds: Fraction
) -> Ranks | None:
    """The ranks on the target's side of a cut that lets too little pass; None: there is none."""
    rates = [one.bandwidth * rounds for one in fabric.capacities]
    unit = lcm(*(rate.denominator for rate in rates))
    ranks, source = fabric.ranks, fabric.ranks + 2 * len(rates)
    network = Network(source + 1)
    for k, rate in enumerate(rates):
        network.join(ranks + 2 * k, ranks + 2 * k + 1, int(rate * unit))
    plenty = sum(held.values()) * unit
    for start, end in sorted(_arcs(fabric)):
        network.join(start, end, plenty)
    for rank, count in held.items():
        network.join(source, rank, count * unit)
    if network.fill(source, target) >= plenty:
        return None
    reached = network.reached(source)
    return tuple(rank for rank in range(ranks) if rank not in reached)


def _arcs(fabric: Fabric) -> set[tuple[int, int]]:
    """From ranks to the capacities of their edges, from one to the next, and to ranks."""
    found = set()
    sources: list[set[int]] = [set() for _ in fabric.capacities]
    for edge in fabric.edges:
        for k in edge.loads:
            sources[k].add(edge.source)
    for edge in fabric.edges:
        at = edge.source
        for k in sorted(edge.loads, key=lambda k: len(sources[k])):
            found.add((at, fabric.ranks + 2 * k))
            at = fabric.ranks + 2 * k + 1
        found.add((at, edge.target))
    return found

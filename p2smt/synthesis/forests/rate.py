"""How long every forest takes at least, exactly: Newton's method on cuts, each found by a max flow.

Data of all roots that are inside a cut has to leave it, if a rank is outside.  The least time is
the greatest ratio of what is inside to what leaves in a second (Edmonds, "Edge-disjoint
branchings", 1973, with fractions: trees that pack exist at that time).  A time is too short if some
rank cannot take in, at once, a flow of everything; its narrowest cut gives the next time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from p2smt.errors import EncodingBug
from p2smt.synthesis.certificate.forest import TreeNetwork, entering
from p2smt.synthesis.forests.network import ForestGround
from p2smt.synthesis.min_cuts import Network


@dataclass(frozen=True, slots=True)
class LeastTime:
    """Seconds for a byte of each root (rounds for a chunk), what proves it, and how many flows.

    ``part``: the vertices that all data outside has to enter.
    """

    time: Fraction
    part: frozenset[int]
    flows: int


def least_time(ground: ForestGround) -> LeastTime:
    """The least time of all forests.

    Raises:
        EncodingBug: a part without a way in; a network that is joined has none.
    """
    net, found = ground.network, LeastTime(Fraction(0), frozenset(), 0)
    firsts = sorted({ground.orbits.vertices[rank] for rank in range(net.ranks)})
    for rank in firsts:
        if ground.roots == (rank,):
            continue
        while True:
            part = _too_narrow(net, ground.roots, rank, found.time)
            flows = found.flows + 1
            if part is None:
                found = LeastTime(found.time, found.part, flows)
                break
            room = entering(net, part)
            if not room:
                raise EncodingBug("a part has no way in, or one without limit", ground, part)
            outside = sum(1 for root in ground.roots if root not in part)
            found = LeastTime(Fraction(outside) / room, part, flows)
    return found


def _too_narrow(
    net: TreeNetwork, roots: Sequence[int], target: int, time: Fraction
) -> frozenset[int] | None:
    """Beyond the narrowest cut between roots and a rank, if too little flows; else None."""
    flow, unit = _rooms(net, time, len(roots))
    source = len(net.vertices)
    for root in roots:
        flow.join(source, root, unit)
    if flow.fill(source, target) >= len(roots) * unit:
        return None
    return frozenset(range(source)) - flow.reached(source)


def narrowest_around(net: TreeNetwork, ranks: frozenset[int]) -> frozenset[int]:
    """The vertices on the side of some ranks, where least enters from the other ranks."""
    plenty = sum((rate for _, _, rate in net.arcs if rate is not None), Fraction(1))
    flow, unit = _rooms(net, Fraction(1), plenty)
    source, target = len(net.vertices), len(net.vertices) + 1
    for rank in range(net.ranks):
        ends = (rank, target) if rank in ranks else (source, rank)
        flow.join(*ends, int(plenty * unit))
    flow.fill(source, target)
    return frozenset(range(source)) - flow.reached(source)


def _rooms(net: TreeNetwork, time: Fraction, plenty: Fraction | int) -> tuple[Network, int]:
    """What arcs carry in a time as whole numbers, and how many 1 is; at most ``plenty``."""
    rates = [plenty if rate is None else min(plenty, rate * time) for _, _, rate in net.arcs]
    unit = lcm(*(Fraction(rate).denominator for rate in rates))
    flow = Network(len(net.vertices) + 2)
    for (tail, head, _), rate in zip(net.arcs, rates, strict=True):
        flow.join(tail, head, int(rate * unit))
    return flow, unit

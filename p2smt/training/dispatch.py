"""Tokens on their way to experts where each goes once to every node or rack that needs it."""

from __future__ import annotations

from math import comb, prod

from p2smt.cluster.topology import Topology
from p2smt.parallelism.placement import IntArray
from p2smt.training.transformer import Experts

DISPATCH = "ep dispatch"
"""The request that moves tokens to experts, or back."""
FLEX_S = 20e-6
"""Seconds until the first token arrives: launches and synchronisation, fitted."""


def needed(experts: Experts, parts: int) -> float:
    """In how many of so many equal parts of its experts a token has one or more, on average."""
    if experts.count % parts:
        return min(parts, experts.active)
    outside = comb(experts.count - experts.count // parts, experts.active)
    return parts * (1 - outside / comb(experts.count, experts.active))


def flex_seconds(
    topology: Topology, ranks: IntArray, payload_bytes: int, experts: Experts
) -> float:
    """Seconds of a dispatch over the third axis of ``ranks``, which are shaped by their axes.

    ``payload_bytes``: of a device's tokens, as often as each has experts.  The slowest level of
    links counts: tokens of all levels move at once.
    """
    line = ranks[0, 0, :, 0]
    token_bytes = payload_bytes / experts.active
    sizes = [level.size for level in topology.levels]
    slowest_s, parts = 0.0, 1
    for j, level in enumerate(topology.levels):
        below = prod(sizes[j + 1 :])
        here = len(set((line // below).tolist()))
        if here > parts:
            copies = needed(experts, here)
            if experts.top_groups and here == experts.groups:
                copies = min(copies, experts.top_groups)
            link = level.link
            rate = max(piece.bandwidth_bytes_per_s for piece in link.pieces)
            rate *= link.ports / below
            slowest_s = max(slowest_s, token_bytes * copies * (here - 1) / here / rate)
        parts = here
    return slowest_s + FLEX_S

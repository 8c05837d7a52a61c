"""What a single message of a schedule takes on a link, under a topology's library.

A schedule's steps are not calls: they run inside one kernel, as the steps of a library's rings do,
and have these rings' latencies and their measured part of the nominal bandwidth.
"""

from __future__ import annotations

from functools import lru_cache

from p2smt.cluster.topology import Algorithm, Piece, Topology
from p2smt.cost.library.model import family_of
from p2smt.cost.library.registry import library_of
from p2smt.cost.library.ways import protocol_rate

_FAMILY = family_of(Algorithm.RING)


@lru_cache(maxsize=1024)
def message_piece(topology: Topology, j: int, protocol: str) -> Piece:
    """Latency and effective bandwidth of a level's link by a protocol; by the library's first one
    if it has none of that name."""
    library, link = library_of(topology.library), topology.levels[j].link
    names = [one.name for one in library.protocols]
    name = protocol.lower() if protocol.lower() in names else names[0]
    latency_s = link.hop_of(name, _FAMILY)
    if latency_s is None:
        across = j <= topology.node_level
        latency_s = library.hop_s(link.fabric, _FAMILY, name, across=across)
    innermost = j == len(topology.levels) - 1
    rate = protocol_rate(link, library.protocol(name), _part(topology, j), innermost=innermost)
    return Piece(name, latency_s, rate)


def device_rate(topology: Topology, j: int) -> float | None:
    """What one device sends over a level at most; None: no more than its links."""
    draw = topology.levels[j].link.device_bandwidth_bytes_per_s
    return None if draw is None else draw * _part(topology, j)


def _part(topology: Topology, j: int) -> float:
    """The measured part of a link's bandwidth for rings; all of it without a library."""
    link = topology.levels[j].link
    return link.efficiency_of(Algorithm.RING.value) if topology.library else 1.0

"""What a single message of a schedule takes on a link, under a topology's library.

A schedule's steps are not calls: they run inside one kernel, as the steps of a library's rings do,
and have these rings' latencies and their measured part of the nominal bandwidth.  Of a library with
one algorithm for each operation these are measured by operation: those that a ring runs count.
"""

from __future__ import annotations

from functools import lru_cache

from p2smt.cluster.topology import Algorithm, Piece, Topology
from p2smt.cost.library import ways
from p2smt.cost.library.model import Library, ProtocolRate, family_of
from p2smt.cost.library.registry import library_of

_FAMILY = family_of(Algorithm.RING)


@lru_cache(maxsize=1024)
def message_piece(topology: Topology, j: int, protocol: str) -> Piece:
    """Latency and effective bandwidth of a level's link by a protocol; by the library's first one
    if it has none of that name."""
    library = library_of(topology.library)
    one = _protocol(library, protocol)
    latency_s = ways.hop_s(topology, j, one.name, _FAMILY, *_operations(library))
    rate = ways.protocol_rate(
        topology.levels[j].link, one, _part(topology, j), innermost=_innermost(topology, j)
    )
    return Piece(one.name, latency_s, rate)


def device_rate(topology: Topology, j: int, protocol: str) -> float | None:
    """What one device sends over a level at most; None: no more than its links."""
    link = topology.levels[j].link
    if not topology.library:
        return link.device_bandwidth_bytes_per_s
    one = _protocol(library_of(topology.library), protocol)
    return ways.device_rate(link, one, _part(topology, j), innermost=_innermost(topology, j))


def _protocol(library: Library, name: str) -> ProtocolRate:
    named = (one for one in library.protocols if one.name == name.lower())
    return next(named, library.protocols[0])


def _innermost(topology: Topology, j: int) -> bool:
    return j == len(topology.levels) - 1


def _part(topology: Topology, j: int) -> float:
    """The measured part of a link's bandwidth for rings."""
    names = (Algorithm.RING.value, *_operations(library_of(topology.library)))
    return topology.levels[j].link.efficiency_of(*names)


def _operations(library: Library) -> tuple[str, ...]:
    """What a ring's constants may be listed under but its own name."""
    return library.run_by(Algorithm.RING) if library.fixed else ()

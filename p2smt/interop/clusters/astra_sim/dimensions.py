"""One dimension of an ASTRA-sim network, and the level of a topology that is like it.

A level's link is that of an entity, and its devices share it; in ASTRA-sim every NPU has a link of
its own.  With d devices under an entity, a switch has d ports of the NPU's bandwidth; a ring or
full mesh has links of d times that bandwidth, of which a device gets no more than its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.cluster.topology import Level, Link, LinkKind, Piece

KINDS = {
    "Ring": LinkKind.RING,
    "Switch": LinkKind.SWITCH,
    "FullyConnected": LinkKind.FULL_MESH,
}
NAMES = {kind: name for name, kind in KINDS.items()}
PIECE = "simple"


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension: ``bandwidth_bytes_per_s`` is of each link of an NPU in one direction."""

    kind: LinkKind
    size: int
    bandwidth_bytes_per_s: float
    latency_s: float


def level_of(dimension: Dimension, name: str, under: int) -> Level:
    """The level of a dimension with so many devices under each of its entities."""
    one = dimension.bandwidth_bytes_per_s
    if dimension.kind is LinkKind.SWITCH:
        pieces = (Piece(PIECE, dimension.latency_s, one),)
        return Level(name, dimension.size, Link(LinkKind.SWITCH, pieces, ports=under))
    pieces = (Piece(PIECE, dimension.latency_s, one * under),)
    draw = one * links_of(dimension.kind, dimension.size) if under > 1 else None
    link = Link(dimension.kind, pieces, device_bandwidth_bytes_per_s=draw)
    return Level(name, dimension.size, link)


def links_of(kind: LinkKind, size: int) -> int:
    """Links of an NPU in a dimension: to a switch, to its neighbours, to all others."""
    if kind is LinkKind.SWITCH:
        return 1
    return min(2, size - 1) if kind is LinkKind.RING else size - 1


def per_device(link: Link, under: int) -> float:
    """The part of a link's nominal bandwidth that each of the devices under it has."""
    return link.ports * link.nominal_bytes_per_s / under

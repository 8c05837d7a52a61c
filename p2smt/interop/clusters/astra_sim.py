"""Writes a topology as an ASTRA-sim network file; what the file cannot say is said by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology
from p2smt.errors import InputError
from p2smt.units import format_bandwidth


@dataclass(frozen=True, slots=True)
class AstraSimFile:
    """The text of a network file, and sentences on what of the topology it does not say."""

    text: str
    lost: tuple[str, ...]


def astra_sim_text(topology: Topology) -> AstraSimFile:
    """A topology as a network file: nominal bandwidths, as each device has them.

    Raises:
        InputError: hosts leave places of its levels empty, or uplinks differ: no file says that.
    """
    if topology.uneven:
        rule = "has switches of unequal size or uplinks, and every dimension is regular"
        remedy = "export it without its hosts and switches"
        raise InputError(f"topology {topology.name[:80]!r}", rule, remedy)
    dimensions: list[Dimension] = []
    lost: list[str] = []
    for j in reversed(range(len(topology.levels))):
        level, under = topology.levels[j], topology.devices_under(j)
        dimensions += _dimensions(level, under)
        lost[:0] = _lost_of_level(level, under)
    if not dimensions:
        raise InputError(f"topology {topology.name[:80]!r}", "has one device: no network joins it")
    return AstraSimFile(_text(topology, dimensions), (*lost, *_lost_of_all(topology)))


def _dimensions(level: Level, under: int) -> Iterator[Dimension]:
    """The dimensions of a level, the innermost first: of a torus one for each of its own."""
    link = level.link
    rate, latency = per_device(link, under), _largest(link)
    torus = link.kind is LinkKind.TORUS
    kind = LinkKind.RING if torus else link.kind
    for size in reversed(link.torus) if torus else (level.size,):
        if size > 1:
            yield Dimension(kind, size, rate, latency)


def _largest(link: Link) -> float:
    """The latency of the piece with the largest bandwidth."""
    best = max(link.pieces, key=lambda piece: (piece.bandwidth_bytes_per_s, -piece.latency_s))
    return best.latency_s


def _lost_of_level(level: Level, under: int) -> Iterator[str]:
    link, name = level.link, f"level {level.name}"
    one = format_bandwidth(per_device(link, under))
    if level.size == 1:
        yield f"{name} has one entity, so no dimension"
    if link.kind is LinkKind.SWITCH and link.ports != under:
        ports = "its one port is" if link.ports == 1 else f"its {link.ports} ports are"
        each = f"each of {under} devices" if under > 1 else "the device"
        yield f"{name}: {ports} written as {one} for {each}"
    elif link.kind is not LinkKind.SWITCH and under > 1:
        yield f"{name}: its links are written as {one} for each of {under} devices"
    if link.kind is LinkKind.TORUS:
        yield f"{name}: its torus is written as {len(link.torus)} rings"
    if len(link.pieces) > 1:
        yield f"{name}: of its {len(link.pieces)} protocols the one of most bandwidth is written"
    yield from _features(name, level, under)


def _features(name: str, level: Level, under: int) -> Iterator[str]:
    """What a link has beside a bandwidth and a latency."""
    link = level.link
    own = per_device(link, under) * links_of(link.kind, level.size)
    draw = link.device_bandwidth_bytes_per_s
    told = {
        "device_bandwidth": draw is not None and abs(draw - own) > 1e-6 * own,
        "measured links of collectives": bool(link.measured),
        "efficiency": bool(link.efficiency),
        "hops": bool(link.hops),
        "in-switch reduction": bool(link.in_switch_members),
        "fabric": bool(link.fabric),
    }
    if missing := [what for what, there in told.items() if there]:
        yield f"{name}: no {', '.join(missing)} (nominal rates are written)"


def _lost_of_all(topology: Topology) -> Iterator[str]:
    told = {
        f"library {topology.library_name}": bool(topology.library),
        "calls": bool(topology.calls),
        "algorithms named for collectives": bool(topology.overrides) or topology.restricted,
        "error classes": bool(topology.errors),
    }
    if missing := [what for what, there in told.items() if there]:
        yield f"the network file has no {', '.join(missing)}"
    if topology.hosts is not None:
        yield "names of hosts and switches are left out: NPUs are numbered in their order"


def _text(topology: Topology, dimensions: Sequence[Dimension]) -> str:
    name = " ".join(topology.name.split())[:80]
    rates = [_decimal(one.bandwidth_bytes_per_s / 1e9) for one in dimensions]
    latencies = [_decimal(one.latency_s * 1e9) for one in dimensions]
    return (
        f"# {name}: one entry per dimension, the innermost first\n"
        f"topology: [ {', '.join(NAMES[one.kind] for one in dimensions)} ]\n"
        f"npus_count: [ {', '.join(str(one.size) for one in dimensions)} ]\n"
        f"bandwidth: [ {', '.join(rates)} ]  # GB/s\n"
        f"latency: [ {', '.join(latencies)} ]  # ns\n"
    )


def _decimal(value: float) -> str:
    """A number with a point, exact to 12 digits."""
    text = f"{value:.12g}"
    if "e" in text:
        text = f"{value:.12f}".rstrip("0")
        text = text + "0" if text.endswith(".") else text
    return text if "." in text else text + ".0"


# One dimension of an ASTRA-sim network, and the level of a topology that is like it.
# A level's link is that of an entity, and its devices share it; in ASTRA-sim every NPU has a link
# of its own.  With d devices under an entity, a switch has d ports of the NPU's bandwidth; a ring
# or full mesh has links of d times that bandwidth, of which a device gets no more than its own.


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

"""Writes a topology as an ASTRA-sim network file; what the file cannot say is said by name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p2smt.cluster.topology import MAX_DEVICES, MAX_LEVELS, Level, Link, LinkKind, Piece, Topology
from p2smt.errors import InputError, did_you_mean
from p2smt.files.yaml_text import Plain, load_yaml
from p2smt.interop.clusters.facts import ClusterFormat, Facts
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


# Reads an ASTRA-sim network file.


_KEYS = ("topology", "npus_count", "bandwidth", "latency")
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{0,12})?([eE][+-]?[0-9]{1,2})?")
_HEAD = 64 * 1024


def is_astra_sim(text: str) -> bool:
    """Whether a text looks like one."""
    return bool(re.search(r"^[ \t]*[\"']?npus_count[\"']?[ \t]*:", text[:_HEAD], re.M))


def read_astra_sim(text: str, source: str) -> Facts:
    """The levels in a network file, named dim1 (the innermost), dim2, ..

    Raises:
        InputError: it is malformed, or of more levels or devices than a topology may have.
    """
    found = dimensions_in(text, source)
    levels, under = [], 1
    for number, dimension in enumerate(found, 1):
        levels.append(level_of(dimension, f"dim{number}", under))
        under *= dimension.size
    return Facts(source, whole=tuple(reversed(levels)))


def dimensions_in(text: str, source: str) -> list[Dimension]:
    """The dimensions of a network file, the innermost first."""
    lists = _lists(load_yaml(text, source), source)
    kinds, sizes, rates, latencies = (lists[key] for key in _KEYS)
    found = [
        Dimension(
            KINDS[_kind(kind, f"{source}: topology[{i}]")],
            _size(size, f"{source}: npus_count[{i}]"),
            _number(rate, f"{source}: bandwidth[{i}]", "GB/s", 1e-9, 1e9) * 1e9,
            _number(latency, f"{source}: latency[{i}]", "ns", 0, 1e15) / 1e9,
        )
        for i, (kind, size, rate, latency) in enumerate(
            zip(kinds, sizes, rates, latencies, strict=True)
        )
    ]
    devices = math.prod(dimension.size for dimension in found)
    if devices > MAX_DEVICES:
        raise InputError(f"{source}: {devices} NPUs", f"at most {MAX_DEVICES} are supported")
    return found


def _lists(data: Plain, source: str) -> dict[str, list[Plain]]:
    if not isinstance(data, dict):
        raise InputError(source, f"must be a mapping with {', '.join(_KEYS)}", "correct the file")
    for key in data:
        if key not in _KEYS:
            remedy = did_you_mean(key, _KEYS) or f"its keys are {', '.join(_KEYS)}"
            raise InputError(f"{source}: key {key[:40]!r}", "is none of a network file", remedy)
    found: dict[str, list[Plain]] = {}
    for key in _KEYS:
        value = data.get(key)
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_LEVELS:
            rule = f"must be a list with an entry for each of 1 to {MAX_LEVELS} dimensions"
            raise InputError(f"{source}: {key}", rule, f"write {key}: [ .. ]")
        found[key] = value
    counts = {key: len(value) for key, value in found.items()}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{key} {count}" for key, count in counts.items())
        raise InputError(f"{source}: {shown}", "must have as many entries each", "correct it")
    return found


def _kind(value: Plain, where: str) -> str:
    if not isinstance(value, str) or value not in KINDS:
        remedy = did_you_mean(str(value)[:40], tuple(KINDS)) or "pick one"
        rule = f"must be one of {', '.join(KINDS)}"
        raise InputError(f"{where}: {str(value)[:40]!r}", rule, remedy)
    return value


def _size(value: Plain, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 2 <= value <= MAX_DEVICES:
        rule = f"must be a whole number from 2 to {MAX_DEVICES}"
        raise InputError(f"{where}: {str(value)[:40]!r}", rule)
    return value


def _number(value: Plain, where: str, unit: str, low: float, high: float) -> float:
    """A number; those with a fraction come as text."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    found = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not low <= found <= high:
        rule = f"must be a number of {unit} from {low:g} to {high:g}"
        raise InputError(f"{where}: {str(value)[:40]!r}", rule, "check its unit")
    return found


ASTRA_SIM = ClusterFormat("ASTRA-sim network YAML", is_astra_sim, read_astra_sim)

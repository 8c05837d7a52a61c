"""A level hierarchy as a fabric, by one rule.

Every entity of a switch level has its uplink's ports, each a capacity outward and one inward; its
devices share them in consecutive runs.  Two devices whose outermost different coordinate is at
level j are joined by an edge if level j is a switch or a full mesh, or if it is a ring or torus and
the coordinates are neighbours there.  The edge loads, outward and inward, the ports of both devices
at every switch level from j inwards; where level j is no switch, the link between the two entities
takes the place of its ports.  As in the cost model, data leaves a node through its device's port
inside the node, too; fabrics that are wired (``wiring``) can say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from math import prod

from p2smt.cluster.fabric.fabric import MAX_RANKS, Capacity, Fabric, FabricEdge, edge_key, unit_of
from p2smt.cluster.link import Link, LinkKind
from p2smt.cluster.nodes.even import check_even
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.result import StopWatch, timely


def fabric_of_levels(
    topology: Topology, unit: Fraction | None = None, watch: StopWatch | None = None
) -> Fabric:
    """The fabric of a hierarchy, on the nominal bandwidths of its links.

    ``unit``: bytes per second of one unit; None: the greatest common one of all bandwidths.

    Raises:
        InputError: nodes that are not full and equal, too many devices, or no unit of use.
        OutOfTimeError: the time of ``watch`` came.
    """
    check_even(topology)
    devices = prod(topology.sizes)
    if devices > MAX_RANKS:
        given = f"{devices} devices of {topology.name[:60]}"
        raise InputError(given, f"a fabric has at most {MAX_RANKS} ranks", "name fewer nodes")
    places = _places(topology, devices)
    rates: dict[str, Fraction] = {}
    numbers: dict[str, int] = {}
    edges = []
    for source, target in timely(permutations(range(devices), 2), watch):
        if (loads := _loads(places, source, target)) is not None:
            rates.update(loads)
            named = [numbers.setdefault(name, len(numbers)) for name, _ in loads]
            edges.append(FabricEdge(source, target, tuple(sorted(named))))
    scale = unit_of(rates.values(), unit) if rates else Fraction(1)
    capacities = tuple([Capacity(name, rate / scale) for name, rate in rates.items()])
    edges.sort(key=edge_key)
    found = Fabric(topology.name, devices, capacities, tuple(edges), scale)
    found.check_connected()
    return found


_Load = tuple[str, Fraction]


@dataclass(frozen=True, slots=True)
class _Places:
    """By device its coordinates; by level, then device, the ports (out, in); none: no switch."""

    topology: Topology
    coordinates: tuple[tuple[int, ...], ...]
    ports: tuple[tuple[tuple[_Load, _Load], ...], ...]


def _places(topology: Topology, devices: int) -> _Places:
    switched = [level.link.kind is LinkKind.SWITCH for level in topology.levels]
    ports = [
        [
            (_port(topology, j, device, "out"), _port(topology, j, device, "in"))
            for device in range(devices if switch else 0)
        ]
        for j, switch in enumerate(switched)
    ]
    coordinates = tuple([topology.coordinates(device) for device in range(devices)])
    return _Places(topology, coordinates, tuple(map(tuple, ports)))


def _loads(places: _Places, source: int, target: int) -> list[_Load] | None:
    """The capacities that an edge loads, with their rates; None where there is no edge."""
    a, b = places.coordinates[source], places.coordinates[target]
    top = next(j for j, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
    level = places.topology.levels[top]
    loads: list[_Load] = []
    if level.link.kind is not LinkKind.SWITCH:
        if not _adjacent(places.topology, top, a[top], b[top]):
            return None
        ends = f"{_entity(a, top)}->{_entity(b, top)}"
        loads.append((f"{level.name} {ends}", _rate(level.link)))
    for ports in places.ports[top:]:
        if ports:
            loads += [ports[source][0], ports[target][1]]
    return loads


def _port(topology: Topology, level: int, device: int, way: str) -> _Load:
    """The port of a device's entity at a level by which it leaves or arrives."""
    link, under = topology.levels[level].link, topology.devices_under(level)
    entity, place = divmod(device, under)
    port, several = place * link.ports // under, max(1, link.ports // under)
    return f"{topology.levels[level].name} {entity} port {port} {way}", _rate(link) * several


def _rate(link: Link) -> Fraction:
    """Bytes per second of a port: the fastest protocol's."""
    return Fraction(max(piece.bandwidth_bytes_per_s for piece in link.pieces))


def _adjacent(topology: Topology, level: int, a: int, b: int) -> bool:
    """Whether a link of a level that is no switch joins two siblings."""
    link, size = topology.levels[level].link, topology.levels[level].size
    if link.kind is LinkKind.FULL_MESH:
        return True
    dims = link.torus or (size,)
    steps = [
        min((x - y) % n, (y - x) % n)
        for x, y, n in zip(_digits(a, dims), _digits(b, dims), dims, strict=True)
    ]
    return sum(steps) == 1


def _digits(number: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The digits of a number in mixed radix, most significant first."""
    return tuple(_reversed_digits(number, sizes))[::-1]


def _reversed_digits(number: int, sizes: tuple[int, ...]) -> Iterator[int]:
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        yield digit


def _entity(coordinates: tuple[int, ...], level: int) -> str:
    return ".".join(map(str, coordinates[: level + 1]))

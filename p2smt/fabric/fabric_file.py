"""Fabrics by name: presets, regular families, YAML files.

A file describes one node, and how nodes of its kind are joined (all keys are in
the models below):

    name: two-pairs
    ranks: 2
    links:
      - {ranks: [0, 1], bandwidth: 50 GB/s}     # both ways; one_way: true makes it one
    network:                                    # does not block
      ports:
        - {ranks: [0, 1], bandwidth: 100 Gb/s}  # a card that both share, each way
    nodes: 2
    symmetries:                                 # where they take ranks 0, 1, ..; each is checked
      - [1, 0]                                  # of a node: done in each; or of all ranks

Bandwidths are rates, or all of them whole numbers without a unit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations, product
from math import prod
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from p2smt.cluster.file import load_topology, preset_names
from p2smt.cluster.link import Link, LinkKind
from p2smt.cluster.topology import Topology, check_even
from p2smt.errors import InputError, did_you_mean
from p2smt.fabric.fabric import MAX_RANKS, Capacity, Fabric, FabricEdge, edge_key, unit_of
from p2smt.fabric.wiring import NetworkPort, Switch, Wire, WiredNodes, fabric_of
from p2smt.files.packaged import names_in, text_in
from p2smt.files.validation import StrictModel, validated
from p2smt.files.yaml_text import load_yaml, read_text
from p2smt.result import StopWatch, timely
from p2smt.units import exact_rate, parse_count

_PRESETS = "p2smt.topologies.fabrics"
_FILE_SUFFIXES = (".yaml", ".yml")
MAX_BYTES = 2**20


def fabric_names() -> tuple[str, ...]:
    """The fabrics that come with the package, sorted."""
    return names_in(_PRESETS)


def has_wiring(spec: str) -> bool:
    """Whether a fabric with links of its own is called so, as in ``dgx1:2``."""
    return spec.partition(":")[0] in fabric_names()


def fabric_text(name: str) -> str:
    """The YAML text of a fabric that comes with the package, with its sources."""
    return text_in(_PRESETS, name)


def preset_wiring(name: str) -> WiredNodes:
    """The wiring of a fabric that comes with the package: one node of it."""
    return parse_wiring(fabric_text(name), f"fabric {name}")


def parse_wiring(text: str, source: str) -> WiredNodes:
    """The wiring in a YAML text; ``source`` names it in messages.

    Raises:
        InputError: the text is not safe YAML, a key is unknown, missing or has a bad value.
    """
    data = load_yaml(text, source, MAX_BYTES)
    return build_wiring(validated(FabricModel, data, source), source)


def load_fabric(spec: str, unit: Fraction | None = None, watch: StopWatch | None = None) -> Fabric:
    """The fabric that ``spec`` names; ``unit``: bytes per second of one unit of bandwidth.

    ``spec`` is a family (``ring:8``), a preset (``dgx1``: one node; ``dgx1:2``), a file, or a
    level preset (``azure-ndv4:2``), which becomes a fabric by the rule of this module.

    Raises:
        InputError: no such fabric or file, or it is none.
        OutOfTimeError: the time of ``watch`` came.
    """
    regular = family(spec, watch)
    if regular is not None:
        return fabric_of(regular, unit, watch)
    name, colon, count = spec.rpartition(":")
    if not colon or os.path.isfile(spec):
        name, count = spec, ""
    nodes = parse_count(count, f"{spec[:100]!r}: nodes", MAX_RANKS) if count else None
    if name in fabric_names():
        return _of(preset_wiring(name), nodes, unit, watch)
    if name in preset_names():
        return replace(fabric_of_levels(load_topology(spec), unit, watch), name=spec)
    if name.endswith(_FILE_SUFFIXES):
        text = read_text(name, "fabric file", MAX_BYTES)
        return _of(parse_wiring(text, name[:100]), nodes, unit, watch)
    raise _unknown(name)


def _of(
    wiring: WiredNodes, nodes: int | None, unit: Fraction | None, watch: StopWatch | None
) -> Fabric:
    return fabric_of(wiring if nodes is None else replace(wiring, nodes=nodes), unit, watch)


def _unknown(name: str) -> InputError:
    known = (*fabric_names(), *preset_names(), *(form.partition(":")[0] for form in FAMILIES))
    rule = f"is no fabric: neither a preset nor {', '.join(FAMILIES)} nor a YAML file"
    return InputError(
        f"fabric {name[:60]!r}", rule, did_you_mean(name, known) or "see topology list"
    )


# Regular fabrics, named by their sizes: all links go both ways, of bandwidth 1 without a unit.


_Sizes = tuple[int, ...]


def ring(ranks: int, watch: StopWatch | None = None) -> WiredNodes:
    """Ranks in a circle, each linked to its two neighbours (2 ranks: one link)."""
    return _wired(f"ring:{ranks}", ranks, _neighbours((ranks,)), watch)


def torus(dims: _Sizes, watch: StopWatch | None = None) -> WiredNodes:
    """A grid of rings, the last dimension fastest; a dimension of 2 has one link, not two."""
    return _wired("torus:" + "x".join(map(str, dims)), prod(dims), _neighbours(dims), watch)


def cube(dims: int, watch: StopWatch | None = None) -> WiredNodes:
    """A hypercube: ranks whose numbers differ in one bit are linked."""
    return _wired(f"cube:{dims}", 2**dims, _neighbours((2,) * dims), watch)


def mesh(ranks: int, watch: StopWatch | None = None) -> WiredNodes:
    """All pairs are linked."""
    pairs = ((a, b) for a in range(ranks) for b in range(ranks) if a != b)
    return _wired(f"mesh:{ranks}", ranks, pairs, watch)


def _wired(
    name: str, ranks: int, pairs: Iterable[tuple[int, int]], watch: StopWatch | None
) -> WiredNodes:
    """``pairs`` ascending, none twice."""
    one = Fraction(1)
    wires = tuple([Wire(a, b, one) for a, b in timely(pairs, watch)])
    return WiredNodes(name, ranks, wires, measured=False)


def _neighbours(dims: _Sizes) -> list[tuple[int, int]]:
    """Ranks that differ by one, around, in one dimension: ascending, none twice."""
    return sorted(set(_steps(dims)))


def _steps(dims: _Sizes) -> Iterator[tuple[int, int]]:
    """A step forward and one back in every dimension, from every rank."""
    strides = [prod(dims[d + 1 :]) for d in range(len(dims))]
    for place in product(*map(range, dims)):
        at = sum(p * s for p, s in zip(place, strides, strict=True))
        for p, size, stride in zip(place, dims, strides, strict=True):
            for step in (1, -1):
                yield at, at + ((p + step) % size - p) * stride


_FAMILIES: Mapping[str, tuple[str, str, Callable[[_Sizes, StopWatch | None], WiredNodes]]] = {
    "ring": (r"\d+", "ring:N", lambda sizes, watch: ring(sizes[0], watch)),
    "torus": (r"\d+(?:x\d+){1,2}", "torus:AxB or torus:AxBxC", torus),
    "cube": (r"\d+", "cube:D", lambda sizes, watch: cube(sizes[0], watch)),
    "mesh": (r"\d+", "mesh:N", lambda sizes, watch: mesh(sizes[0], watch)),
}
FAMILIES = tuple(form for _, form, _ in _FAMILIES.values())
"""How the families are written."""


def family(text: str, watch: StopWatch | None = None) -> WiredNodes | None:
    """The regular fabric that a text such as ``torus:4x4`` names; None: it names no family.

    Raises:
        InputError: sizes that do not read, are below 2 (``cube``: 1), or make too many ranks.
        OutOfTimeError: the time of ``watch`` came.
    """
    name, _, rest = text.partition(":")
    if name not in _FAMILIES:
        return None
    pattern, form, make = _FAMILIES[name]
    if not re.fullmatch(pattern, rest, re.ASCII) or len(rest) > 20:
        raise InputError(f"fabric {text[:60]!r}", f"must read {form}", f"such as {_EXAMPLES[name]}")
    sizes = tuple(int(part) for part in rest.split("x"))
    least = 1 if name == "cube" else 2
    ranks = 2 ** min(sizes[0], 64) if name == "cube" else prod(sizes)
    if min(sizes) < least or ranks > MAX_RANKS:
        rule = f"must have sizes of {least} or more, and at most {MAX_RANKS} ranks"
        raise InputError(f"fabric {text[:60]!r}", rule, f"such as {_EXAMPLES[name]}")
    return make(sizes, watch)


_EXAMPLES = {"ring": "ring:8", "torus": "torus:4x4", "cube": "cube:3", "mesh": "mesh:4"}


# A level hierarchy as a fabric, by one rule.
# Every entity of a switch level has its uplink's ports, each a capacity outward and one inward; its
# devices share them in consecutive runs.  Two devices whose outermost different coordinate is at
# level j are joined by an edge if level j is a switch or a full mesh, or if it is a ring or torus
# and the coordinates are neighbours there.  The edge loads, outward and inward, the ports of both
# devices at every switch level from j inwards; where level j is no switch, the link between the two
# entities takes the place of its ports.  As in the cost model, data leaves a node through its
# device's port inside the node, too; fabrics that are wired (``wiring``) can say otherwise.


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
        if not adjacent(places.topology, top, a[top], b[top]):
            return None
        ends = f"{_entity(a, top)}->{_entity(b, top)}"
        loads.append((f"{level.name} {ends}", port_rate(level.link)))
    for ports in places.ports[top:]:
        if ports:
            loads += [ports[source][0], ports[target][1]]
    return loads


def _port(topology: Topology, level: int, device: int, way: str) -> _Load:
    """The port of a device's entity at a level by which it leaves or arrives."""
    link, under = topology.levels[level].link, topology.devices_under(level)
    entity, place = divmod(device, under)
    port, several = place * link.ports // under, max(1, link.ports // under)
    return f"{topology.levels[level].name} {entity} port {port} {way}", port_rate(link) * several


def port_rate(link: Link) -> Fraction:
    """Bytes per second of a port: the fastest protocol's."""
    return Fraction(max(piece.bandwidth_bytes_per_s for piece in link.pieces))


def adjacent(topology: Topology, level: int, a: int, b: int) -> bool:
    """Whether a link of a level that is no switch joins two siblings."""
    link, size = topology.levels[level].link, topology.levels[level].size
    if link.kind is LinkKind.FULL_MESH:
        return True
    dims = link.torus or (size,)
    steps = [
        min((x - y) % n, (y - x) % n)
        for x, y, n in zip(digits(a, dims), digits(b, dims), dims, strict=True)
    ]
    return sum(steps) == 1


def digits(number: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The digits of a number in mixed radix, most significant first."""
    return tuple(_reversed_digits(number, sizes))[::-1]


def _reversed_digits(number: int, sizes: tuple[int, ...]) -> Iterator[int]:
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        yield digit


def _entity(coordinates: tuple[int, ...], level: int) -> str:
    return ".".join(map(str, coordinates[: level + 1]))


# Fabric files: their keys as pydantic models, and the wiring that they describe.


def _checked_rate(value: object) -> object:
    if isinstance(value, str):
        exact_rate(value, "value")
    elif not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10**9:
        rule = "must be a rate such as 25 GB/s, or a whole number of units from 1"
        raise InputError(f"value {str(value)[:40]}", rule)
    return value


Rate = Annotated[str | int, BeforeValidator(_checked_rate)]
Rank = Annotated[int, Field(ge=0, lt=MAX_RANKS, strict=True)]
MAX_SYMMETRIES = 100
Ranks = Annotated[list[Rank], Field(min_length=1, max_length=MAX_RANKS)]


class WireModel(StrictModel):
    """A link between two ranks of a node, both ways, or one way with ``one_way``."""

    ranks: Annotated[list[Rank], Field(min_length=2, max_length=2)]
    bandwidth: Rate
    one_way: bool = False


class PortedSwitchModel(StrictModel):
    """A switch that does not block, with a port of ``bandwidth`` each way for each of ``ranks``."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    ranks: Ranks | Literal["all"] = "all"
    bandwidth: Rate


class PortModel(StrictModel):
    """A network card, of ``bandwidth`` each way, that ``ranks`` of a node share."""

    ranks: Ranks
    bandwidth: Rate


class NetworkModel(StrictModel):
    """What joins the nodes: a network that does not block, and the cards of a node."""

    ports: Annotated[list[PortModel], Field(min_length=1, max_length=MAX_RANKS)]


class FabricModel(StrictModel):
    """A fabric file: a node of ``ranks`` ranks, its links and switches, and what joins nodes."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    description: str = ""
    sources: Annotated[list[str], Field(default_factory=list)]
    ranks: Annotated[int, Field(ge=1, le=MAX_RANKS, strict=True)]
    links: Annotated[list[WireModel], Field(default_factory=list)]
    switches: Annotated[list[PortedSwitchModel], Field(default_factory=list)]
    network: NetworkModel | None = None
    nodes: Annotated[int, Field(ge=1, le=MAX_RANKS, strict=True)] = 1
    symmetries: Annotated[list[Ranks], Field(default_factory=list, max_length=MAX_SYMMETRIES)]


def build_wiring(model: FabricModel, source: str) -> WiredNodes:
    """The wiring that a file describes.

    Raises:
        InputError: bandwidths with a unit beside others without, or ranks that are not there.
    """
    ports = model.network.ports if model.network else []
    given = [one.bandwidth for one in model.links]
    given += [one.bandwidth for one in model.switches] + [one.bandwidth for one in ports]
    kinds = {isinstance(rate, str) for rate in given}
    if len(kinds) > 1:
        rule = "has bandwidths with a unit and others without"
        raise InputError(source, rule, "write all like 25 GB/s, or all as whole numbers")
    every = tuple(range(model.ranks))
    return WiredNodes(
        model.name,
        model.ranks,
        tuple(_wires(model)),
        tuple(
            Switch(s.name, every if s.ranks == "all" else tuple(s.ranks), _exact(s.bandwidth))
            for s in model.switches
        ),
        tuple(NetworkPort(tuple(port.ranks), _exact(port.bandwidth)) for port in ports),
        model.nodes,
        kinds != {False},
        model.description,
        tuple(model.sources),
        tuple(tuple(image) for image in model.symmetries),
    )


def _wires(model: FabricModel) -> Iterator[Wire]:
    for link in model.links:
        a, b = link.ranks
        yield Wire(a, b, _exact(link.bandwidth))
        if not link.one_way:
            yield Wire(b, a, _exact(link.bandwidth))


def _exact(rate: str | int) -> Fraction:
    return exact_rate(rate, "bandwidth") if isinstance(rate, str) else Fraction(rate)

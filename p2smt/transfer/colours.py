"""Classes and devices that nothing tells apart, as one row of the linear program each.

Colours are refined until they are equitable: devices of a colour have as many classes of each
colour as one another, and so on for classes, nodes, the parts of classes in nodes, and ports.
Averaging a solution over what is alike keeps its value, so that the reduced program has the
optimum of the whole one.  A hash stands for a multiset; were two equal by chance, the prices would
prove less, and nothing else would happen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2smt.parallelism.placement import IntArray
from p2smt.problems.transfer import ClassMember, ClassPart, ClassRow, TransferProblem
from p2smt.transfer.classes import TransferMoves
from p2smt.transfer.ports import IN, OUT, Port, PortMap

_Hash = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Incidence:
    """Who holds or needs which class, as arrays, one entry for each pair of a class and a device.

    ``device`` and ``part`` are numbers into ``devices`` and the parts (a class in a node).
    """

    moves: TransferMoves
    devices: Sequence[int]
    ports: Sequence[Port]
    node: IntArray
    row: IntArray
    device: IntArray
    needs: IntArray
    part: IntArray
    part_row: IntArray
    part_node: IntArray
    plugs: tuple[IntArray, IntArray, IntArray]
    """Pairs of a device and a port, and what the port is to it: out, in, give, take."""


def incidence_of(moves: TransferMoves, ports: PortMap) -> Incidence:
    """The arrays of these classes on these ports."""
    devices = sorted({d for one in moves.classes for d in (*one.holders, *one.needers)})
    place = {d: i for i, d in enumerate(devices)}
    node = np.array([ports.node(d) for d in devices])
    sizes = [(len(one.holders), len(one.needers)) for one in moves.classes]
    row = np.repeat(np.arange(len(sizes)), [a + b for a, b in sizes])
    device = np.array([place[d] for one in moves.classes for d in (*one.holders, *one.needers)])
    needs = np.concatenate([np.repeat([0, 1], size) for size in sizes])
    keys, part = np.unique(row * (int(node.max()) + 1) + node[device], return_inverse=True)
    named, plugs = _plugs(devices, ports)
    part_row, part_node = np.divmod(keys, int(node.max()) + 1)
    return Incidence(
        moves, devices, named, node, row, device, needs, part, part_row, part_node, plugs
    )


def _plugs(
    devices: Sequence[int], ports: PortMap
) -> tuple[list[Port], tuple[IntArray, IntArray, IntArray]]:
    found = [
        (i, port, 2 * inside + way)
        for i, d in enumerate(devices)
        for way in (OUT, IN)
        for inside, side in enumerate(ports.sides(d, way))
        for port in side
    ]
    named = sorted({port for _, port, _ in found})
    number = {port: i for i, port in enumerate(named)}
    arrays = (
        np.array([i for i, _, _ in found], dtype=np.int64),
        np.array([number[port] for _, port, _ in found], dtype=np.int64),
        np.array([kind for _, _, kind in found], dtype=np.int64),
    )
    return named, arrays


@dataclass(frozen=True)
class EquitableColours:
    """A colour for each class, part, device and port."""

    row: IntArray
    part: IntArray
    device: IntArray
    port: IntArray


def distinct(found: Incidence) -> EquitableColours:
    """Everything is told apart."""
    sizes = (len(found.moves.classes), len(found.part_row), len(found.devices), len(found.ports))
    return EquitableColours(*(np.arange(size) for size in sizes))


def equitable(found: Incidence, ports: PortMap) -> EquitableColours:
    """The coarsest colours that are equitable."""
    row = _numbered(np.array([one.elements for one in found.moves.classes]))
    port = _numbered(np.array([hash(ports.rate(one)) for one in found.ports]))
    node_of = _numbered(found.node)
    device = np.zeros(len(found.devices), dtype=np.int64)
    node = np.zeros(int(node_of.max()) + 1, dtype=np.int64)
    part = np.zeros(len(found.part_row), dtype=np.int64)
    part_node = node_of[_first_of(found)]
    plug_device, plug_port, kind = found.plugs
    count = -1
    while count != (count := sum(int(one.max()) + 1 for one in (row, part, device, port, node))):
        member = _sums(found.part, len(part), found.needs, device[found.device])
        part = _joined(part, row[found.part_row], node[part_node], member)
        row = _joined(row, _sums(found.part_row, len(row), part))
        roles = _sums(found.device, len(device), found.needs, part[found.part])
        plugged = _sums(plug_device, len(device), kind, port[plug_port])
        device = _joined(device, node[node_of], roles, plugged)
        node = _joined(node, _sums(node_of, len(node), device))
        port = _joined(port, _sums(plug_port, len(port), kind, device[plug_device]))
    return EquitableColours(row, part, device, port)


def _first_of(found: Incidence) -> IntArray:
    """Some device of each part."""
    _, first = np.unique(found.part, return_index=True)
    return np.asarray(found.device[first])


def _numbered(values: npt.NDArray[np.int64] | _Hash) -> IntArray:
    _, numbers = np.unique(values, return_inverse=True)
    return np.asarray(numbers, dtype=np.int64)


def _mixed(values: npt.NDArray[np.int64] | _Hash) -> _Hash:
    """Numbers scattered over 64 bits (splitmix64)."""
    found = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(found ^ (found >> np.uint64(31)), dtype=np.uint64)


def _hashed(*columns: npt.NDArray[np.int64] | _Hash) -> _Hash:
    """Rows of several numbers as one."""
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        found = _mixed(found * np.uint64(3) + _mixed(column))
    return found


def _sums(group: IntArray, count: int, *columns: IntArray) -> _Hash:
    """For each group a hash of the multiset of its rows."""
    found = np.zeros(count, dtype=np.uint64)
    np.add.at(found, group, _hashed(*columns))
    return found


def _joined(*columns: npt.NDArray[np.int64] | _Hash) -> IntArray:
    return _numbered(_hashed(*columns))


# The problem that colours make of the classes.


ReducedPlace = tuple[int, int, int]
"""Class, part and member of a problem, by number."""


@dataclass(frozen=True)
class Reduced:
    """The problem, and where each entry of the incidence stands in it."""

    problem: TransferProblem
    places: Mapping[tuple[int, int, int, int], ReducedPlace]
    found: Incidence
    colours: EquitableColours

    def place(self, entry: int) -> ReducedPlace:
        """The place of one entry of the incidence."""
        return self.places[_key(self.found, self.colours, entry)]


def _key(found: Incidence, colours: EquitableColours, entry: int) -> tuple[int, int, int, int]:
    return (
        int(colours.row[found.row[entry]]),
        int(colours.part[found.part[entry]]),
        int(colours.device[found.device[entry]]),
        int(found.needs[entry]),
    )


def reduced(
    found: Incidence, colours: EquitableColours, ports: PortMap, item_bytes: int
) -> Reduced:
    """The problem of these colours: one row for what has one colour."""
    rows: list[ClassRow] = []
    places: dict[tuple[int, int, int, int], ReducedPlace] = {}
    plugs = _plugs_by_device(found, colours)
    counts = Counter(colours.row.tolist())
    starts = np.searchsorted(found.row, np.arange(len(found.moves.classes) + 1))
    for colour, first in _firsts(colours.row):
        entries = range(int(starts[first]), int(starts[first + 1]))
        parts: list[ClassPart] = []
        for part_colour, count, members in _parts_of(found, colours, entries):
            for place, (device_colour, needs, _) in enumerate(members):
                key = (colour, part_colour, device_colour, needs)
                places[key] = (len(rows), len(parts), place)
            made = tuple(ClassMember(n, bool(needs), *plugs[d]) for d, needs, n in members)
            parts.append(ClassPart(count, made))
        payload = found.moves.classes[first].elements * item_bytes
        rows.append(ClassRow(counts[colour], payload, tuple(parts)))
    kinds = [
        (int(n), ports.rate(found.ports[first]))
        for (_, first), n in zip(_firsts(colours.port), np.bincount(colours.port), strict=True)
    ]
    return Reduced(TransferProblem(tuple(kinds), tuple(rows)), places, found, colours)


def _firsts(colours: IntArray) -> list[tuple[int, int]]:
    """Each colour with the first that has it."""
    names, first = np.unique(colours, return_index=True)
    return list(zip(names.tolist(), first.tolist(), strict=True))


def _parts_of(
    found: Incidence, colours: EquitableColours, entries: range
) -> list[tuple[int, int, list[tuple[int, int, int]]]]:
    """Of a class: colour and count of like parts, and (device colour, role, count) in one."""
    members: dict[int, Counter[tuple[int, int]]] = {}
    for entry in entries:
        one = (int(colours.device[found.device[entry]]), int(found.needs[entry]))
        members.setdefault(int(found.part[entry]), Counter())[one] += 1
    counts = Counter(int(colours.part[part]) for part in members)
    firsts = {int(colours.part[part]): part for part in reversed(members)}
    return [
        (colour, counts[colour], [(*one, n) for one, n in sorted(members[part].items())])
        for colour, part in sorted(firsts.items())
    ]


def _plugs_by_device(
    found: Incidence, colours: EquitableColours
) -> Mapping[int, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Port colours of each device colour: out, in, give, take."""
    every: dict[int, list[list[int]]] = {}
    firsts = dict(_firsts(colours.device))
    for device, port, kind in zip(*(one.tolist() for one in found.plugs), strict=True):
        colour = int(colours.device[device])
        if firsts[colour] == device:
            sides = every.setdefault(colour, [[], [], [], []])
            sides[kind].append(int(colours.port[port]))
    return {
        colour: (tuple(out), tuple(into), tuple(give), tuple(take))
        for colour, (out, into, give, take) in every.items()
    }

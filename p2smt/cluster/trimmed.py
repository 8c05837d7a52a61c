"""A part of every node, or of every rack: 6 of the 8 GPUs of each node, 64 of the 72 of each rack.

The first devices of each entity are used, in each the same number, so that the cluster stays
regular.  What the others would have carried idles: their ports (network cards) go with them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from p2smt.cluster.link import LinkKind
from p2smt.cluster.topology import Level, Topology
from p2smt.errors import InputError, did_you_mean
from p2smt.units import parse_count

_EXAMPLE = "write it like gpu=6"
_MOST_LISTED = 16
"""Devices of one machine; where a node of the topology has more it is a rack of several."""


def parse_uses(texts: Sequence[str]) -> dict[str, int]:
    """The number used of each level, from texts such as ``gpu=6``.

    Raises:
        InputError: a text that is no LEVEL=N, or a level named twice.
    """
    found: dict[str, int] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(f"--use {text[:60]!r}", "is not LEVEL=N", _EXAMPLE)
        if name in found:
            raise InputError(f"--use {name[:40]}", "is given twice", "give each level once")
        found[name] = parse_count(number, f"--use {text[:60]!r}: number")
    return found


def trimmed(topology: Topology, uses: Mapping[str, int]) -> Topology:
    """The topology of which each entity keeps its first so many children at the levels named.

    What was measured of whole nodes says nothing of their parts: a calibration's errors go.  The
    groups of a level are a level where they are named: 16 trays of each rack.

    Raises:
        InputError: a level that there is not or that has fewer, hosts that are named (they are
            chosen by their names), a ring or torus, or ports that the rest reaches unevenly.
    """
    topology = _with_groups(topology, uses)
    for name in uses:
        if name not in topology.names:
            groups = [level.groups[0] for level in topology.levels if level.groups is not None]
            known = [*topology.names, *groups]
            remedy = did_you_mean(name, known) or f"it has {', '.join(known)}"
            raise InputError(f"--use {name[:40]}", f"is no level of {topology.name}", remedy)
    sizes = [uses.get(level.name, level.size) for level in topology.levels]
    changed = [j for j, level in enumerate(topology.levels) if sizes[j] != level.size]
    for j in changed:
        _check(topology, j, sizes[j])
    levels = [_level(topology, j, sizes) for j in range(len(sizes))]
    inside = any(j > topology.node_level for j in changed)
    return replace(topology, levels=tuple(levels), errors=() if inside else topology.errors)


def _with_groups(topology: Topology, uses: Mapping[str, int]) -> Topology:
    """The topology with a level for each group that is named; the wires stay what they are."""
    levels = list[Level]()
    for level in topology.levels:
        if level.groups is None or level.groups[0] not in uses or level.size != level.full_size:
            levels.append(level)
            continue
        name, size = level.groups
        link = replace(level.link, ports=level.link.ports * size)
        levels.append(Level(name, level.size // size, link))
        levels.append(replace(level, size=size, groups=None))
    return replace(topology, levels=tuple(levels))


def _check(topology: Topology, j: int, size: int) -> None:
    level = topology.levels[j]
    given = f"--use {level.name}={size}"
    if size > level.size:
        raise InputError(given, f"level {level.name} has {level.size}", "use as many or fewer")
    if topology.hosts is not None and j <= topology.node_level:
        rule = "the topology names its hosts, so those to use have names"
        remedy = "give --hosts to solve, compare, plan, estimate or cost"
        raise InputError(given, rule, remedy)
    if level.link.kind in (LinkKind.RING, LinkKind.TORUS):
        rule = f"level {level.name} is a {level.link.kind.value}, of which no part is one"
        raise InputError(given, rule, "use all of it, or write a topology file of the part")


def _level(topology: Topology, j: int, sizes: Sequence[int]) -> Level:
    """The level with its new size and the ports that the devices left under it reach."""
    old = topology.levels[j]
    ports = _ports(topology, j, sizes)
    link = old.link if ports == old.link.ports else replace(old.link, ports=ports)
    changed = sizes[j] != old.size
    whole = old.full_size if changed and j > topology.node_level else old.whole
    return replace(
        old, size=sizes[j], link=link, whole=whole, groups=None if changed else old.groups
    )


def _ports(topology: Topology, j: int, sizes: Sequence[int]) -> int:
    """How many ports of an entity the devices left under it reach.

    Those of a node are cards of its devices; a switch outside keeps its uplink as it is.
    """
    level, ports = topology.levels[j], topology.levels[j].link.ports
    if ports == 1 or j < topology.node_level or list(topology.sizes[j + 1 :]) == [*sizes[j + 1 :]]:
        return ports
    reached = np.array(_kept(topology.sizes[j + 1 :], sizes[j + 1 :])) * ports
    under = topology.devices_under(j)
    if ports > under:
        return ports * len(reached) // under
    _, users = np.unique(reached // under, return_counts=True)
    if len(set(users.tolist())) > 1:
        rule = (
            f"{ports} ports of each {level.name} serve {under // ports} devices each, "
            f"and the {len(reached)} used would share them unevenly"
        )
        raise InputError(
            f"--use {_changes(topology, sizes)}", rule, f"keep a multiple of {under // ports}"
        )
    return len(users)


def _changes(topology: Topology, sizes: Sequence[int]) -> str:
    pairs = zip(topology.levels, sizes, strict=True)
    return ", ".join(f"{level.name}={size}" for level, size in pairs if size != level.size)


def _kept(sizes: Sequence[int], used: Sequence[int]) -> list[int]:
    """The numbers of the devices that are used under one entity."""
    strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    return [
        sum(digit * stride for digit, stride in zip(digits, strides, strict=True))
        for digits in product(*(range(count) for count in used))
    ]


# The part of each entity whose size is a power of two.


@dataclass(frozen=True, slots=True)
class EvenPart:
    """A topology of which each entity keeps a power of two of its children at one level.

    ``use``: as --use takes it.  ``odd``: the odd factor of the ``size`` that there is.
    """

    topology: Topology
    use: str
    size: int
    odd: int

    @property
    def words(self) -> str:
        """How much is taken: ``64 of each 72``; of racks most jobs take that."""
        usual = ", as most jobs on such racks take" if self.size > _MOST_LISTED else ""
        return f"{self.use.partition('=')[2]} of each {self.size}{usual}"


def even_part(topology: Topology) -> EvenPart | None:
    """The part by the innermost level with an odd factor; None: sizes inside the outermost level
    are powers of two, a part is used already, or none can be."""
    odds = [level for level in topology.levels[1:] if level.size & (level.size - 1)]
    if not odds or odds[-1].whole:
        return None
    name, size = odds[-1].name, odds[-1].size
    kept = 1 << (size.bit_length() - 1)
    try:
        found = trimmed(topology, {name: kept})
    except InputError:
        return None
    return EvenPart(found, f"{name}={kept}", size, size // (size & -size))


def used_devices(topology: Topology) -> tuple[int, ...] | None:
    """The numbers, on its node, of the devices of a node that are used; None: all of them."""
    inner = topology.levels[topology.node_level + 1 :]
    if all(level.full_size == level.size for level in inner):
        return None
    return tuple(_kept([level.full_size for level in inner], [level.size for level in inner]))


def use_notes(topology: Topology) -> tuple[str, ...]:
    """What to do on the machines so that the first devices of each are the ones used."""
    used = used_devices(topology)
    if used is None:
        return ()
    inner = topology.levels[topology.node_level + 1 :]
    total = math.prod(level.full_size for level in inner)
    owner = topology.names[topology.node_level] if topology.node_level >= 0 else "node"
    one = len(used) == 1
    text = f"{len(used)} of the {total} devices of each {owner} {'is' if one else 'are'} used"
    keeping = "which keeps its number" if one else "which keep their numbers"
    if total > _MOST_LISTED:
        return (f"{text}: the first of each level, {keeping}",)
    listed = ",".join(map(str, used))
    return (f"{text}, {keeping}: CUDA_VISIBLE_DEVICES={listed}",)

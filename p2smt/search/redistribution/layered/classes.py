"""Digits that the topology cannot tell apart.

Each level of a topology of switches is alike in all its siblings.  Exchanging two digits inside a
level, with no digit of another level between them, maps groups to groups of the same devices' kind
in the same order, so no collective's price changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from p2smt.arrays.frame import Frame
from p2smt.cluster.topology import LinkKind, Topology


def sibling_levels(topology: Topology, frame: Frame, order: int) -> tuple[int, ...] | None:
    """For each digit the level between whose siblings it counts; None: they are not aligned.

    Aligned: the devices are the topology's, in the order of a mixed-radix number over the digits,
    each inside one level.
    """
    devices = np.array(frame.orders[order]).reshape(frame.sizes)
    if topology.hosts is not None or sorted(frame.orders[order]) != list(range(topology.devices)):
        return None
    found = []
    for digit, size in enumerate(frame.sizes):
        lines = np.moveaxis(devices, digit, 0).reshape(size, -1)
        stride = int(lines[1, 0] - lines[0, 0])
        linear = bool((lines == lines[0] + stride * np.arange(size)[:, None]).all())
        level = _level(topology, stride, size) if linear and stride > 0 else None
        if level is None:
            return None
        found.append(level)
    return tuple(found)


def _level(topology: Topology, stride: int, size: int) -> int | None:
    """The level in which steps of ``stride`` devices, ``size`` of them, lead to siblings."""
    for level in range(len(topology.levels)):
        under = topology.devices_under(level)
        above = under * topology.levels[level].size
        if stride % under == 0 and above % (stride * size) == 0:
            return level
    return None


def digit_classes(
    topology: Topology, frame: Frame, levels: Sequence[tuple[int, ...] | None]
) -> tuple[int, ...]:
    """For each digit the number of its class; ``levels``: of each order of devices."""
    keys: list[tuple[object, ...]] = []
    run = 0
    for digit in range(len(frame.digits)):
        own = [None if one is None else one[digit] for one in levels]
        known = [level for level in own if level is not None]
        before = [None if one is None or not digit else one[digit - 1] for one in levels]
        run += own != before
        alike = len(known) == len(own) and all(_alike(topology, level) for level in known)
        keys.append((frame.sizes[digit], run) if alike else (digit,))
    names = list(dict.fromkeys(keys))
    return tuple(names.index(key) for key in keys)


def _alike(topology: Topology, level: int) -> bool:
    """Whether the siblings of a level can be exchanged: no positions matter in it or outside."""
    if topology.levels[level].link.kind is not LinkKind.SWITCH:
        return False
    outside = [(j, topology.levels[j].link) for j in range(level)]
    return all(
        link.kind is LinkKind.SWITCH and not 1 < link.ports < topology.devices_under(j)
        for j, link in outside
    )

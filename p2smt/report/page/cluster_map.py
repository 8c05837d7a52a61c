"""Where ranks lie: a table of how many nodes each group spans, and the data of the map.

The map is drawn by the page's script from the shape alone: sizes of levels and how many siblings
stand side by side.  Places are found from the inside out: at each level the grid whose outline is
nearest to that of a page, divisors of the number of siblings preferred.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from p2smt.cluster.file_model import build_topology
from p2smt.cluster.topology import Topology
from p2smt.parallelism.placement import IntArray, rank_groups
from p2smt.plans.file_model import AnyPlan, PlanModel
from p2smt.report.page.reading import Names
from p2smt.report.page.story import Drawn, Section, Table, clean
from p2smt.units import counted

INSIDE_RATIO, WHOLE_RATIO = 1.9, 3.6
"""Width over height of an entity, and of the whole cluster."""
CELL, GAP, NAME, HEAD = 10.0, 3.0, 6.0, 9.0
_UNEVEN = 0.7
"""How much worse a grid whose last row is not full may be, as a logarithm of the ratio."""


@dataclass(frozen=True, slots=True)
class View:
    """Axes by name and size, and the device of each rank, ranks being row-major over them."""

    axes: tuple[tuple[str, int], ...]
    ranks: tuple[int, ...]

    @property
    def tensor(self) -> IntArray:
        """The devices, an axis a dimension."""
        return np.array(self.ranks, dtype=np.int64).reshape([size for _, size in self.axes])


def cluster_section(topology: Topology, views: Sequence[View]) -> Section:
    """The section that shows who sits where."""
    own = views[0]
    sizes = " \u00d7 ".join(f"{level.size:,} {level.name}" for level in topology.levels)
    partly = "" if len(own.ranks) == topology.devices else ", not all of them with ranks"
    lead = f"{counted(len(own.ranks), 'rank')} on {sizes}{partly}."
    data = {
        "levels": [
            [level.name, level.size, columns]
            for level, columns in zip(topology.levels, columns_of(topology), strict=True)
        ],
        "node": topology.node_level,
        "views": [_view(one) for one in views],
        **_named(topology),
    }
    grid = Drawn("map", "The map of devices", data)
    first, key = _spans(topology, views), "One square is one device."
    return Section("Who sits where", lead, (grid,), first=first, key=key)


def whole_cluster(
    plan: AnyPlan, topology: Topology, names: Names
) -> tuple[Topology, tuple[int, ...]]:
    """The cluster of all hosts of a job, idle ones too, and the devices of ranks there."""
    hosts = plan.hosts if isinstance(plan, PlanModel) else None
    if hosts is None or not isinstance(plan, PlanModel) or plan.allocation is None:
        return topology, tuple(plan.ranks)
    real = build_topology(plan.allocation, "allocation")
    if real.hosts is None:
        return topology, tuple(plan.ranks)
    each = real.devices_under(real.node_level)
    slots = dict(zip(real.hosts.names, real.hosts.slots, strict=True))
    if not set(hosts) <= slots.keys():
        return topology, tuple(plan.ranks)
    pairs = zip(hosts, plan.ranks, strict=True)
    return names.of(real), tuple(slots[name] * each + rank % each for name, rank in pairs)


def _view(one: View) -> dict[str, Any]:
    return {"axes": [[clean(name), size] for name, size in one.axes], "ranks": runs(one.ranks)}


def _named(topology: Topology) -> dict[str, Any]:
    hosts = topology.hosts
    if hosts is None:
        return {"hosts": None, "switches": []}
    slots = dict(zip(hosts.slots, hosts.names, strict=True))
    nodes = math.prod(topology.sizes[: topology.node_level + 1])
    return {
        "hosts": [slots.get(at, "") for at in range(nodes)],
        "switches": [list(names) for names in hosts.switches],
    }


def runs(numbers: Sequence[int]) -> list[list[int]]:
    """Numbers as runs of equal steps: start, step, count."""
    found: list[list[int]] = []
    for number in numbers:
        last = found[-1] if found else None
        if last is None:
            found.append([number, 0, 1])
        elif last[2] == 1 or number == last[0] + last[1] * last[2]:
            if last[2] == 1:
                last[1] = number - last[0]
            last[2] += 1
        else:
            found.append([number, 0, 1])
    return found


def columns_of(topology: Topology) -> tuple[int, ...]:
    """How many siblings of each level stand side by side, the outermost level first."""
    width = height = CELL
    found: list[int] = []
    for level in range(len(topology.levels) - 1, -1, -1):
        count = topology.sizes[level]
        ratio = INSIDE_RATIO if level else WHOLE_RATIO
        shapes = {
            columns: (columns * width, -(-count // columns) * height)
            for columns in range(1, count + 1)
        }
        columns = min(shapes, key=lambda one: _off(shapes[one], ratio, count % one > 0))
        found.append(columns)
        width, height = (length + GAP for length in shapes[columns])
        if topology.hosts is not None and level - 1 <= topology.node_level:
            height += NAME if level - 1 == topology.node_level else HEAD
    return tuple(reversed(found))


def _off(shape: tuple[float, float], ratio: float, uneven: bool) -> float:
    """How far an outline is from a ratio, as a logarithm; more where the last row is not full."""
    return abs(math.log(shape[0] / shape[1] / ratio)) + _UNEVEN * uneven


def _spans(topology: Topology, views: Sequence[View]) -> Table:
    """An axis a row: devices of a group, and on how many entities of each level they lie."""
    outer = [level for level in range(len(topology.levels) - 1) if topology.sizes[level] > 1]
    rows = []
    for view in views:
        for number, (name, size) in enumerate(view.axes):
            if size == 1:
                continue
            groups = rank_groups(view.tensor, (number,))
            over = (_spanned(groups // topology.devices_under(level)) for level in outer)
            rows.append((clean(name), f"{size:,}", *over))
    kept = list(dict.fromkeys(rows))
    heads = (f">{topology.names[level]}: on how many" for level in outer)
    return Table(("axis", ">devices in a group", *heads), tuple(kept))


def _spanned(entities: IntArray) -> str:
    """How many different entities each group (a row) lies on: ``2``, or ``2 to 3``."""
    ordered = np.sort(entities, axis=1)
    counts = 1 + (np.diff(ordered, axis=1) != 0).sum(axis=1)
    least, most = int(counts.min()), int(counts.max())
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"

"""What a permute costs at least, by how many digits it moves at each level.

Let a permute move k digits that tell the entities of a level apart, and some further in.  Where it
puts one of them in the place of another, some entity holds nothing that it needs.  Else each of
them only changes places with digits further in: with a of them leaving and b joining, a + b >= k,
the devices of an entity have a part 1 / max(size^a, size^b) of what they need.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from p2smt.cluster.topology import LinkKind, Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.alpha_beta import step_model
from p2smt.cost.loads.level_use import LevelUse, message_footprint
from p2smt.cost.loads.routing import worst_link
from p2smt.cost.redistribution.permutes import quick_levels
from p2smt.cost.step_time import StepCostModel


def least_permute(
    topology: Topology, moved: Sequence[int] | None, size: int | None
) -> list[StepCostModel]:
    """Models of which the cheapest is no dearer than the permute.

    ``moved``: digits that change places, by level; None: not known.  ``size``: that of all digits;
    None: they differ.  Not for clusters with uplinks of their own.
    """
    if moved is None:
        levels = range(len(topology.levels))
        return [_model(topology, j, [1] * len(levels)) for j in levels]
    first = next(j for j, count in enumerate(moved) if count)
    crossing = [_crossing(topology, moved, j, size) for j in range(len(topology.levels))]
    meeting = range(first + 1) if quick_levels(topology) else (first,)
    return [_model(topology, j, crossing) for j in meeting]


def least_crossing(
    topology: Topology, level: int, crossing: int | None, size: int
) -> list[StepCostModel]:
    """Models of which the cheapest is no dearer than a permute over the border around ``level``.

    The crossing is that of :class:`p2smt.problems.redistribution.Border`; None stands for two
    digits of the border that change places.  The messages may meet further out.
    """
    devices, link = topology.devices_under(level), topology.levels[level].link
    messages = devices if crossing is None else devices - devices // size**crossing
    use = LevelUse(level, ports=(((1, float(-(-messages // link.ports))),),), least_inside=1)
    return [
        step_model(topology, message_footprint(topology, 2, [first], (use,)), RequestKind.SEND)
        for first in range(level + 1)
    ]


def narrow(topology: Topology, level: int) -> bool:
    """Whether the devices of an entity of a level share ports."""
    link = topology.levels[level].link
    return link.kind is LinkKind.SWITCH and link.ports < topology.devices_under(level)


def _crossing(topology: Topology, moved: Sequence[int], level: int, size: int | None) -> int:
    """Messages that enter an entity of a level at least."""
    outside, inside = sum(moved[: level + 1]), sum(moved[level + 1 :])
    devices = topology.devices_under(level)
    if not outside:
        return 0
    if size is None:
        return 1
    held = devices // size ** -(-outside // 2) if inside else 0
    return max(1, devices - held)


def _model(topology: Topology, first: int, crossing: Sequence[int]) -> StepCostModel:
    """Messages that meet at level ``first``, so many of them over each uplink further in."""
    uses = []
    for j in range(first, len(topology.levels)):
        if not crossing[j]:
            continue
        link, under = topology.levels[j].link, topology.devices_under(j)
        if link.kind is LinkKind.SWITCH:
            load = under / link.ports if link.ports >= under else -(-crossing[j] // link.ports)
            uses.append(LevelUse(j, ports=(((1, float(load)),),), least_inside=1))
        elif j == first:
            uses.append(LevelUse(j, path=_one(topology, j), least_inside=1, closed_inside=1))
    footprint = message_footprint(topology, 2, [first], tuple(uses))
    return step_model(topology, footprint, RequestKind.SEND)


def _one(topology: Topology, level: int) -> float:
    """The least that one message puts on a link between siblings."""
    size = topology.levels[level].size
    first, one = np.zeros(1, dtype=np.int64), np.ones(1)
    loads = (worst_link(topology.levels[level], first, first + to, one) for to in range(1, size))
    return min(loads, default=math.inf)

"""Proved lower bounds on the time that is left from a state to the target.

An entity (a device, a node, a rack) lacks what its devices need of the target and none of them
holds; of partial values it holds those of which it has every contribution.  Each element that it
lacks depends on data outside it, so that at least one element comes in for each, over its uplinks.
Where no switch reduces, an element of which m entities hold contributions and which k need takes
m + k - 2 messages between them: so many come in, over all uplinks together.
A step brings in no more than it is priced for: so the bound is never above the price of a step
plus the bound after it, and never above the price of any plan.

Entities whose devices are no box of digit values (:mod:`p2smt.cost.redistribution.entities`) are
left out; single devices never are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.arrays.ends import Ends
from p2smt.arrays.frame import Frame
from p2smt.arrays.state import ArrayState
from p2smt.cluster.topology import Topology
from p2smt.cost.loads.routing import FloatArray
from p2smt.cost.redistribution.entities import boxes_of
from p2smt.cost.redistribution.overlaps import Overlaps
from p2smt.cost.redistribution.rates import EntryRates, hardware_rates, priced_rates


class LinkBound:
    """Seconds that every plan from a state to ``target`` takes at least, by the links and calls.

    ``rates``: by default what no step's price beats.
    """

    def __init__(
        self,
        topology: Topology,
        frame: Frame,
        target: ArrayState,
        rates: EntryRates | None = None,
    ) -> None:
        self._frame = frame
        found = rates or priced_rates(topology)
        self._levels = []
        for level, least_s in enumerate(found.least_s):
            boxes = boxes_of(topology, frame, found.into[level], level)
            if len(boxes.rate):
                taking = found.into[level] if found.relayed else boxes.rate
                sums = np.inf if found.reducing[level] else float(taking.sum())
                here = _Level(Overlaps(frame, target, boxes), least_s, boxes.rate, sums)
                self._levels.append(here)

    def seconds(self, state: ArrayState) -> float:
        """The bound from one state: never above what any step costs plus the bound after it."""
        wire, least = 0.0, 0.0
        for level in self._levels:
            missing = level.overlaps.missing(state)
            if missing.any():
                wire = max(wire, float((missing / level.rate).max()), level.reduction_s(state))
                least = max(least, level.least_s)
        return wire * self._frame.element.item_bytes + least

    def seconds_many(self, states: Sequence[ArrayState]) -> FloatArray:
        """The bounds from several states."""
        wire, least = np.zeros(len(states)), np.zeros(len(states))
        for level in self._levels:
            missing = np.array([level.overlaps.missing(state) for state in states])
            wire = np.maximum(wire, (missing / level.rate).max(axis=1, initial=0.0))
            wire = np.maximum(wire, [level.reduction_s(state) for state in states])
            least = np.maximum(least, np.where(missing.any(axis=1), level.least_s, 0.0))
        return np.asarray(wire * self._frame.element.item_bytes + least)


@dataclass(frozen=True, slots=True)
class _Level:
    """The entities of a level: what they lack, the least seconds of a step, and their rates.

    ``sums`` is the rate into all together, infinite where switches may reduce.
    """

    overlaps: Overlaps
    least_s: float
    rate: FloatArray
    sums: float

    def reduction_s(self, state: ArrayState) -> float:
        """Seconds for a byte an element: all entities together, for their messages."""
        return self.overlaps.entering(state) / self.sums


def physical_bound_s(topology: Topology, ends: Ends) -> float:
    """Seconds that no way to move the data beats, by the links alone."""
    return LinkBound(topology, ends.frame, ends.target, hardware_rates(topology)).seconds(
        ends.source
    )

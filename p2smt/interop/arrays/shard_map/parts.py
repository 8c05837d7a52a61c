"""The steps of a plan that run on one order of devices.

A ``shard_map`` has one mesh.  Where the destination has the devices in another order, a permute
brings the blocks there; what follows runs on a mesh of that order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from p2smt.arrays.frame import Frame
from p2smt.arrays.state import ArrayState
from p2smt.plans.redistribution.plan import PlannedStep, RedistributionPlan


@dataclass(frozen=True, slots=True)
class PlanPart:
    """Steps on the mesh whose positions have the devices of ``start.order``.

    ``first``: the number of its first step in the plan, from 1.  ``moves_on``: its last step is
    the permute to the other order; the blocks that it leaves are those of ``end`` on the mesh of
    ``end.order``.
    """

    start: ArrayState
    steps: tuple[PlannedStep, ...]
    end: ArrayState
    first: int = 1

    @property
    def moves_on(self) -> bool:
        """Whether the next part has another order of devices."""
        return self.start.order != self.end.order


def parts_of(plan: RedistributionPlan) -> tuple[PlanPart, ...]:
    """The parts, at least one."""
    return tuple(_parts(plan))


def _parts(plan: RedistributionPlan) -> Iterator[PlanPart]:
    start, steps, first = plan.start, list[PlannedStep](), 1
    for number, planned in enumerate(plan.steps, start=1):
        steps.append(planned)
        after = planned.step.after
        if after.order != start.order:
            yield PlanPart(start, tuple(steps), after, first)
            start, steps, first = after, [], number + 1
    end = steps[-1].step.after if steps else start
    yield PlanPart(start, tuple(steps), end, first)


def position_pairs(frame: Frame, planned: PlannedStep) -> tuple[tuple[int, int], ...]:
    """The messages of a permute as (from, to) positions on the mesh before it."""
    order = frame.orders[planned.step.before.order]
    place = {device: position for position, device in enumerate(order)}
    pairs = ((place[source], place[device]) for device, source in enumerate(planned.sources))
    return tuple(sorted(pairs, key=lambda pair: pair[1]))

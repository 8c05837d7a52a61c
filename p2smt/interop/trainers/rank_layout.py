"""Whether the orders in which a trainer numbers its ranks give the groups of a placement.

Trainers number ranks row-major over axes, once for attention and once for experts, and those
numbers are launched on devices.  They agree with a placement if along every axis the ranks of each
group are the same; which of them comes first inside a group says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.interop.places import MOST_OF_MACHINE, PlacedPlan
from p2smt.parallelism.folded import FoldedAxes
from p2smt.parallelism.placement import IntArray, Placement, default_ranks
from p2smt.training.strategy import AXES, EXPERT_AXES, Strategy


@dataclass(frozen=True, slots=True, eq=False)
class RankLayout:
    """Devices by rank as launched, by the coordinates of attention, and by those of experts.

    ``launched``: shape (ranks,); ``attention`` and ``experts``: the sizes of ``AXES`` and of
    ``EXPERT_AXES``.
    """

    topology: Topology
    launched: IntArray
    attention: IntArray
    experts: IntArray

    @staticmethod
    def of(
        topology: Topology,
        strategy: Strategy,
        attention: Placement | None,
        experts: Placement | None = None,
    ) -> RankLayout:
        """Launched as attention numbers its ranks; None: devices in order."""
        ranks = [
            default_ranks(sizes) if where is None else where.rank_tensor()
            for where, sizes in ((attention, strategy.sizes), (experts, strategy.expert_sizes))
        ]
        return RankLayout(topology, ranks[0].ravel(), *ranks)

    @staticmethod
    def of_plan(plan: PlacedPlan, strategy: Strategy, experts: Placement | None) -> RankLayout:
        """As a plan's ranks are launched; its axes are those of ``AXES`` with several ranks."""
        names = [name for name in AXES if name in plan.problem.axis_names]
        order = [plan.problem.axis_names.index(name) for name in names]
        attention = plan.where.rank_tensor().transpose(order).reshape(strategy.sizes)
        launched = np.array([place.device for place in plan.places], dtype=np.int64)
        found = RankLayout.of(plan.problem.topology, strategy, None, experts)
        theirs = found.experts
        if experts is None and strategy.ep * strategy.etp == 1:  # no expert lies anywhere alone
            theirs = attention.reshape(strategy.expert_sizes)
        return replace(found, launched=launched, attention=attention, experts=theirs)

    @property
    def on_racks(self) -> bool:
        """Whether a node is more than a machine: its NVLink is that of several."""
        return self.topology.devices_under(self.topology.node_level) > MOST_OF_MACHINE

    def has_attention(self, order: FoldedAxes) -> bool:
        """Whether ranks row-major over the axes in this order have the groups of attention."""
        return self._agrees(self.attention, [AXES.index(name) for name in order.attention])

    def has_experts(self, order: FoldedAxes) -> bool:
        """Whether they have the groups of experts."""
        return self._agrees(self.experts, [EXPERT_AXES.index(name) for name in order.experts])

    def has(self, order: FoldedAxes) -> bool:
        """Whether they have both."""
        return self.has_attention(order) and self.has_experts(order)

    def as_attention(self) -> RankLayout:
        """The same, launched as attention numbers its ranks."""
        return replace(self, launched=self.attention.ravel())

    def _agrees(self, devices: IntArray, order: Sequence[int]) -> bool:
        numbers = np.empty(
            int(self.launched.max()) + 1, dtype=np.int64
        )  # uneven switches have gaps
        numbers[self.launched] = np.arange(devices.size)
        theirs = default_ranks([devices.shape[axis] for axis in order])
        return _same_groups(numbers[devices], theirs.transpose(np.argsort(order)))


def _same_groups(one: IntArray, other: IntArray) -> bool:
    """Whether two arrays of ranks have the same lines along every axis, in any order."""
    axes = range(one.ndim)
    return all(np.array_equal(_groups(one, axis), _groups(other, axis)) for axis in axes)


def _groups(ranks: IntArray, axis: int) -> IntArray:
    lines = np.sort(np.moveaxis(ranks, axis, -1).reshape(-1, ranks.shape[axis]), axis=1)
    return lines[np.argsort(lines[:, 0])]


def axis_text(names: Sequence[str]) -> str:
    """Axes in an order, the fastest first, as Megatron writes it: ``tp-cp-dp-pp``."""
    return "-".join(reversed(names))

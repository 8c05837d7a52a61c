"""What a run takes as it is launched: ranks in the launcher's order on devices in theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.iteration import predict, predict_on
from p2smt.training.on_hosts import listed_ranks
from p2smt.training.prediction import RunEstimate
from p2smt.training.present.launch_order import LaunchOrder
from p2smt.training.strategy import AXES, Strategy
from p2smt.training.validity import check


@dataclass(frozen=True, slots=True)
class Launched:
    """Where and how a training is launched: ``hosts`` in their order, of named ones (None: all
    devices in order), and how ranks are numbered; ``capacity_bytes`` a run may take of a device."""

    topology: Topology
    efficiency: Efficiency
    capacity_bytes: int
    hosts: tuple[str, ...] | None = None
    order: LaunchOrder = LaunchOrder()

    def price(self, run: TrainingRun) -> RunEstimate:
        """Time and memory of a run.

        Raises:
            InputError: it cannot run there, or no matrix expresses the order of its ranks.
        """
        self.order.check(run.strategy)
        return self._in_order(run) if self.hosts is None else self._on_hosts(run, self.hosts)

    def changed(self, run: TrainingRun, strategy: Strategy) -> RunEstimate:
        """The same of another strategy for the run.

        Raises:
            InputError: as of :meth:`price`.
        """
        return self.price(replace(run, strategy=strategy))

    def _on_hosts(self, run: TrainingRun, hosts: Sequence[str]) -> RunEstimate:
        lie = listed_ranks(self.topology, hosts, run.strategy, self.order.laid)
        said = predict_on(run, lie, self.efficiency)
        known = run, lie.topology, self.efficiency, None
        return RunEstimate(*known, said, self.capacity_bytes, on_hosts=lie)

    def _in_order(self, run: TrainingRun) -> RunEstimate:
        check(run.model, run.batch, run.strategy, self.topology.devices)
        where, theirs = self.order.placements(self.topology, run.strategy)
        if where is None and self.order.axes != AXES:
            rule = "lays ranks as no matrix of this cluster does"
            raise InputError(f"--launched {self.order.text}", rule, "leave it out")
        experts = theirs if run.model.experts is not None else None
        said = predict(run, self.topology, self.efficiency, where, experts)
        known = run, self.topology, self.efficiency, where
        return RunEstimate(*known, said, self.capacity_bytes, experts)

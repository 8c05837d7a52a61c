"""What a run takes as it is launched: ranks in the launcher's order on devices in theirs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from p2smt.cluster.allocation import allocated
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement, default_ranks
from p2smt.parallelism.rank_list import RankList
from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.iteration import call_prices, predict, predict_on, predict_with
from p2smt.training.on_hosts import HostRanks, listed_ranks
from p2smt.training.prediction import RunEstimate
from p2smt.training.present.launch_order import LaunchOrder
from p2smt.training.strategy import AXES, Strategy
from p2smt.training.validity import check


@dataclass(frozen=True, slots=True)
class Launched:
    """Where and how a training is launched.

    ``hosts``: in their order, of named ones; None: all devices in order.  ``order``: how ranks are
    numbered.  In its place may be told where the ranks lie: ``placement`` and ``experts`` by
    matrices, or ``places``, the host and the device there of each rank, pp outermost;
    ``expert_places`` of ranks over the axes of experts, where these are others.
    """

    topology: Topology
    efficiency: Efficiency
    capacity_bytes: int
    hosts: tuple[str, ...] | None = None
    order: LaunchOrder = field(default_factory=LaunchOrder)
    placement: Placement | None = None
    experts: Placement | None = None
    places: tuple[tuple[str, int], ...] = ()
    expert_places: tuple[tuple[str, int], ...] = ()

    @property
    def told(self) -> bool:
        """Whether it is told where the ranks lie."""
        return self.placement is not None or bool(self.places)

    def price(self, run: TrainingRun) -> RunEstimate:
        """Time and memory of a run.

        Raises:
            InputError: it cannot run there.
        """
        self.order.check(run.strategy)
        if self.hosts is not None:
            return self._on_hosts(run)
        check(run.model, run.batch, run.strategy, self.topology.devices)
        if self.placement is not None:
            return self._placed(run, self.placement, self.experts)
        where, experts = self.order.placements(self.topology, run.strategy)
        if run.model.experts is None:
            experts = None
        elif experts is None:
            where = None
        if where is None and self.order.axes != AXES:
            return self._in_order(run)
        return self._placed(run, where, experts)

    def changed(self, run: TrainingRun) -> RunEstimate:
        """The same of another strategy, whose ranks are numbered in the order.

        Raises:
            InputError: as of :meth:`price`.
        """
        return replace(self, placement=None, experts=None, places=(), expert_places=()).price(run)

    def _on_hosts(self, run: TrainingRun) -> RunEstimate:
        lie = self._host_ranks(run.strategy)
        said = predict_on(run, lie, self.efficiency)
        known = run, lie.topology, self.efficiency, None
        return RunEstimate(*known, said, self.capacity_bytes, on_hosts=lie)

    def _host_ranks(self, strategy: Strategy) -> HostRanks:
        hosts = self.hosts or ()
        if not self.places:
            return listed_ranks(self.topology, hosts, strategy, self.order.laid)
        cluster = allocated(self.topology, hosts)
        assert cluster.hosts is not None
        slots = dict(zip(cluster.hosts.names, cluster.hosts.slots, strict=True))
        each = cluster.devices_under(cluster.node_level)
        for host, local in self.places:
            if local >= each:
                rule = f"has a rank on device {local} of {host}, and a host has {each}"
                raise InputError("the answer", rule, "give the file as p2smt wrote it")
        devices, experts = (
            np.array([slots[host] * each + local for host, local in some], dtype=np.int64)
            for some in (self.places, self.expert_places)
        )
        theirs = experts.reshape(strategy.expert_sizes) if len(experts) else None
        return HostRanks.of(cluster, hosts, devices.reshape(strategy.sizes), theirs)

    def _placed(
        self, run: TrainingRun, where: Placement | None, experts: Placement | None
    ) -> RunEstimate:
        said = predict(run, self.topology, self.efficiency, where, experts)
        known = run, self.topology, self.efficiency, where
        return RunEstimate(*known, said, self.capacity_bytes, experts)

    def _in_order(self, run: TrainingRun) -> RunEstimate:
        """Ranks device by device, as no matrix has them."""
        strategy, topology = run.strategy, self.topology
        devices = self.order.laid(default_ranks((strategy.devices,)), strategy)
        ranks = RankList(tuple(devices.ravel().tolist()), strategy.sizes)
        call_s = call_prices(run, topology, self.efficiency, ranks, ranks)
        said = predict_with(run, topology.known_device, self.efficiency, call_s)
        known = run, topology, self.efficiency, None
        return RunEstimate(*known, said, self.capacity_bytes, ranks=ranks)

"""Ranks of a training on named hosts, device by device: what takes the place of a matrix there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.cluster.allocation import allocated
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray, Matrix
from p2smt.parallelism.rank_list import RankList, inside_matrix
from p2smt.plans.solution import rank_hosts
from p2smt.training.strategy import Strategy, strategy_text


@dataclass(frozen=True, slots=True)
class HostRanks:
    """The device of each rank on the hosts of a job.

    ``cluster``: that of all the hosts which the job got, ``listed`` as they were given;
    ``topology``: that of those which have ranks.  ``ranks`` are over the axes of a strategy, pp
    outermost; ``hosts`` the hosts in their order.  ``experts``: of a mixture, over its axes of
    experts; None: the same list, as frameworks number ranks.
    """

    cluster: Topology
    listed: tuple[str, ...]
    topology: Topology
    ranks: RankList
    hosts: tuple[str, ...]
    experts: RankList | None = None

    @staticmethod
    def of(
        cluster: Topology, listed: Sequence[str], devices: IntArray, experts: IntArray | None = None
    ) -> HostRanks:
        """Ranks on these devices of the cluster; shape: the sizes of the strategy's axes, and of
        those of experts."""
        each = cluster.devices_under(cluster.node_level)
        named = tuple(dict.fromkeys(rank_hosts(cluster, devices.ravel().tolist()) or ()))
        topology = allocated(cluster, named)
        place = _places(topology)
        slots = _places(cluster)
        moved = {slots[name]: place[name] for name in named}

        def lie(devices: IntArray) -> RankList:
            ranks = (moved[one // each] * each + one % each for one in devices.ravel().tolist())
            return RankList(tuple(ranks), tuple(devices.shape))

        beside = None if experts is None else lie(experts)
        return HostRanks(cluster, tuple(listed), topology, lie(devices), named, beside)

    @property
    def idle(self) -> tuple[str, ...]:
        """Hosts of the job that have no rank, as they were listed."""
        used = set(self.hosts)
        return tuple(name for name in self.listed if name not in used)

    @property
    def inside(self) -> Matrix | None:
        """The matrix inside each node; None: no matrix expresses how its ranks lie there."""
        return inside_matrix(self.ranks, self.topology)

    @property
    def experts_inside(self) -> Matrix | None:
        """The same of experts; None also where they have the list of attention."""
        return None if self.experts is None else inside_matrix(self.experts, self.topology)

    @property
    def expert_hosts(self) -> tuple[str, ...] | None:
        """The hosts in the order of the ranks of experts; None: they have the list of attention."""
        if self.experts is None:
            return None
        return tuple(dict.fromkeys(rank_hosts(self.topology, self.experts.ranks) or ()))

    def of_experts(self, strategy: Strategy) -> RankList:
        """The ranks of a strategy over its axes of experts."""
        return self.experts or RankList(self.ranks.ranks, strategy.expert_sizes)


def _places(topology: Topology) -> dict[str, int]:
    """The place of each host in the hull."""
    hosts = topology.hosts
    return {} if hosts is None else dict(zip(hosts.names, hosts.slots, strict=True))


def listed_ranks(
    topology: Topology,
    listed: Sequence[str],
    strategy: Strategy,
    laid: Callable[[IntArray, Strategy], IntArray] | None = None,
) -> HostRanks:
    """Ranks in order on the hosts in theirs, as a launcher starts them; the last may stay idle.

    ``laid``: the devices of launched ranks as an array over the axes; None: pp outermost.

    Raises:
        InputError: the topology lacks a host, or the strategy fills no whole number of them, or
            more than are listed.
    """
    cluster = allocated(topology, listed)
    each = cluster.devices_under(cluster.node_level)
    given = f"strategy {strategy_text(strategy)[:80]} of {strategy.devices} devices"
    if strategy.devices % each:
        rule = f"must fill whole hosts, which have {each} devices"
        raise InputError(given, rule, "change a degree")
    needed = strategy.devices // each
    if needed > len(listed):
        rule = f"needs {needed} hosts of {each} devices, and {len(listed)} are listed"
        raise InputError(given, rule, "change a degree, or name more hosts")
    place = _places(cluster)
    slots = np.array([place[name] for name in listed[:needed]], dtype=np.int64)
    devices = (slots[:, None] * each + np.arange(each)).ravel()
    over_axes = devices.reshape(strategy.sizes) if laid is None else laid(devices, strategy)
    return HostRanks.of(cluster, listed, over_axes)


def devices_on(topology: Topology, hosts: Sequence[str] | None) -> int:
    """Devices that a run may have: those of its hosts; None: all."""
    each = topology.devices_under(topology.node_level)
    return topology.devices if hosts is None else len(hosts) * each


def in_order(topology: Topology, listed: Sequence[str] | None, devices: int) -> bool:
    """Whether hosts need not be told apart: all of a regular cluster are listed in its order, and
    so many devices are all of it, so that a matrix says where ranks lie."""
    hosts = topology.hosts
    if hosts is None:
        return listed is None
    return (
        not topology.uneven
        and devices == topology.devices
        and (listed is None or tuple(listed) == hosts.names)
    )

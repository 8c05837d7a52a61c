"""Where each rank of a plan lies: its host, and its device there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.rank_list import RankMap
from p2smt.parallelism.request import Problem
from p2smt.plans.file_model import AnyPlan
from p2smt.plans.problem import plan_problem

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")


@dataclass(frozen=True, slots=True)
class RankPlace:
    """A rank, its host, the number of its device there, and that device's id in the topology.

    ``local_rank`` counts the devices of one host from 0: it says which of them the rank uses.
    """

    rank: int
    host: str
    local_rank: int
    device: int


@dataclass(frozen=True, slots=True)
class PlacedPlan:
    """A plan with the place of every rank.

    source: what messages call the plan.
    hosts: the hosts that have ranks, in the order of the topology; each has ``per_host`` ranks.
    places: by rank; ranks are row-major over the axes of ``problem``, the first most significant.
    """

    source: str
    plan: AnyPlan
    problem: Problem
    where: RankMap
    hosts: tuple[str, ...]
    per_host: int
    places: tuple[RankPlace, ...]


def placed(plan: AnyPlan, source: str, hosts: Sequence[str] | None = None) -> PlacedPlan:
    """The plan with the place of every rank.

    hosts: names for the nodes of a plan that has none, in the order of its topology; None: those
        of the plan, or else ``node0``, ``node1``, ..

    Raises:
        InputError: the plan is not well formed, its ranks are not those of its matrix, or the
            hosts are too few, too many, named twice, or named by the plan itself.
    """
    problem, where = plan_problem(plan, source)
    ranks = where.rank_tensor().ravel().tolist()
    if plan.ranks != ranks:
        rule = "ranks are not those of its matrix"
        raise InputError(source, rule, "verify says more; solve again")
    named = _hosts_by_slot(problem.topology, hosts, source)
    for host in named.values():
        if not _HOST.fullmatch(host):
            rule = "is no name of a host: letters, digits and _.:- after a letter or digit"
            raise InputError(f"host {host[:80]!r}", rule)
    each = problem.topology.devices_under(problem.topology.node_level)
    places = tuple(
        RankPlace(rank, named[device // each], device % each, device)
        for rank, device in enumerate(ranks)
    )
    return PlacedPlan(source, plan, problem, where, tuple(named.values()), each, places)


def launched(plan: PlacedPlan) -> tuple[int, ...]:
    """The number of each rank where ranks are started host by host, as torchrun does.

    Hosts come in the order of their first ranks, and the ranks of a host in that of its devices.  A
    tensor of these numbers over the axes increases along every axis if the ranks follow a matrix.
    """
    node = {host: k for k, host in enumerate(dict.fromkeys(one.host for one in plan.places))}
    return tuple(node[one.host] * plan.per_host + one.local_rank for one in plan.places)


def by_host(plan: PlacedPlan) -> PlacedPlan:
    """The plan with its ranks renumbered as :func:`launched` counts them."""
    numbers = launched(plan)
    places = [replace(one, rank=rank) for one, rank in zip(plan.places, numbers, strict=True)]
    return replace(plan, places=tuple(sorted(places, key=lambda one: one.rank)))


def _hosts_by_slot(topology: Topology, given: Sequence[str] | None, source: str) -> dict[int, str]:
    """The host at each place of the topology that has one."""
    if topology.hosts is not None:
        if given is not None:
            rule = f"names its hosts itself ({', '.join(topology.hosts.names[:3])}, ..)"
            raise InputError(source, rule, "drop --hosts")
        return dict(zip(topology.hosts.slots, topology.hosts.names, strict=True))
    nodes = topology.devices // topology.devices_under(topology.node_level)
    if given is None:
        return {node: f"node{node}" for node in range(nodes)}
    _check_given(given, nodes, source)
    return dict(enumerate(given))


def _check_given(given: Sequence[str], nodes: int, source: str) -> None:
    if len(given) != nodes:
        rule = f"{source} has {nodes} node{'s' if nodes > 1 else ''}"
        raise InputError(f"--hosts names {len(given)}", rule, "name one host for each")
    if twice := [name for name, count in Counter(given).items() if count > 1]:
        raise InputError(f"host {twice[0][:80]!r}", "is named twice", "name each host once")

"""Where each rank of a plan lies: its host, and its device there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.cluster.allocation import as_known
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.rank_list import RankMap
from p2smt.parallelism.request import Problem
from p2smt.plans.file_model import AnyPlan, PlanModel
from p2smt.plans.problem import plan_problem
from p2smt.plans.sides import plan_sides

MOST_OF_MACHINE = 16
"""Devices of one machine; a node that has more is several, as the racks of NVL72 are."""
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

    Of a plan of two matrices these are of attention, by which ranks lie; ``experts`` are the
    problem on the axes of experts and their matrix, where they send anything.
    """

    source: str
    plan: AnyPlan
    problem: Problem
    where: RankMap
    hosts: tuple[str, ...]
    per_host: int
    places: tuple[RankPlace, ...]
    experts: tuple[Problem, RankMap] | None = None

    @property
    def by_experts(self) -> PlacedPlan | None:
        """The same ranks over the axes of experts; None: the plan has one matrix."""
        if self.experts is None:
            return None
        problem, where = self.experts
        return replace(self, problem=problem, where=where, experts=None)


def placed(
    plan: AnyPlan, source: str, hosts: Sequence[str] | None = None, per_host: int | None = None
) -> PlacedPlan:
    """The plan with the place of every rank.

    hosts: names for the hosts of a plan that has none, in the order of its topology; of one that
        names its own the hosts of the job, which must be among them; None: those of the plan, or
        else ``node0``, ``node1``, ..
    per_host: devices of each host, where a node of the topology is several (a rack of NVL72 is 18
        hosts of 4); None: a node is a host.

    Raises:
        InputError: the plan is not well formed, its ranks are not those of its matrix, the hosts
            are too few, too many, named twice, or lack one that the plan names, or a node is no
            whole number of them.
    """
    (problem, where), *more = (plan_problem(one.plan, source) for one in plan_sides(plan, source))
    ranks = where.rank_tensor().ravel().tolist()
    if plan.ranks != ranks:
        rule = "ranks are not those of its matrix"
        raise InputError(source, rule, "verify says more; solve again")
    each = _per_host(problem.topology, per_host, source)
    named = _hosts_by_slot(problem.topology, hosts, each, source)
    places = tuple(
        RankPlace(rank, named[device // each], device % each, device)
        for rank, device in enumerate(ranks)
    )
    _check_hosts(plan, tuple(named.values()), places, source)
    experts = more[0] if more else None
    return PlacedPlan(source, plan, problem, where, tuple(named.values()), each, places, experts)


def _check_hosts(
    plan: AnyPlan, names: Sequence[str], places: Sequence[RankPlace], source: str
) -> None:
    """Whether the hosts have names that a command may hold, and are those that the plan says."""
    for host in names:
        if not _HOST.fullmatch(host):
            rule = "is no name of a host: letters, digits and _.:- after a letter or digit"
            raise InputError(f"host {host[:80]!r}", rule, "name it so: --hosts FILE")
    said = plan.hosts if isinstance(plan, PlanModel) else None
    if said is not None and said != [place.host for place in places]:
        rule = "hosts are not those of the devices of its ranks"
        raise InputError(source, rule, "verify says more; solve again")


def host_notes(plan: PlacedPlan) -> tuple[str, ...]:
    """What to give where a node that is taken as a host has more devices than machines have."""
    topology = plan.problem.topology
    if plan.per_host <= MOST_OF_MACHINE or topology.hosts is not None:
        return ()
    name = topology.names[topology.node_level] if topology.node_level >= 0 else "node"
    return (
        f"each {name} of {plan.per_host} devices is taken as one host: where it is several "
        "machines, give --devices-per-host (4 for trays of NVL72), and --hosts with their names",
    )


def launched(plan: PlacedPlan) -> tuple[int, ...]:
    """The number of each rank where ranks are started host by host, as torchrun does.

    Hosts come in the order of their first ranks, and the ranks of a host in that of its devices.  A
    tensor of these numbers over the axes increases along every axis if the ranks follow a matrix.
    """
    node = {host: k for k, host in enumerate(dict.fromkeys(one.host for one in plan.places))}
    return tuple(node[one.host] * plan.per_host + one.local_rank for one in plan.places)


def by_host(plan: PlacedPlan) -> PlacedPlan:
    """The plan with its ranks renumbered as :func:`launched` counts them."""
    numbered = zip(launched(plan), plan.places, strict=True)
    order = [place for _, place in sorted(numbered, key=lambda pair: pair[0])]
    places = tuple(
        RankPlace(rank, one.host, one.local_rank, one.device) for rank, one in enumerate(order)
    )
    return replace(plan, places=places)


def _per_host(topology: Topology, given: int | None, source: str) -> int:
    """Devices of each host."""
    node = topology.devices_under(topology.node_level)
    if given is None:
        return node
    if topology.hosts is not None and given != node:
        rule = f"{source} names its hosts, and each has {node}"
        raise InputError(f"{given} devices per host", rule, "leave their number out")
    if given < 1 or node % given:
        rule = f"{source} has nodes of {node}, which they must divide"
        divisors = [number for number in (1, 2, 4, 8, 16) if not node % number]
        remedy = f"give one of {', '.join(map(str, divisors))}" if divisors[1:] else "give 1"
        raise InputError(f"{given} devices per host", rule, remedy)
    return given


def _hosts_by_slot(
    topology: Topology, given: Sequence[str] | None, each: int, source: str
) -> dict[int, str]:
    """The host at each place of the topology that has one; ``each`` devices have a place."""
    if topology.hosts is not None:
        if given is not None:
            _check_job(given, topology.hosts.names, source)
        return dict(zip(topology.hosts.slots, topology.hosts.names, strict=True))
    count = topology.devices // each
    if given is None:
        return {host: f"node{host}" for host in range(count)}
    _check_given(given, count, source)
    return dict(enumerate(given))


def _check_job(given: Sequence[str], planned: Sequence[str], source: str) -> None:
    """Whether a job of these hosts has all that a plan has ranks on."""
    known = set(as_known(given, planned))
    if missing := [host for host in planned if host not in known]:
        more = f" and {len(missing) - 1} more hosts" if missing[1:] else ""
        rule = f"has ranks on {missing[0][:80]}{more}, which the job lacks"
        raise InputError(source, rule, "p2smt order PLAN --hosts .. orders the hosts of the job")


def _check_given(given: Sequence[str], count: int, source: str) -> None:
    if len(given) != count:
        rule = f"{source} has {count} host{'s' if count > 1 else ''}"
        raise InputError(f"--hosts names {len(given)}", rule, "name each of them")
    if twice := [name for name, times in Counter(given).items() if times > 1]:
        raise InputError(f"host {twice[0][:80]!r}", "is named twice", "name each host once")


# Which device a launcher's own local number stands for.
# A launcher numbers the ranks of a host by their order; a plan may give the first of them any
# device.
# Where the two differ, the program must be told.


TABLE = "ranks.csv"
"""How commands call the table of ``--to csv``."""


def local_orders(plan: PlacedPlan) -> dict[str, tuple[int, ...]]:
    """For each host the local ranks (devices) of its ranks, the ranks ascending."""
    found: dict[str, list[int]] = {host: [] for host in plan.hosts}
    for place in plan.places:
        found[place.host].append(place.local_rank)
    return {host: tuple(devices) for host, devices in found.items()}


def telling(order: Sequence[int], local: str) -> str:
    """A command that runs what follows it with LOCAL_RANK set to the device of the plan.

    Empty where the launcher's own number, which the variable ``local`` has, is that of the device;
    ``order``: the devices by that number.
    """
    if tuple(order) == tuple(range(len(order))):
        return ""
    return _setting(f"order=({' '.join(map(str, order))}); export LOCAL_RANK=${{order[{local}]}}")


def local_notes(plan: PlacedPlan, local: str, rank: str, start: str) -> tuple[str, ...]:
    """What to do where a launcher's own number is not that of the device; else nothing.

    ``local`` and ``rank`` are the variables in which the launcher tells a process its number on
    the host and among all; ``start`` is how the program is started, with ``{}`` where the command
    stands that tells it LOCAL_RANK.
    """
    orders, table = set(local_orders(plan).values()), ""
    if len(orders) == 1:
        told = telling(next(iter(orders)), local)
    else:
        told = _setting(f"export LOCAL_RANK=$(sed -n $(({rank} + 2))p {TABLE} | cut -d, -f3)")
        table = f", with {TABLE} from p2smt export PLAN --to csv"
    if not told:
        return ()
    lead = f"{local} is not the plan's local rank (which device a rank uses)"
    return (f"{lead}; to have it in LOCAL_RANK{table}: {start.format(told)}",)


def _setting(how: str) -> str:
    return f"bash -c '{how}; exec \"$@\"' -"

"""The communicators of a plan: the groups of its collectives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Operation
from p2smt.errors import InputError
from p2smt.interop.tuners.choices import Comm
from p2smt.interop.tuners.regions import CommMember
from p2smt.plans.file_model import AlgorithmsModel, AnyPlan, PlanModel
from p2smt.plans.problem import plan_problem
from p2smt.plans.sides import attention_of


def plan_members(
    plan: AnyPlan, source: str, to: str, named: Mapping[str, Operation]
) -> tuple[Topology, tuple[CommMember, ...]]:
    """The topology of a plan, and each of its groups that lies otherwise than those before it.

    named: the collectives that files of ``to`` have, by their names there.

    Raises:
        InputError: it has none of these, or a group has more ranks on one node than on another.
    """
    topology = plan_cluster(plan, source)
    under = topology.devices_under(topology.node_level)
    found: dict[tuple[int, ...], CommMember] = {}
    for request in plan.requests:
        for step in request.steps:
            for group in step.groups:
                first = min(group, default=0) // under * under
                if len(group) > 1:
                    place = tuple(device - first for device in group)
                    found.setdefault(place, CommMember(comm_of(group, under, source), tuple(group)))
    if not found:
        raise InputError(source, "has no groups of several ranks", "export from --topology")
    steps = {step.instruction.partition(" ")[0] for one in plan.requests for step in one.steps}
    if steps.isdisjoint(operation.value for operation in named.values()):
        rule = f"has only {', '.join(sorted(steps))}, which files of {to} do not have"
        raise InputError(source, rule, f"they have {', '.join(named)}")
    return topology, tuple(found.values())


def plan_cluster(plan: AnyPlan, source: str) -> Topology:
    """The topology of a plan, with the library as it chooses by itself.

    What ``--algorithm`` left it when the plan was made is the plan's wish, and no choice of it.
    """
    topology = plan_problem(attention_of(plan, source), source)[0].topology
    asked = isinstance(plan, PlanModel) and any(
        isinstance(one, AlgorithmsModel) for one in plan.restrictions
    )
    return replace(topology, restricted=False) if asked else topology


def comm_of(group: list[int], under: int, source: str) -> Comm:
    """The shape of a group on nodes of so many devices.

    Raises:
        InputError: it has more ranks on one node than on another.
    """
    counts = set(Counter(device // under for device in group).values())
    if len(counts) > 1:
        rule = f"has {min(counts)} ranks on one node and {max(counts)} on another"
        raise InputError(f"{source}: a group", rule, "tuner files know equal nodes alone")
    each = counts.pop()
    return Comm(len(group) // each, each)

"""Lowers a request of a plan: each reduction group as a communicator of its own.

Rank i of a group is its i-th device (on named hosts its i-th rank's), unless the members of a
reduce-scatter end with shards in another order: then rank i is the device that ends with shard i.
So the schedule has the collective's own name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from p2smt.collectives.names import DIRECT, Collective, RequestKind
from p2smt.errors import InputError
from p2smt.parallelism.rank_list import RankList
from p2smt.plans.problem import check_send, plan_problem
from p2smt.plans.rank_answer import rank_step_groups
from p2smt.programs.program import parse_instruction
from p2smt.schedules.lower.assemble import (
    DEFAULT,
    Lowering,
    ends_of,
    lower_exchange,
    schedule_of_steps,
)
from p2smt.schedules.lower.ports import rings_of
from p2smt.schedules.lower.program import check_most_ranks
from p2smt.schedules.lower.rows import group_steps
from p2smt.schedules.lower.together import GroupSchedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from p2smt.cluster.topology import Topology
    from p2smt.parallelism.placement import IntArray
    from p2smt.parallelism.rank_list import RankMap
    from p2smt.parallelism.request import Problem, Request
    from p2smt.plans.file_model import AnyPlan, RequestModel
    from p2smt.schedules.lower.rows import RankGroup
    from p2smt.schedules.model import Schedule


def lower_groups(
    plan: AnyPlan, request: int = 0, how: Lowering = DEFAULT, source: str = "plan"
) -> list[GroupSchedule]:
    """The schedule of every reduction group of a plan's request (by its index).

    how: its rings are those for the ports that a group reaches; in as many pieces as the plan
        says, if it does not say itself.  An all-to-all or a send has one step, whose messages go
        directly and out of place.

    Raises:
        InputError: no such request, groups or instructions that do not fit, or too large a
            schedule.
    """
    model = request_of(plan, request, source)
    problem, where = plan_problem(plan, source)
    groups = _groups(problem, problem.requests[request], where, source)
    check_most_ranks(groups.shape[1])
    if groups.shape[1] == 1:
        given = f"{source}: request {request + 1}"
        raise InputError(given, "its groups are single devices, which have nothing to exchange")
    if how.pieces is None and len(model.steps) > 1:
        how = replace(how, pieces=model.chunks)
    members = [tuple(group) for group in groups.tolist()]
    known: dict[object, Schedule] = {}
    return [
        _group(problem.topology, model, devices, steps, how, known)
        for devices, steps in zip(members, _steps(model, members), strict=True)
    ]


def _groups(problem: Problem, request: Request, where: RankMap, source: str) -> IntArray:
    """The reduction groups, in the order of what runs them: devices, or on named hosts ranks."""
    if isinstance(where, RankList) and problem.topology.hosts is not None:
        return rank_step_groups(problem, request, where)
    check_send(problem, request, where, source)
    return where.groups(problem.axis_indices(request))


def request_of(plan: AnyPlan, request: int, source: str) -> RequestModel:
    """A plan's request by its index; InputError, which counts from 1, if there is none."""
    if not 0 <= request < len(plan.requests):
        last = len(plan.requests)
        known = "there is one request" if last == 1 else f"the requests are 1 to {last}"
        raise InputError(f"{source}: request {request + 1}", known, "name one of them")
    return plan.requests[request]


GroupSteps = list[list[tuple[int, ...]]]
"""For each step, its groups."""


def _steps(model: RequestModel, members: Sequence[RankGroup]) -> list[GroupSteps]:
    """Each reduction group's part of every step, in devices, in the order of the group.

    Raises:
        InputError: a step has a group that is not inside one reduction group.
    """
    owner = {device: number for number, group in enumerate(members) for device in group}
    place = {device: at for group in members for at, device in enumerate(group)}
    found: list[GroupSteps] = [[[] for _ in model.steps] for _ in members]
    for number, step in enumerate(model.steps):
        for group in step.groups:
            owners = {owner.get(device) for device in group}
            first = min((o for o in owners if o is not None), default=None)
            if first is None or len(owners) > 1:
                rule = "is not a group inside one reduction group"
                raise InputError(f"step {number + 1}: {group[:8]}", rule, "verify the plan")
            found[first][number].append(tuple(sorted(group, key=place.__getitem__)))
    return found


def _group(
    topology: Topology,
    model: RequestModel,
    members: RankGroup,
    steps: GroupSteps,
    how: Lowering,
    known: dict[object, Schedule],
) -> GroupSchedule:
    """A group's schedule; ``known``: those made so far, for groups of the same shape."""
    devices = _in_order_of_shards(model, members, steps)
    rank = {device: number for number, device in enumerate(devices)}
    local = [[tuple(rank[device] for device in group) for group in groups] for groups in steps]
    rings = {
        tuple(rank[device] for device in group): rings_of(topology, group)
        for groups in steps
        for group in groups
    }
    shape = str((local, rings))
    if shape not in known:
        found = replace(how, rings=lambda group: rings[tuple(group)])
        known[shape] = _schedule(model, local, len(devices), found)
    return GroupSchedule(devices, known[shape])


def _schedule(model: RequestModel, steps: GroupSteps, size: int, how: Lowering) -> Schedule:
    """The schedule of a group of so many ranks."""
    name = f"{model.kind.value} {'+'.join(model.axes)}"
    everyone = [tuple(range(size))]
    if not model.kind.has_programs:
        return lower_exchange(name, model.kind, everyone, steps)
    return schedule_of_steps(name, model.kind, everyone, _named(model, steps), how, range(size))


def _named(model: RequestModel, steps: GroupSteps) -> list[tuple[Collective, list[RankGroup]]]:
    """Each step's collective: that of its instruction, or the request's, if it has no program."""
    collectives = [
        parse_instruction(step.instruction).collective if model.program else DIRECT[model.kind]
        for step in model.steps
    ]
    return list(zip(collectives, steps, strict=True))


def _in_order_of_shards(
    model: RequestModel, members: RankGroup, steps: GroupSteps
) -> tuple[int, ...]:
    """The devices by the shard that they end with; otherwise as they are."""
    if model.kind is not RequestKind.REDUCE_SCATTER:
        return members
    place = {device: number for number, device in enumerate(members)}
    local = [[tuple(place[device] for device in group) for group in groups] for groups in steps]
    everyone = [tuple(range(len(members)))]
    shards = _shards(model, len(members)) or ends_of(
        everyone, group_steps(model.kind, everyone, _named(model, local))
    )
    owner = dict(zip(shards or everyone[0], members, strict=True))
    return tuple(owner[shard] for shard in everyone[0])


def _shards(model: RequestModel, size: int) -> list[int] | None:
    """The rows that the members are claimed to end with."""
    if model.shards is not None and sorted(model.shards) != list(range(size)):
        raise InputError(
            f"shards {model.shards[:8]}", f"are not the rows 0 to {size - 1}, each once"
        )
    return model.shards

"""Lowers a request of a plan: each reduction group as a communicator of its own.

Rank i of a group is its i-th device (on named hosts its i-th rank's), unless the members of a
reduce-scatter end with shards in another order: then rank i is the device that ends with shard i.
So the schedule has the collective's own name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from p2smt.cluster.topology import LinkKind
from p2smt.collectives.contract import Contract, Contribution, Goal
from p2smt.collectives.demand import plain_kind
from p2smt.collectives.names import CUSTOM, DIRECT, Collective, RequestKind
from p2smt.errors import InputError
from p2smt.parallelism.rank_list import RankList
from p2smt.plans.problem import check_send, plan_problem
from p2smt.plans.rank_scene import rank_step_groups
from p2smt.plans.sides import side_with
from p2smt.programs.program import parse_instruction
from p2smt.schedules.lower.assemble import (
    DEFAULT,
    Lowering,
    check_most_ranks,
    ends_of,
    lower_exchange,
    schedule_of_steps,
)
from p2smt.schedules.lower.row_moves import group_steps
from p2smt.schedules.model import Connection, Schedule, Sizes, Span, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from p2smt.cluster.topology import Topology
    from p2smt.parallelism.placement import IntArray
    from p2smt.parallelism.rank_list import RankMap
    from p2smt.parallelism.request import Problem, Request
    from p2smt.plans.file_model import AnyPlan, RequestModel
    from p2smt.schedules.lower.row_moves import RankGroup
    from p2smt.schedules.model import Schedule


def lower_groups(
    plan: AnyPlan, request: int = 0, how: Lowering = DEFAULT, source: str = "plan"
) -> list[GroupSchedule]:
    """The schedule of every reduction group of a plan's request (by its index).

    how: its rings are those for the ports that a group reaches; in as many pieces as the plan
        says, if it does not say itself.  A single all-to-all or a send has one step, whose messages
        go directly and out of place.

    Raises:
        InputError: no such request, groups or instructions that do not fit, or too large a
            schedule.
    """
    model = request_of(plan, request, source)
    side, at = side_with(plan, request, source)
    problem, where = plan_problem(side, source)
    groups = _groups(problem, problem.requests[at], where, source)
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
    kind = plain_kind(model.kind, "is no schedule: its routing says what goes where")
    everyone = [tuple(range(size))]
    if kind.has_exchanges and model.program is not None:
        rule = "is several all-to-alls, one after the other, which are not lowered to schedules"
        raise InputError(name, rule, "solve with --length 1 for a single all-to-all")
    if not kind.has_programs:
        return lower_exchange(name, kind, everyone, steps)
    return schedule_of_steps(name, kind, everyone, _named(model, steps), how, range(size))


def _named(model: RequestModel, steps: GroupSteps) -> list[tuple[Collective, list[RankGroup]]]:
    """Each step's collective: that of its instruction, or the request's, if it has no program."""
    collectives = [
        parse_instruction(step.instruction).reduction
        if model.program
        else DIRECT[plain_kind(model.kind)]
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


# What becomes of a plan's request when it is exported to files.


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file to be written, and the schedule in it: of one group, counted from 1, or of all.

    steps: how many the file has, as they are read back.
    """

    path: str
    text: str
    steps: int
    group: int | None
    content: GroupSchedule


@dataclass(frozen=True, slots=True)
class PlanExport:
    """What is exported of a request.

    groups: how many it has.
    means: the algorithm and the protocol of all steps; ``plan_means``: those of the plan's steps.
    plan_s, exported_s: one execution by all groups, as the plan says and as predicted for the
        schedules; None: they are too large to be priced.
    unstated: levels whose bandwidth nobody stated; where there are any, both times are None.
    by_rank: the devices of groups are told as the ranks of a run, as the plan's hosts have them.
    """

    files: tuple[ExportedFile, ...]
    groups: int
    means: str
    plan_means: tuple[str, ...]
    plan_s: float | None
    exported_s: float | None
    by_rank: bool = False
    unstated: tuple[str, ...] = ()


# What the ports of a cluster mean for schedules: rings for each, and who shares no memory.
# Between entities a message leaves by the port of the device that sends it (docs/schedule-cost.md).
# So as many rings go round a group as it reaches ports: round the same entities, but each enters
# and leaves them at other devices.


HOSTS = ("node", "server", "host", "machine")
"""Names of levels whose entities are machines, on which devices reach each other's memory."""


def machine_of(topology: Topology, device: int) -> int:
    """The machine that a device is in.

    Where no level is named so, the devices of an entity of the innermost level but one.
    """
    levels = topology.levels
    named = [j for j, level in enumerate(levels) if level.name in HOSTS]
    if not named and len(levels) == 1:
        return 0
    return device // topology.devices_under(named[-1] if named else len(levels) - 2)


def rings_of(topology: Topology, devices: Sequence[int]) -> list[list[int]]:
    """The orders in which rings go round devices, entity by entity, by their places in the list."""
    ascending = sorted(devices)
    count = _most_ports(topology, ascending)
    places = {device: place for place, device in enumerate(devices)}
    return [
        [places[device] for device in _turned(topology, 0, ascending, ring, count)]
        for ring in range(count)
    ]


def _most_ports(topology: Topology, devices: Sequence[int]) -> int:
    """The most ports of one entity that the devices under it reach, if they need any of them."""
    most = 1
    for j, level in enumerate(topology.levels):
        under = topology.devices_under(j)
        entities = [list(part) for part in _parts(devices, under)]
        if level.link.kind is LinkKind.SWITCH and len(entities) > 1:
            ports = level.link.ports
            reached = ({device % under * ports // under for device in part} for part in entities)
            most = max(most, *map(len, reached))
    return most


def _parts(devices: Sequence[int], under: int) -> Iterator[Iterator[int]]:
    """Ascending devices by the entity they are in."""
    return (part for _, part in groupby(devices, key=lambda device: device // under))


def _turned(
    topology: Topology, level: int, devices: Sequence[int], ring: int, count: int
) -> list[int]:
    """The devices entity by entity, the entities in an order that begins the further on the
    higher the ring's number."""
    if level == len(topology.levels):
        return list(devices)
    parts = [list(part) for part in _parts(devices, topology.devices_under(level))]
    first = ring * len(parts) // count
    return [
        device
        for part in (*parts[first:], *parts[:first])
        for device in _turned(topology, level + 1, part, ring, count)
    ]


# Schedules of several groups as one schedule of a whole cluster, in which they run together.


_NONE = Sizes(0, 0, 0)


@dataclass(frozen=True, slots=True)
class GroupSchedule:
    """The schedule of one group of devices; ``devices[r]`` is the device of its rank r."""

    devices: tuple[int, ...]
    schedule: Schedule


def together(groups: Sequence[GroupSchedule], devices: int) -> Schedule:
    """The schedules of disjoint groups; rank r is device r, of so many.

    All run in place, or none does.
    """
    first = groups[0].schedule
    sizes, shift = [_NONE] * devices, [0] * devices
    starts: list[tuple[Contribution | None, ...]] = [()] * devices
    goals: list[Goal] = []
    for group in groups:
        wanted = group.schedule.contract
        goals += _goals(group)
        for rank, device in enumerate(group.devices):
            sizes[device] = group.schedule.sizes[rank]
            starts[device] = tuple(
                None if start is None else start._replace(rank=group.devices[start.rank])
                for start in wanted.starts[rank]
            )
            shift[device] = wanted.shift[rank] if wanted.shift else 0
    in_place = first.contract.in_place
    places = tuple(shift) if in_place else ()
    goal = Contract(CUSTOM, tuple(starts), tuple(sorted(goals)), in_place, places)
    steps = tuple(step for n, group in enumerate(groups) for step in _steps_on_devices(n, group))
    return replace(first, contract=goal, sizes=tuple(sizes), steps=steps)


def _goals(group: GroupSchedule) -> Iterator[Goal]:
    """The goals of a group on its devices; many have the same parts."""
    moved: dict[int, tuple[Contribution, ...]] = {}
    for goal in group.schedule.contract.goals:
        if id(goal.parts) not in moved:
            moved[id(goal.parts)] = _moved(goal.parts, group)
        yield Goal(group.devices[goal.rank], goal.chunk, moved[id(goal.parts)])


def _moved(parts: Iterable[Contribution], group: GroupSchedule) -> tuple[Contribution, ...]:
    return tuple(part._replace(rank=group.devices[part.rank]) for part in parts)


def _steps_on_devices(number: int, group: GroupSchedule) -> Iterator[Step]:
    """The steps of a group on its devices; its counters carry its number."""
    for step in group.schedule.steps:
        yield replace(
            step,
            rank=group.devices[step.rank],
            reads=_spans(step.reads, group),
            writes=_spans(step.writes, group),
            receive=_connection(step.receive, group),
            send=_connection(step.send, group),
            posts=tuple(f"group {number}: {name}" for name in step.posts),
            awaits=tuple(f"group {number}: {name}" for name in step.awaits),
        )


def _spans(spans: Iterable[Span], group: GroupSchedule) -> tuple[Span, ...]:
    return tuple(replace(span, rank=group.devices[span.rank]) for span in spans)


def _connection(connection: Connection | None, group: GroupSchedule) -> Connection | None:
    if connection is None:
        return None
    source, target, channel = connection
    return Connection(group.devices[source], group.devices[target], channel)

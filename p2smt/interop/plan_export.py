"""A request of a plan as schedule files: one for each of its groups, and what they take.

What is exported is priced as it is exported, all groups together on the plan's topology, so that
what the files lose against the plan is told.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from p2smt.collectives.names import CUSTOM
from p2smt.errors import InputError
from p2smt.interop.msccl.parse import PROTOCOLS
from p2smt.interop.mscclpp.read import FORMAT as MSCCLPP_JSON
from p2smt.interop.mscclpp.runtime_warnings import MAX_OPERATIONS
from p2smt.interop.schedule_files import format_named, written
from p2smt.plans.file_model import plan_problem
from p2smt.schedules.cost.predict import schedule_cost
from p2smt.schedules.lower.assemble import Lowering
from p2smt.schedules.lower.exported import ExportedFile, PlanExport
from p2smt.schedules.lower.one_sided import one_sided
from p2smt.schedules.lower.plan import lower_groups, request_of
from p2smt.schedules.lower.ports import machine_of
from p2smt.schedules.lower.together import GroupSchedule, together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from p2smt.cluster.topology import Topology
    from p2smt.plans.file_model import PlanModel, RequestModel
    from p2smt.schedules.model import Schedule

MAX_PRICED_STEPS = 100_000
ALGORITHMS = ("ring", "direct", "tree")
"""Those that are tried, in this order, where none is asked for."""
WORTH = 0.99
"""The part of the time of an earlier one that a later one must not exceed."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """The groups as one algorithm lowers them, as the format has them, and their time."""

    algorithm: str
    groups: Sequence[GroupSchedule]
    seconds: float | None


@dataclass(frozen=True, slots=True)
class _Source:
    """A request of a plan, and the file to export it to."""

    plan: PlanModel
    request: int
    name: str
    target: str

    @property
    def model(self) -> RequestModel:
        """The request; InputError if there is none."""
        return request_of(self.plan, self.request, self.name)

    def lowered(self, topology: Topology, algorithm: str) -> _Candidate:
        """What an algorithm makes of the request."""
        how = Lowering(algorithm, fused=True)
        groups = lower_groups(self.plan, self.request, how, self.name)
        self._check(groups[0])
        if format_named(self.target).name == MSCCLPP_JSON:
            groups = _with_puts(groups, topology)
        else:
            groups = _with_protocol(groups, self.model)
        steps = sum(len(group.schedule.steps) for group in groups)
        if steps > MAX_PRICED_STEPS:
            return _Candidate(algorithm, groups, None)
        cost = schedule_cost(together(groups, topology.devices), topology, self.model.bytes)
        return _Candidate(algorithm, groups, cost.time_s)

    def _check(self, group: GroupSchedule) -> None:
        found = format_named(self.target)
        if found.runtime and group.schedule.contract.collective == CUSTOM:
            given = f"{self.name}: request {self.request + 1}, a {self.model.kind.value}"
            rule = f"is no collective of {found.runtime} {found.syntax}"
            raise InputError(given, rule, "export it as .yaml")


def export_plan(
    plan: PlanModel,
    request: int,
    target: str,
    group: int | None = None,
    algorithm: str | None = None,
    source: str = "plan",
) -> PlanExport:
    """The files for a request (by its index) of a plan.

    target: how it ends names the format.  MSCCL XML and MSCCL++ JSON hold one communicator: all
        groups become files with their numbers before that ending.  YAML holds all in one.
    group: only this one, counted from 1, in a file of just that name.
    algorithm: of every step; None: the one that is predicted to be fastest.

    Raises:
        InputError: no such request or group, a format or request that cannot be exported, or too
            large a schedule.
    """
    given = _Source(plan, request, source, target)
    topology = plan_problem(plan, source)[0].topology
    best = _best(given, topology, algorithm)
    count = len(best.groups)
    if group is not None and not 1 <= group <= count:
        known = "there is one group" if count == 1 else f"the groups are 1 to {count}"
        raise InputError(f"{source}: group {group}", known, "name one of them")
    files = tuple(_files(best.groups, topology.devices, target, group))
    means = f"{best.algorithm} {best.groups[0].schedule.protocol}"
    planned = tuple(dict.fromkeys(f"{s.algorithm} {s.protocol}" for s in given.model.steps))
    return PlanExport(files, count, means, planned, given.model.seconds, best.seconds)


def _best(given: _Source, topology: Topology, algorithm: str | None) -> _Candidate:
    """The lowering that is asked for, or else the fastest; the first where none is priced."""
    tried = ALGORITHMS if algorithm is None else (algorithm,)
    if not given.model.kind.has_programs:
        tried = ("direct",)
    best = given.lowered(topology, tried[0])
    for name in tried[1:]:
        if best.seconds is None:
            break
        other = given.lowered(topology, name)
        if other.seconds is not None and other.seconds < WORTH * best.seconds:
            best = other
    return best


def _with_puts(groups: Sequence[GroupSchedule], topology: Topology) -> list[GroupSchedule]:
    """The groups one-sided, by ports between machines."""
    known: dict[object, Schedule] = {}
    found = []
    for group in groups:
        first: dict[int, int] = {}
        machines = [
            first.setdefault(machine_of(topology, device), rank)
            for rank, device in enumerate(group.devices)
        ]
        key = (id(group.schedule), tuple(machines))
        if key not in known:
            known[key] = one_sided(group.schedule, MAX_OPERATIONS, _differ(machines))
        found.append(replace(group, schedule=known[key]))
    return found


def _differ(machines: Sequence[int]) -> Callable[[int, int], bool]:
    return lambda one, other: machines[one] != machines[other]


def _with_protocol(groups: Sequence[GroupSchedule], model: RequestModel) -> list[GroupSchedule]:
    """The groups by the protocol of the plan's steps, if they have one that MSCCL knows."""
    named = {step.protocol.lower() for step in model.steps}
    protocol = next((p for p in PROTOCOLS if named == {p.lower()}), PROTOCOLS[0])
    known = {id(group.schedule): replace(group.schedule, protocol=protocol) for group in groups}
    return [replace(group, schedule=known[id(group.schedule)]) for group in groups]


def _files(
    groups: Sequence[GroupSchedule], devices: int, target: str, number: int | None
) -> Iterator[ExportedFile]:
    if number is not None:
        content = groups[number - 1]
        yield ExportedFile(target, written(content.schedule, target), number, content)
    elif len(groups) == 1:
        yield ExportedFile(target, written(groups[0].schedule, target), 1, groups[0])
    elif not format_named(target).runtime:
        whole = GroupSchedule(tuple(range(devices)), together(groups, devices))
        yield ExportedFile(target, written(whole.schedule, target), None, whole)
    else:
        stem, suffix = os.path.splitext(target)
        texts: dict[int, str] = {}
        for number, content in enumerate(groups, start=1):
            key = id(content.schedule)
            text = texts.get(key) or written(content.schedule, target)
            texts[key] = text
            yield ExportedFile(f"{stem}.{number}{suffix}", text, number, content)

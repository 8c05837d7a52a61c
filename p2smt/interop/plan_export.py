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
from p2smt.interop.mscclpp.read import FORMAT as MSCCLPP_JSON
from p2smt.interop.mscclpp.runtime_warnings import MAX_OPERATIONS
from p2smt.interop.schedule_files import format_named, written
from p2smt.plans.file_model import plan_problem
from p2smt.schedules.cost.predict import schedule_cost
from p2smt.schedules.lower.assemble import Lowering
from p2smt.schedules.lower.one_sided import one_sided
from p2smt.schedules.lower.plan import lower_groups, request_of
from p2smt.schedules.lower.ports import machine_of
from p2smt.schedules.lower.together import GroupSchedule, together

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from p2smt.cluster.topology import Topology
    from p2smt.plans.file_model import PlanModel, RequestModel

MAX_PRICED_STEPS = 100_000
ALGORITHMS = ("ring", "direct", "tree")
"""Those that are tried, in this order, where none is asked for."""
WORTH = 0.99
"""The part of the time of an earlier one that a later one must not exceed."""


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file to be written, and the schedule in it: of one group, counted from 1, or of all."""

    path: str
    text: str
    group: int | None
    content: GroupSchedule


@dataclass(frozen=True, slots=True)
class PlanExport:
    """What is exported of a request.

    groups: how many it has.  algorithm: of all its steps.
    plan_s, exported_s: one execution by all groups, as the plan says and as predicted for the
        schedules; None: they are too large to be priced.
    """

    files: tuple[ExportedFile, ...]
    groups: int
    algorithm: str
    plan_s: float
    exported_s: float | None


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
            groups = [_with_puts(group, topology) for group in groups]
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
    return PlanExport(files, count, best.algorithm, given.model.seconds, best.seconds)


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


def _with_puts(group: GroupSchedule, topology: Topology) -> GroupSchedule:
    """The group one-sided, by ports between machines."""
    machines = [machine_of(topology, device) for device in group.devices]
    schedule = one_sided(group.schedule, MAX_OPERATIONS, lambda a, b: machines[a] != machines[b])
    return replace(group, schedule=schedule)


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

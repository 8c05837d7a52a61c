"""A request of a plan as schedule files: one for each of its groups, and what they take.

What is exported is priced as it is exported, all groups together on the plan's topology, so that
what the files lose against the plan is told.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from p2smt.cluster.allocation import unstated_levels
from p2smt.collectives.names import CUSTOM
from p2smt.errors import InputError
from p2smt.interop.msccl.parse import PROTOCOLS
from p2smt.interop.mscclpp.read import FORMAT as MSCCLPP_JSON
from p2smt.interop.mscclpp.read import MAX_OPERATIONS
from p2smt.interop.schedule_files import format_named, steps_in, written
from p2smt.parallelism.rank_list import RankList
from p2smt.plans.problem import plan_problem
from p2smt.plans.sides import attention_of
from p2smt.schedules.cost.links import Routes, alike
from p2smt.schedules.cost.predict import cost_on
from p2smt.schedules.lower.assemble import Lowering
from p2smt.schedules.lower.lowered_request import (
    ExportedFile,
    GroupSchedule,
    PlanExport,
    lower_groups,
    machine_of,
    request_of,
    together,
)
from p2smt.schedules.lower.one_sided import one_sided

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from p2smt.cluster.topology import Topology
    from p2smt.parallelism.rank_list import RankMap
    from p2smt.parallelism.request import Problem
    from p2smt.plans.file_model import AnyPlan, RequestModel
    from p2smt.schedules.model import Schedule

MAX_PRICED_STEPS = 100_000
"""Of one group of each kind."""
MANY_STEPS = 20_000
"""From so many on, other algorithms are tried only if the first takes longer than the plan."""
ALGORITHMS = ("ring", "direct", "tree")
"""Those that are tried, in this order, where none is asked for."""


@dataclass(frozen=True, slots=True)
class _Ranks:
    """Which rank of a run each device is: its own number, or on named hosts that of the plan."""

    count: int
    number: Mapping[int, int] | None

    @staticmethod
    def of(problem: Problem, where: RankMap) -> _Ranks:
        """Those of a plan."""
        if isinstance(where, RankList) and problem.topology.hosts is not None:
            number = {device: rank for rank, device in enumerate(where.ranks)}
            return _Ranks(len(where.ranks), number)
        return _Ranks(problem.topology.devices, None)

    @property
    def named(self) -> bool:
        """Whether they are those of the plan."""
        return self.number is not None

    def of_devices(self, devices: tuple[int, ...]) -> tuple[int, ...]:
        """The ranks of these devices."""
        return devices if self.number is None else tuple(self.number[d] for d in devices)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """The groups as one algorithm lowers them, as the format has them, and their time."""

    algorithm: str
    groups: Sequence[GroupSchedule]
    seconds: float | None

    @property
    def rounded_s(self) -> float:
        """Its time to two digits; without one it comes last."""
        return math.inf if self.seconds is None else float(f"{self.seconds:.1e}")


@dataclass(frozen=True, slots=True)
class _Source:
    """A request of a plan, and the files to export it to."""

    plan: AnyPlan
    request: int
    name: str
    target: str
    group: int | None
    force: bool

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
        some = alike(groups, Routes(topology, groups[0].schedule.protocol))
        if some.steps > MAX_PRICED_STEPS:
            return _Candidate(algorithm, groups, None)
        whole = together(some.groups, topology.devices)
        cost = cost_on(some.routes, whole, self.model.bytes)
        return _Candidate(algorithm, groups, cost.time_s)

    def _check(self, group: GroupSchedule) -> None:
        found = format_named(self.target)
        if found.runtime and group.schedule.contract.collective == CUSTOM:
            given = f"{self.name}: request {self.request + 1}, a {self.model.kind.value}"
            rule = f"is no collective of {found.runtime} {found.syntax}"
            raise InputError(given, rule, "export it as .yaml")

    def files(self, groups: Sequence[GroupSchedule], ranks: _Ranks) -> Iterator[ExportedFile]:
        """The files, one for each group unless one is asked for or the format holds all."""
        groups = [replace(group, devices=ranks.of_devices(group.devices)) for group in groups]
        count, number = len(groups), self.group
        if number is not None and not 1 <= number <= count:
            known = "there is one group" if count == 1 else f"the groups are 1 to {count}"
            raise InputError(f"{self.name}: group {number}", known, "name one of them")
        if number is not None or count == 1:
            yield self._file(self.target, number or 1, groups[(number or 1) - 1])
        elif not format_named(self.target).runtime:
            yield self._file(self.target, None, _all(groups, ranks.count))
        else:
            stem, suffix = os.path.splitext(self.target)
            known_files: dict[int, ExportedFile] = {}
            for number, content in enumerate(groups, start=1):
                path, key = f"{stem}.{number}{suffix}", id(content.schedule)
                if key not in known_files:
                    known_files[key] = self._file(path, number, content)
                yield replace(known_files[key], path=path, group=number, content=content)

    def _file(self, path: str, number: int | None, content: GroupSchedule) -> ExportedFile:
        text = written(content.schedule, path, force=self.force)
        steps = steps_in(text, path, content.schedule)
        return ExportedFile(path, text, steps, number, content)


def export_plan(
    plan: AnyPlan,
    request: int,
    target: str,
    group: int | None = None,
    algorithm: str | None = None,
    source: str = "plan",
    *,
    force: bool = False,
) -> PlanExport:
    """The files for a request (by its index) of a plan.

    target: how it ends names the format.  MSCCL XML and MSCCL++ JSON hold one communicator: all
        groups become files with their numbers before that ending.  YAML holds all in one.
    group: only this one, counted from 1, in a file of just that name.
    algorithm: of every step; None: of those that the runtime of the format would run, the one
        that is predicted to be fastest.
    force: also what the runtime would not run.

    Raises:
        InputError: no such request or group, a format or request that cannot be exported, too
            large a schedule, or one that the runtime would not run.
    """
    given = _Source(plan, request, source, target, group, force)
    problem, where = plan_problem(attention_of(plan, source), source)
    ranks = _Ranks.of(problem, where)
    best, files = _best(_tried(given, problem.topology, algorithm), given, ranks)
    means = f"{best.algorithm} {best.groups[0].schedule.protocol}"
    planned = tuple(dict.fromkeys(f"{s.algorithm} {s.protocol}" for s in given.model.steps))
    unstated = unstated_levels(problem.topology)
    times = (None, None) if unstated else (given.model.seconds, best.seconds)
    return PlanExport(files, len(best.groups), means, planned, *times, ranks.named, unstated)


def _tried(given: _Source, topology: Topology, algorithm: str | None) -> list[_Candidate]:
    """What is asked for, or else all algorithms; the first alone where it has no price."""
    names = ALGORITHMS if algorithm is None else (algorithm,)
    if not given.model.kind.has_programs:
        names = ("direct",)
    first = given.lowered(topology, names[0])
    many = sum(len(group.schedule.steps) for group in first.groups) > MANY_STEPS
    plan_s = given.model.seconds
    if first.seconds is None or (many and plan_s is not None and first.seconds <= plan_s):
        return [first]
    return [first, *(given.lowered(topology, name) for name in names[1:])]


def _best(
    tried: Sequence[_Candidate], given: _Source, ranks: _Ranks
) -> tuple[_Candidate, tuple[ExportedFile, ...]]:
    """The fastest that can be written, and its files; of nearly equal ones the first."""
    refused: InputError | None = None
    for candidate in sorted(tried, key=lambda c: c.rounded_s):
        try:
            return candidate, tuple(given.files(candidate.groups, ranks))
        except InputError as error:
            refused = refused or error
    raise refused or InputError(given.name, "has nothing to export")


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


def _all(groups: Sequence[GroupSchedule], devices: int) -> GroupSchedule:
    return GroupSchedule(tuple(range(devices)), together(groups, devices))

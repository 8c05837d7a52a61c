"""Schedules of one size as a space: any of them is sought, or a proof that there is none.

A member is a schedule, written as its messages.  Leave out messages that are of no use: those of a
chunk to a rank from which it cannot come to a goal any more, or that are a part of nothing; and
number chunks that are alike so that their decisions never grow (``decisions``).  That leaves a
schedule, which obeys one cube of a partition.  In each cube only such schedules are sought, as far
as its decisions tell; so if all are empty, there is no schedule at all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.errors import InputError
from p2smt.files.plain import from_plain, to_plain
from p2smt.problems.sums import AllReduceProblem, ScheduleClass, SumSchedule
from p2smt.result import Result, SearchLimits, Status
from p2smt.search.schedule.all_reduce import all_reduce, all_reduce_problem
from p2smt.search.schedule.parts.decisions import (
    check_path,
    decided_sent,
    decided_there,
    sent_names,
    there_names,
)
from p2smt.search.schedule.parts.texts import messages_of, messages_text
from p2smt.search.schedule.synthesis.copied import copied_as, copy_problem
from p2smt.search.schedule.synthesis.lowering import broken_synthesis
from p2smt.search.schedule.synthesis.pairs import MAX_PAIRS, chunk_count, too_many_pairs
from p2smt.search.schedule.synthesis.question import ScheduleSize, SynthesisSetting
from p2smt.skeletons.cube import Closure, Cube, CubeVerdict, Member, OverBudget
from p2smt.skeletons.space import CubeTask, Signals, Skeleton
from p2smt.solvers.ask import stopping_when
from p2smt.solvers.solver import Solver, solver_of

_ROOT_DECISIONS = 4


@dataclass(frozen=True, slots=True)
class ScheduleSpace:
    """The schedules that a setting without symmetry asks for, of a size.

    Those of sums at one rank are decided as the copies that they are backwards.
    """

    setting: SynthesisSetting
    size: ScheduleSize
    solver: Solver = Solver.CPSAT

    @staticmethod
    def of(setting: SynthesisSetting, size: ScheduleSize, solver: Solver) -> ScheduleSpace:
        """That of a question, of its fabric what answers depend on, and the name."""
        made = setting.fabric
        fabric = Fabric(made.name, made.ranks, made.capacities, made.edges)
        return ScheduleSpace(replace(setting, fabric=fabric), size, solver)

    @property
    def skeleton(self) -> Skeleton:
        """Any one is sought."""
        return Skeleton.DECIDE

    @property
    def names(self) -> tuple[str, ...]:
        """What is decided, in this order."""
        return _names(self.setting, self.size)

    def description(self) -> Mapping[str, object]:
        """Fabric, collective, size, messages, class and solver."""
        setting = self.setting
        family = ScheduleClass.PARTIAL_SUMS.value if setting.adds else None
        return {
            "fabric": to_plain(setting.fabric),
            "collective": setting.collective,
            "root": setting.root,
            "size": to_plain(self.size),
            "messages": setting.messages,
            "class": family,
            "solver": self.solver.value,
        }

    def roots(self) -> tuple[Cube, ...]:
        """All cubes of the first few decisions."""
        cubes: tuple[Cube, ...] = (Cube(),)
        for _ in range(_ROOT_DECISIONS):
            cubes = tuple(part for cube in cubes for part in self.split(cube) or (cube,))
        return cubes

    def split(self, cube: Cube) -> tuple[Cube, ...]:
        """One decision more, if there is one."""
        depth = len(cube.path)
        return tuple(
            cube.under(f"{n}={yes}") for n in self.names[depth : depth + 1] for yes in "10"
        )

    def bound(self, cube: Cube) -> int:
        """Nothing is bounded here: 0."""
        check_path(cube.path, self.names)
        return 0

    def close(self, task: CubeTask, signals: Signals) -> Closure | OverBudget:
        """Find a schedule of the cube, which is replayed, or prove that there is none."""
        started_s = time.monotonic()
        budget_s = task.budget_s if self.split(task.cube) else None
        left = [limit for limit in (budget_s, task.deadline_s) if limit is not None]
        limits = SearchLimits(min(left, default=None), None, task.seed, task.threads)
        with stopping_when(lambda _: signals.stopped()):
            found = self.find(task.cube, limits)
        if found.value is not None:
            member = Member(0, (), messages_text(found.value))
            return Closure(task.cube, CubeVerdict.SOLVED, 0, (member,))
        if found.status is Status.INFEASIBLE:
            return Closure(task.cube, CubeVerdict.EMPTY)
        late = task.deadline_s is not None and time.monotonic() - started_s >= task.deadline_s
        if budget_s is not None and not (late or signals.stopped()):
            return OverBudget(task.cube)
        return Closure(task.cube, CubeVerdict.UNKNOWN)

    def find(self, cube: Cube, limits: SearchLimits) -> Result[SumSchedule]:
        """A schedule of a cube: FEASIBLE; INFEASIBLE: there is none; UNKNOWN.

        Raises:
            TooLarge: the problem exceeds a limit of the encoding.
        """
        if self.setting.adds:
            whole = _all_reduce(self.setting, self.size)
            return all_reduce(decided_sent(whole, cube.path), limits, self.solver)
        copies = decided_there(copy_problem(self.setting, self.size, ()), cube.path)
        return copied_as(self.setting, copies, limits, self.solver)

    def member(self, witness: str) -> Member:
        """The schedule of a text of its messages, replayed."""
        broken = broken_synthesis(self.setting, self.size, messages_of(witness))
        if broken:
            raise InputError(f"schedule {witness[:60]!r}", f"is none of this question: {broken}")
        return Member(0, (), witness)


@lru_cache(maxsize=2)
def _names(setting: SynthesisSetting, size: ScheduleSize) -> tuple[str, ...]:
    if setting.adds:
        return sent_names(_all_reduce(setting, size))
    return there_names(copy_problem(setting, size, ()))


def _all_reduce(setting: SynthesisSetting, size: ScheduleSize) -> AllReduceProblem:
    asked = setting.fabric, size.chunks, size.steps, size.rounds
    return all_reduce_problem(*asked, messages=setting.messages)


def schedule_space(data: Mapping[str, Any]) -> ScheduleSpace:
    """The space of a description.

    Raises:
        InputError: it is none.
    """
    try:
        fabric, size = from_plain(Fabric, data["fabric"]), from_plain(ScheduleSize, data["size"])
        collective, root, messages = data["collective"], data["root"], data["messages"]
        setting = SynthesisSetting(fabric, collective, root, False, messages)
        _check_size(setting, size)
        return ScheduleSpace(setting, size, solver_of(data["solver"]))
    except (KeyError, TypeError, AttributeError):
        raise InputError("the description of a space", "is none of schedules") from None


def _check_size(setting: SynthesisSetting, size: ScheduleSize) -> None:
    """Refuse what no search began with: its decisions alone would take all memory."""
    if large := too_many_pairs(setting, size.chunks):
        raise InputError(*large)
    places = chunk_count(setting, size.chunks) * max(
        setting.fabric.ranks, len(setting.fabric.edges)
    )
    if places * size.steps * setting.messages > MAX_PAIRS:
        given = f"{size.chunks} chunks in {size.steps} steps on {setting.fabric.ranks} ranks"
        raise InputError(given, f"are more than {MAX_PAIRS} decisions", "give a journal of p2smt")

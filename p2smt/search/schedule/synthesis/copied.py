"""Schedules of collectives that copy, or that add at one rank, from the search for copies."""

from __future__ import annotations

from dataclasses import replace

from p2smt.problems.schedule import DisseminationProblem, ScheduleSymmetry, StepSends
from p2smt.problems.sums import SumSchedule
from p2smt.result import Result, SearchLimits
from p2smt.search.schedule.dissemination import disseminate, dissemination_problem, spreads
from p2smt.search.schedule.reversal import reversed_sums, sums_of
from p2smt.search.schedule.synthesis.question import CHUNKS_OF, ScheduleSize, SynthesisSetting
from p2smt.solvers.solver import Solver


def copied(
    setting: SynthesisSetting,
    size: ScheduleSize,
    symmetries: tuple[ScheduleSymmetry, ...],
    limits: SearchLimits,
    solver: Solver,
) -> Result[SumSchedule]:
    """A schedule: FEASIBLE; INFEASIBLE: there is none with these symmetries; UNKNOWN.

    Raises:
        TooLarge: the problem exceeds a limit of the encoding.
    """
    return copied_as(setting, copy_problem(setting, size, symmetries), limits, solver)


def copied_as(
    setting: SynthesisSetting, problem: DisseminationProblem, limits: SearchLimits, solver: Solver
) -> Result[SumSchedule]:
    """The same of a question about copies that is given: that of the setting, or narrower.

    Raises:
        TooLarge: the problem exceeds a limit of the encoding.
    """
    found = disseminate(problem, limits, solver)
    sums = None if found.value is None else _as_sums(setting, problem, found.value)
    return Result(found.status, sums, stats=found.stats)


def _as_sums(
    setting: SynthesisSetting, problem: DisseminationProblem, steps: tuple[StepSends, ...]
) -> SumSchedule:
    if setting.backwards:
        return reversed_sums(problem, steps, setting.edges)
    return sums_of(problem, steps)


def copy_problem(
    setting: SynthesisSetting, size: ScheduleSize, symmetries: tuple[ScheduleSymmetry, ...]
) -> DisseminationProblem:
    """The question about copies: for sums at one rank, over the reversed fabric."""
    fabric, collective = setting.copying
    chunks = spreads(collective, fabric.ranks, size.chunks, setting.root)
    problem = dissemination_problem(fabric, chunks, size.steps, size.rounds)
    return replace(problem, symmetries=symmetries)


def owners(setting: SynthesisSetting, size: ScheduleSize) -> tuple[int, ...] | None:
    """Of each chunk the rank that its data belongs to; None where all ranks share every chunk.

    Of what leaves or comes to a root it is the other end.
    """
    if CHUNKS_OF[setting.collective] == "in all":
        return None
    _, collective = setting.copying
    routes = spreads(collective, setting.fabric.ranks, size.chunks, setting.root)
    return tuple(r.goals[0] if setting.collective == "scatter" else r.root for r in routes)

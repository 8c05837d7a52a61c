"""Schedules of all-reduces, from the search in one class."""

from __future__ import annotations

from p2smt.problems.schedule import ScheduleSymmetry
from p2smt.problems.sums import ScheduleClass, SumSchedule
from p2smt.result import Result, SearchLimits
from p2smt.search.schedule.all_reduce import all_reduce, all_reduce_problem
from p2smt.search.schedule.synthesis.question import ScheduleSize, SynthesisSetting
from p2smt.solvers.solver import Solver

CLASSES = {Solver.CPSAT: tuple(ScheduleClass), Solver.Z3: (ScheduleClass.PARTIAL_SUMS,)}
"""The classes that a solver has encodings of, in the order in which they are tried."""


def summed(
    setting: SynthesisSetting,
    size: ScheduleSize,
    family: ScheduleClass,
    symmetries: tuple[ScheduleSymmetry, ...],
    limits: SearchLimits,
    solver: Solver,
) -> Result[SumSchedule]:
    """A schedule: FEASIBLE; INFEASIBLE: none of the class with these symmetries; UNKNOWN.

    Raises:
        TooLarge: the problem exceeds a limit of the encoding.
    """
    problem = all_reduce_problem(
        setting.fabric,
        size.chunks,
        size.steps,
        size.rounds,
        family,
        setting.messages,
        symmetries,
    )
    return all_reduce(problem, limits, solver)

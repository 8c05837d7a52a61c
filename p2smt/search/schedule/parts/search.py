"""The complete search for a schedule of one size, in parts."""

from __future__ import annotations

from p2smt.errors import TooLarge
from p2smt.problems.sums import ScheduleClass, SumSchedule
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.schedule.parts.space import ScheduleSpace
from p2smt.search.schedule.parts.texts import messages_of
from p2smt.search.schedule.synthesis.climb import ScheduleClimb, Trial
from p2smt.search.schedule.synthesis.pairs import too_many_pairs
from p2smt.search.schedule.synthesis.question import ScheduleSize, SynthesisSetting
from p2smt.search.schedule.synthesis.rungs import NO_SYMMETRY
from p2smt.skeletons.cube import Cube
from p2smt.skeletons.outcome import SearchOutcome
from p2smt.skeletons.spread import SearchTerms, Spread, run_spread
from p2smt.solvers.solver import Solver

CUBE_RULE = {
    False: "whether a rank holds a chunk after a step (c0.r3.s1), chunk by chunk, step by step; "
    "like chunks by falling decisions",
    True: "whether a chunk goes over an edge in a step (c0.e3.s1), chunk by chunk, step by step; "
    "chunks by falling decisions",
}
"""How cubes are cut, in words; True: of an all-reduce."""


def climb_in_parts(
    setting: SynthesisSetting,
    size: ScheduleSize,
    solver: Solver,
    spread: Spread,
    watch: StopWatch,
) -> ScheduleClimb:
    """The one trial without symmetry, in the widest class, as a climb that is over.

    Raises:
        InputError: the journal or the engine cannot be used.
        BackendError: Dask is not installed.
        EncodingBug: what a solver found breaks a rule.
    """
    space = ScheduleSpace.of(setting, size, solver)
    trial = Trial(NO_SYMMETRY, ScheduleClass.PARTIAL_SUMS if setting.adds else None)
    stopped = False

    def searched(_: Trial, limits: SearchLimits) -> Result[SumSchedule]:
        nonlocal stopped
        check_size(space)
        terms = SearchTerms("synthesize", cube_rule=CUBE_RULE[setting.adds])
        outcome = run_spread(space, terms, spread, StopWatch.start(limits))
        stopped = outcome.interrupted
        return _result(outcome)

    climb = ScheduleClimb([trial], searched, 0)
    climb.turn(watch, to_the_end=True)
    climb.over, climb.interrupted = True, climb.interrupted or stopped
    return climb


def check_size(space: ScheduleSpace) -> None:
    """Refuse what no solver of the space could be asked, before any part of it is.

    Raises:
        TooLarge: the problem exceeds a limit of the encoding.
    """
    if large := too_many_pairs(space.setting, space.size.chunks):
        raise TooLarge(*large)
    space.find(Cube(), SearchLimits(0.0))


def _result(outcome: SearchOutcome) -> Result[SumSchedule]:
    """The outcome as that of a search in one piece."""
    stats = SolveStats("parts", outcome.elapsed_s, reason=outcome.reason)
    match outcome.status:
        case Status.OPTIMAL:
            return Result(Status.FEASIBLE, messages_of(outcome.best[0].witness), stats=stats)
        case Status.INFEASIBLE:
            return Result(Status.INFEASIBLE, stats=stats)
        case _:
            return Result(Status.UNKNOWN, stats=stats)

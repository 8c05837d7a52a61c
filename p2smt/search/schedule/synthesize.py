"""One question of a synthesis: bounds first, then groups and classes, then what the answer is.

What is no schedule by a bound is none of any kind.  What is none by a search is none in the class
that was searched completely: class G for all-reduce, with so many messages; for the others every
schedule, as what only copies, or adds at one rank, gains nothing by another class.  A search with
symmetries that finds none says nothing of schedules without them.
"""

from __future__ import annotations

from dataclasses import replace

from p2smt.problems.sums import SumSchedule
from p2smt.result import OUT_OF_TIME, STOPPED, SearchLimits, Status, StopWatch
from p2smt.search.schedule.bounds.rate import RateBound
from p2smt.search.schedule.synthesis.answer import Answer, Synthesis
from p2smt.search.schedule.synthesis.climb import ScheduleClimb, climb_of
from p2smt.search.schedule.synthesis.lowering import lower
from p2smt.search.schedule.synthesis.proved import fewest_steps, least_rate
from p2smt.search.schedule.synthesis.question import ScheduleSize, SynthesisSetting
from p2smt.search.schedule.synthesis.state import SynthesisState, Tell, tell_nobody
from p2smt.solvers.solver import Solver

BY_BOUND = "no schedule (bound)"
_BOUND_SHARE = 4
"""The bound has this part of the time there is."""


def synthesize(
    setting: SynthesisSetting,
    size: ScheduleSize,
    limits: SearchLimits | None = None,
    solver: Solver = Solver.CPSAT,
    tell: Tell = tell_nobody,
) -> Synthesis:
    """A schedule of that size, or why there is none, or what is known.

    On KeyboardInterrupt what is known until then is returned, ``interrupted`` set.

    Raises:
        EncodingBug: what a solver found breaks a rule, or is wrong in some interleaving.
    """
    watch = StopWatch.start(limits or SearchLimits())
    try:
        bound, refuted = _bounded(setting, size, watch)
    except KeyboardInterrupt:
        status, reason = Answer.UNKNOWN, Answer.UNKNOWN.value
        found = Synthesis(setting, size, status, reason, STOPPED, interrupted=True)
        return replace(found, wall_s=watch.elapsed_s())
    if refuted:
        none = Synthesis(setting, size, Answer.NO_SCHEDULE, BY_BOUND, refuted, bound=bound)
        return replace(none, wall_s=watch.elapsed_s())
    state = SynthesisState(size, bound.value)
    climb = climb_of(setting, size, solver, lambda doing: tell(replace(state, doing=doing)))
    climb.finish(watch)
    return answered(setting, size, bound, climb, watch)


def _bounded(
    setting: SynthesisSetting, size: ScheduleSize, watch: StopWatch
) -> tuple[RateBound, str]:
    """The bound on the rate, and how the steps or the rate refute the size; empty: they do not."""
    least = fewest_steps(setting)
    if size.steps < least.value:
        return least, f"some data has {least.value} edges to go, and a step is one"
    left = watch.remaining_s()
    part = watch if left is None else watch.ending_at(watch.elapsed_s() + left / _BOUND_SHARE)
    bound = least_rate(setting, size.steps, part)
    if size.rate >= bound.value:
        return bound, ""
    return bound, f"R/C is at least {bound.value} in {size.steps} steps, and {size.rate} was asked"


def answered(
    setting: SynthesisSetting,
    size: ScheduleSize,
    bound: RateBound,
    climb: ScheduleClimb,
    watch: StopWatch,
) -> Synthesis:
    """The answer in words, with its schedule lowered and checked."""
    status, reason, detail = _words(setting, climb)
    found = Synthesis(
        setting,
        size,
        status,
        reason,
        detail,
        climb.sums,
        bound=bound,
        attempts=climb.attempts,
        interrupted=climb.interrupted,
    )
    if climb.sums is not None:
        found = _lowered(found, climb.sums)
    return replace(found, wall_s=watch.elapsed_s())


def _words(setting: SynthesisSetting, climb: ScheduleClimb) -> tuple[Answer, str, str]:
    """The answer, its reason, and more about it."""
    if climb.sums is not None:
        return Answer.SCHEDULE, Answer.SCHEDULE.value, ""
    if climb.refuted:
        return Answer.NO_SCHEDULE, complete_search(setting), ""
    why = _why_open(climb)
    groups = [a for a in climb.attempts if a.order > 1 and a.complete]
    if groups and all(a.status is Status.INFEASIBLE for a in groups):
        orders = ", ".join(map(str, dict.fromkeys(a.order for a in groups)))
        none = f"none with groups of order {orders}" + (" in class G" if setting.adds else "")
        return Answer.NO_SYMMETRIC, Answer.NO_SYMMETRIC.value, f"{none}; without symmetry: {why}"
    return Answer.UNKNOWN, Answer.UNKNOWN.value, why


def complete_search(setting: SynthesisSetting) -> str:
    """The words for a search that looked at every schedule of the widest class."""
    if not setting.adds:
        return "no schedule (complete search)"
    many = "1 message" if setting.messages == 1 else f"{setting.messages} messages"
    return f"no schedule in class G with {many} (complete search)"


def _why_open(climb: ScheduleClimb) -> str:
    if climb.interrupted:
        return STOPPED
    reasons = [a.why for a in climb.attempts if a.order == 1 and a.complete and a.why]
    return reasons[0] if reasons else OUT_OF_TIME


def _lowered(found: Synthesis, sums: SumSchedule) -> Synthesis:
    """With the schedule, which must be right in every interleaving."""
    last = found.attempts[-1]
    found = replace(found, family=last.family, group_order=last.order)
    schedule, report = lower(found.setting, found.size, sums)
    return replace(found, schedule=schedule, report=report)

"""One question of a synthesis: bounds first, then groups and classes, then what the answer is.

What is no schedule by a bound is none of any kind.  What is none by a search is none in the class
that was searched completely: class G for all-reduce, with so many messages; for the others every
schedule, as what only copies, or adds at one rank, gains nothing by another class.  A search with
symmetries that finds none says nothing of schedules without them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.result import OUT_OF_TIME, STOPPED, SearchLimits, StopWatch
from p2smt.solvers.ask import Solver
from p2smt.synthesis.certificate.certificate import BoundKind
from p2smt.synthesis.setting import (
    Answer,
    ScheduleSize,
    Synthesis,
    SynthesisSetting,
    SynthesisState,
    Tell,
    fewest_steps,
    least_rate,
    lower,
    tell_nobody,
)
from p2smt.synthesis.symmetry_search import ScheduleSearch, symmetry_search_of
from p2smt.units import roughly

if TYPE_CHECKING:
    from p2smt.parallel_search.parallel_options import Spread
    from p2smt.problems.schedule import SumSchedule
    from p2smt.synthesis.bounds import RateBound
    from p2smt.synthesis.seeds import Seed

BY_BOUND = "no schedule (bound)"
_BOUND_SHARE = 4
"""The bound has this part of the time there is."""


def synthesize(
    setting: SynthesisSetting,
    size: ScheduleSize,
    limits: SearchLimits | None = None,
    solver: Solver = Solver.CPSAT,
    tell: Tell = tell_nobody,
    spread: Spread | None = None,
) -> Synthesis:
    """A schedule of that size, or why there is none, or what is known.

    ``spread``: make the search without symmetries in parts; None: search in one piece.

    On KeyboardInterrupt what is known until then is returned, ``interrupted`` set.

    Raises:
        InputError: a search in parts is to have symmetries, or its journal or engine cannot be
            used.
        BackendError: Dask is to be used and not installed.
        EncodingBug: what a solver found breaks a rule, or is wrong in some interleaving.
    """
    if spread is not None and setting.symmetry:
        rule = "are those of the complete search, which knows no symmetries"
        raise InputError("parts of a search", rule, "search without: symmetry none")
    watch = StopWatch.start(limits or SearchLimits())
    known: list[RateBound] = []
    climbs: list[ScheduleSearch] = []
    try:
        return _synthesized(setting, size, watch, solver, tell, spread, known, climbs)
    except KeyboardInterrupt:
        unknown = Answer.UNKNOWN
        found = Synthesis(setting, size, unknown, unknown.value, STOPPED, interrupted=True)
        attempts = climbs[0].attempts if climbs else ()
        bound = known[-1] if known else None
        return replace(found, bound=bound, attempts=attempts, wall_s=watch.elapsed_s())


def _synthesized(
    setting: SynthesisSetting,
    size: ScheduleSize,
    watch: StopWatch,
    solver: Solver,
    tell: Tell,
    spread: Spread | None,
    known: list[RateBound],
    climbs: list[ScheduleSearch],
) -> Synthesis:
    """The answer; ``known`` and ``climbs`` get what is known already, should it be stopped."""
    bound, refuted = _bounded(setting, size, watch, known)
    if refuted:
        none = Synthesis(setting, size, Answer.NO_SCHEDULE, BY_BOUND, refuted, bound=bound)
        return replace(none, wall_s=watch.elapsed_s())
    if spread is not None:
        from p2smt.synthesis.schedule_space import symmetry_search_in_parts

        parts = symmetry_search_in_parts(setting, size, solver, spread, watch)
        return answered(setting, size, bound, parts, watch)
    value = None if bound.kind is BoundKind.DISTANCE else bound.value
    state = SynthesisState(size, value)
    climb = symmetry_search_of(
        setting, size, solver, lambda doing: tell(replace(state, doing=doing)), watch
    )
    climbs.append(climb)
    climb.finish(watch)
    return answered(setting, size, bound, climb, watch)


def _bounded(
    setting: SynthesisSetting, size: ScheduleSize, watch: StopWatch, known: list[RateBound]
) -> tuple[RateBound, str]:
    """The bound on the rate, and how the steps or the rate refute the size; empty: they do not.

    ``known`` gets each bound as it is proved.
    """
    least = fewest_steps(setting)
    known.append(least)
    if size.steps < least.value:
        return least, f"some data has {least.value} edges to go, and a step is one"
    bound = least_rate(setting, size.steps, watch.part(1 / _BOUND_SHARE), watch)
    if bound is None:
        return least, ""
    known.append(bound)
    if size.rate >= bound.value:
        return bound, ""
    return bound, f"R/C is at least {bound.value} in {size.steps} steps, and {size.rate} was asked"


def answered(
    setting: SynthesisSetting,
    size: ScheduleSize,
    bound: RateBound,
    climb: ScheduleSearch,
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


def seeded(setting: SynthesisSetting, seed: Seed, bound: RateBound, watch: StopWatch) -> Synthesis:
    """What was known before any search, with its schedule lowered and checked."""
    schedule, report = lower(setting, seed.size, seed.sums)
    word = Answer.SCHEDULE
    found = Synthesis(setting, seed.size, word, word.value, sums=seed.sums, bound=bound)
    found = replace(found, schedule=schedule, report=report, origin=seed.origin)
    return replace(found, wall_s=watch.elapsed_s())


def _words(setting: SynthesisSetting, climb: ScheduleSearch) -> tuple[Answer, str, str]:
    """The answer, its reason, and more about it."""
    if climb.sums is not None:
        return Answer.SCHEDULE, Answer.SCHEDULE.value, ""
    if climb.refuted:
        return Answer.NO_SCHEDULE, complete_search(setting), ""
    why = _why_open(climb)
    if climb.groups_refuted:
        groups = [a for a in climb.attempts if a.order > 1 and a.complete]
        orders = ", ".join(map(roughly, dict.fromkeys(a.order for a in groups)))
        where = " in class G" if setting.adds else ""
        none = f"none with any of the groups tried, of order {orders}{where}"
        return Answer.NO_SYMMETRIC, Answer.NO_SYMMETRIC.value, f"{none}; without symmetry: {why}"
    return Answer.UNKNOWN, Answer.UNKNOWN.value, why


def complete_search(setting: SynthesisSetting) -> str:
    """The words for a search that looked at every schedule of the widest class."""
    if not setting.adds:
        return "no schedule (complete search)"
    many = "1 message" if setting.messages == 1 else f"{setting.messages} messages"
    return f"no schedule in class G with {many} (complete search)"


def _why_open(climb: ScheduleSearch) -> str:
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

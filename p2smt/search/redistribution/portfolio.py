"""Which search answers: the exact one where there are few types, the layered one beyond.

The exact search proves its answer for plans of any length.  Where its share of the time ends
without a proof, or it says at once that types are too many, layers of constraints prove one for
plans of at most so many steps; a plan on coarse digits is there first, whatever the time limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.arrays.ends import Ends
from p2smt.arrays.memory import MemoryLimit
from p2smt.cost.redistribution.prices import StepPrices
from p2smt.errors import TooLarge
from p2smt.result import OUT_OF_TIME, SolveStats, Status, StopWatch
from p2smt.search.redistribution.coarse import coarse_path
from p2smt.search.redistribution.exact.best import best_path
from p2smt.search.redistribution.layered.solve import best_layered
from p2smt.search.redistribution.path import PathResult
from p2smt.search.redistribution.question import RedistributionQuestion

EXACT_S = 8.0
"""Wall seconds after which the layers take over, where no number of steps was asked for."""
EXACT_SHARE = 0.5
"""Of a time limit, what the exact search may take before the layers do."""
FEW_DIGITS = 7
MANY_LAYERS, FEW_LAYERS = 5, 4
"""Steps of the layers up to ``FEW_DIGITS`` digits, and beyond."""
MOST_LAYERS = 8
"""Where no plan of so few steps keeps to the cap, layers are added up to here."""


@dataclass(frozen=True, slots=True)
class FoundPath:
    """A result, and the most steps of the plans that it speaks of (None: of any length).

    ``interrupted``: by the user; it is the best until then.
    """

    result: PathResult
    max_steps: int | None
    interrupted: bool = False


def find_path(
    question: RedistributionQuestion,
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    watch: StopWatch,
) -> FoundPath:
    """The fastest steps over all ends, and for plans of which length that is proved.

    Raises:
        KeyboardInterrupt: before any plan was found.
    """
    if all(one.source == one.target for one in ends):
        return FoundPath(_nothing_to_do(), question.max_steps)
    nested = ends[0].frame.nested
    limits = watch.left()
    if not nested:  # the layers follow
        limits = replace(limits, time_limit_s=exact_share_s(watch))
    known = best_path(ends, prices, memory, limits, max_steps=question.max_steps)
    if known.status.settled or nested:
        return FoundPath(known, question.max_steps)
    if known.seconds is None:
        coarse = coarse_path(question, ends, memory, watch.left())
        known = known if coarse is None else _not_proved(coarse, known)
    return _layered(question, ends, prices, memory, watch, known)


def _layered(
    question: RedistributionQuestion,
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    watch: StopWatch,
    known: PathResult,
) -> FoundPath:
    """The best of what is known and of plans of at most so many steps.

    Where there are too many kinds of groups for layers, what is known stands as it is.
    """
    few = len(ends[0].frame.digits) <= FEW_DIGITS
    first = question.max_steps or (MANY_LAYERS if few else FEW_LAYERS)
    for layers in range(first, (question.max_steps or MOST_LAYERS) + 1):
        left = watch.left()
        try:
            layered = best_layered(ends, prices, memory, left, layers, at_most_s=known.seconds)
        except TooLarge as error:
            reason = f"{error.given} {error.rule}"
            stats = replace(known.stats, reason=reason)
            return FoundPath(replace(known, stats=stats), question.max_steps)
        except KeyboardInterrupt:
            if known.seconds is None:
                raise
            best = replace(known, status=Status.FEASIBLE)
            return FoundPath(best, question.max_steps, interrupted=True)
        found = _better(known, layered)
        if found.seconds is not None or layered.status is not Status.INFEASIBLE:
            break
        known = replace(known, stats=found.stats)
    if found.status is Status.INFEASIBLE and question.max_steps is None:
        reason = f"there is none of at most {layers} steps, and longer ones were not looked for"
        stats = replace(found.stats, reason=reason)
        found = replace(found, status=Status.UNKNOWN, stats=stats)
    if len(found.steps) > layers:
        return FoundPath(known, None)  # of plans as long as this one the layers prove nothing
    return FoundPath(found, layers)


def exact_share_s(watch: StopWatch) -> float:
    """Wall seconds that the exact search may take of what is left."""
    left = watch.remaining_s()
    return EXACT_S if left is None else min(EXACT_S, EXACT_SHARE * left)


def _better(known: PathResult, layered: PathResult) -> PathResult:
    """The better of a plan that is known and of what the layers found below it."""
    proved = layered.status in (Status.OPTIMAL, Status.INFEASIBLE)
    stats = _summed(
        known.stats, layered.stats, "" if proved else layered.stats.reason or OUT_OF_TIME
    )
    if layered.seconds is not None and (known.seconds is None or layered.seconds < known.seconds):
        return replace(layered, bound_s=min(layered.bound_s, layered.seconds), stats=stats)
    if known.seconds is None:
        return replace(layered, stats=stats)
    status = Status.OPTIMAL if proved else Status.FEASIBLE
    bound_s = known.seconds if proved else min(layered.bound_s, known.seconds)
    stats = stats if proved else replace(stats, solver=known.stats.solver)
    return replace(known, status=status, bound_s=bound_s, stats=stats)


def _not_proved(coarse: PathResult, exact: PathResult) -> PathResult:
    """A plan on coarse digits, the best of those perhaps, with what is known of all others."""
    stats = _summed(exact.stats, coarse.stats, exact.stats.reason)
    return replace(coarse, status=Status.FEASIBLE, bound_s=exact.bound_s, stats=stats)


def _summed(before: SolveStats, last: SolveStats, reason: str) -> SolveStats:
    """What two searches took together, by the name of the last one."""
    counters = Counter(dict(before.counters))
    counters.update(dict(last.counters))
    return SolveStats(
        last.solver,
        before.wall_s + last.wall_s,
        before.calls + last.calls,
        tuple(counters.items()),
        before.effort + last.effort,
        reason,
    )


def _nothing_to_do() -> PathResult:
    return PathResult(Status.OPTIMAL, 0, (), 0.0, 0.0, SolveStats("none"))

"""What a finished or broken-off search says: status, bound, the best, and those near the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from p2smt.plans.solution import SAME
from p2smt.result import Status
from p2smt.workload.search.answer import (
    NearRun,
    NearStrategies,
    PlanAnswer,
    PlannedStrategy,
    StrategyRun,
    StrategyTime,
)
from p2smt.workload.search.branch import StrategyTiming
from p2smt.workload.search.ledger import Closed, Ledger
from p2smt.workload.search.near import FAR, common, differing, nearest, outside
from p2smt.workload.search.planned import exact, planned
from p2smt.workload.search.ranking import AlikeRows, alike
from p2smt.workload.search.shortfall import reason, shortfall


def verdict(ledger: Ledger, timing: StrategyTiming, measured: Sequence[StrategyRun]) -> PlanAnswer:
    """The answer that a ledger gives, without the space in words and statistics."""
    question = ledger.candidates.question
    counts = ledger.counts(ledger.cutoff_s(question.within, question.top))
    ranked = ledger.ranked()
    if not ranked:
        status = Status.UNKNOWN if counts.open else Status.INFEASIBLE
        bound_s = 0.0 if counts.open else float(np.inf)
        missing = None if counts.open else shortfall(ledger)
        why = "" if counts.open else reason(ledger)
        return PlanAnswer(
            question, status, (), status, bound_s, counts, (), shortfall=missing, reason=why
        )
    best_s = ledger.least_s()
    bound_s = min(best_s, _least_s(ledger))
    proved = bound_s >= best_s * (1 - SAME)
    top = ledger.places()[: question.top]
    listed = tuple(_place(ledger, timing, one) for one in top)
    near = _near(ledger, timing, ranked, measured, proved=proved)
    return PlanAnswer(
        question,
        Status.OPTIMAL if proved else Status.FEASIBLE,
        listed,
        Status.COMPLETE if _ordered(ledger, top) else Status.TRUNCATED,
        bound_s,
        counts,
        (),
        near=near,
        measured=_measured(listed[0], measured),
        outside=outside(listed[0].strategy, measured),
    )


def listed_rows(ledger: Ledger, measured: Sequence[StrategyRun]) -> list[int]:
    """The rows whose placements the verdict names: the best ones, and that near a measured run."""
    question = ledger.candidates.question
    rows = [one.row for one in ledger.places()[: question.top]]
    near = _near_rows(ledger, ledger.ranked()) if rows else []
    if measured and near:
        strategies = [ledger.candidates.columns.strategy(row) for row in near]
        at, _, apart = nearest(strategies, measured)
        rows += [near[at]] if apart <= FAR and near[at] not in rows else []
    return rows


def _near_rows(ledger: Ledger, ranked: Sequence[int]) -> list[int]:
    """Of rows that were timed those near the best one."""
    limit_s = _near_s(ledger)
    return [row for row in ranked if ledger.time_s[row] <= limit_s]


def _near_s(ledger: Ledger) -> float:
    """What takes more, in seconds, is not near the best one."""
    return ledger.least_s() * (1 + ledger.candidates.question.within) * (1 + SAME)


def _measured(best: PlannedStrategy, measured: Sequence[StrategyRun]) -> NearRun | None:
    """The measured run that the best strategy is nearest to, however far it is."""
    if not measured:
        return None
    _, run, apart = nearest([best.strategy], measured)
    return NearRun(best, measured[run], apart)


def _place(ledger: Ledger, timing: StrategyTiming, one: AlikeRows) -> PlannedStrategy:
    """A strategy with those that are alike."""
    others = tuple(map(ledger.candidates.columns.strategy, one.others))
    return replace(planned(ledger, timing, one.row), alike=others)


def _least_s(ledger: Ledger) -> float:
    """What no strategy that can run beats, in seconds."""
    alive = (ledger.closed == Closed.OPEN) | (ledger.closed == Closed.EVALUATED)
    return float(ledger.low_s[alive].min())


def _ordered(ledger: Ledger, top: Sequence[AlikeRows]) -> bool:
    """Whether no other strategy can take one of these places, and each has its least time."""
    limit_s = ledger.top_s(len(top))
    return all(exact(ledger, one.row) for one in top) and not _unsettled(ledger, limit_s)


def _unsettled(ledger: Ledger, limit_s: float) -> bool:
    """Whether a strategy may take less than the limit, but that is not known."""
    alive = (ledger.closed == Closed.OPEN) | (ledger.closed == Closed.EVALUATED)
    inexact = ledger.low_s < ledger.time_s * (1 - SAME)
    return bool((alive & inexact & (ledger.low_s < limit_s)).any())


def _near(
    ledger: Ledger,
    timing: StrategyTiming,
    ranked: Sequence[int],
    measured: Sequence[StrategyRun],
    *,
    proved: bool,
) -> NearStrategies:
    within, limit_s = ledger.candidates.question.within, _near_s(ledger)
    rows = _near_rows(ledger, ranked)
    strategies = [ledger.candidates.columns.strategy(row) for row in rows]
    times = ledger.time_s[rows].tolist()
    all_known = proved and not _unsettled(ledger, limit_s)
    found = None
    if measured:
        at, run, apart = nearest(strategies, measured)
        if apart <= FAR:
            found = NearRun(planned(ledger, timing, rows[at]), measured[run], apart)
    return NearStrategies(
        within,
        Status.COMPLETE if all_known else Status.TRUNCATED,
        tuple(StrategyTime(*pair) for pair in zip(strategies, times, strict=True)),
        common(strategies),
        differing(strategies),
        found,
        len(alike(rows, ledger.time_s, ledger.family)),
    )

"""The function `plan`: the best strategies of a question with a proof, and those near the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from p2smt.cluster.nodes.blocking import check_stated
from p2smt.cluster.nodes.even import check_even
from p2smt.errors import OutOfTimeError
from p2smt.result import SearchLimits, SolveStats, StopWatch
from p2smt.skeletons.spread import Spread
from p2smt.workload.search.answer import PlanAnswer, StrategyRun
from p2smt.workload.search.branch import StrategyTiming, close
from p2smt.workload.search.choices import Choices
from p2smt.workload.search.collectives import CollectiveTiming
from p2smt.workload.search.cubes.wide import WidePlan
from p2smt.workload.search.ledger import Ledger
from p2smt.workload.search.planned import learn_usual
from p2smt.workload.search.pricing.candidates import Candidates
from p2smt.workload.search.pricing.placed import PlacedCandidates
from p2smt.workload.search.pricing.prices import SceneShelf
from p2smt.workload.search.question import PlanQuestion, Prices
from p2smt.workload.search.space import space_of
from p2smt.workload.search.verdict import listed_rows, verdict


def plan(
    question: PlanQuestion,
    limits: SearchLimits | None = None,
    measured: Sequence[StrategyRun] = (),
    spread: Spread | None = None,
) -> PlanAnswer:
    """The strategies and placements of least time per iteration, with a proof.

    Args:
        question: model, batch, topology, efficiency, the space and what restricts it.
        limits: the wall-clock limit; a proved answer does not depend on it.
        measured: strategies of measured runs: the near-optimal one that is nearest to them is
            named, and how the best one lies outside of them.

        spread: search part by part, in several processes or with a journal; the answer is the same.
            None: in one piece.

    Raises:
        InputError: no strategy is valid, the topology names no device, it is uneven, or nobody
            stated the bandwidth of its uplinks.
        EncodingBug: an answer does not take the time that the prediction says.

    On KeyboardInterrupt the best answer so far is returned, ``interrupted`` set.
    """
    check_even(question.topology)
    check_stated(question.topology)
    watch, choices = StopWatch.start(limits or SearchLimits()), Choices.of(question)
    candidates = Candidates.of(question, space_of(question, choices))
    singles = CollectiveTiming(
        PlacedCandidates.of(candidates, SceneShelf(question.topology), watch)
    )
    ledger = Ledger.of(candidates)
    if spread is None:
        timing, interrupted = _search(ledger, singles, watch)
        given_up = ""
    else:
        wide = WidePlan(ledger, singles, spread, tuple(measured)).search(watch)
        timing, interrupted, given_up = wide.timing, wide.interrupted, wide.given_up
    interrupted |= _learn_usual(ledger, timing, measured, watch)
    found = verdict(ledger, timing, measured)
    if given_up and not found.reason:
        found = replace(found, reason=given_up)
    counters = (("prices", len(timing.pricing.shelf)), ("axis sizes", len(candidates.sizes)))
    stats = SolveStats("branch and bound", watch.elapsed_s(), 1, counters)
    return replace(found, space=choices.text(), stats=stats, interrupted=interrupted)


def _learn_usual(
    ledger: Ledger, timing: StrategyTiming, measured: Sequence[StrategyRun], watch: StopWatch
) -> bool:
    """Know of the usual placements whether they are as good; whether it was interrupted."""
    try:
        learn_usual(ledger, timing, listed_rows(ledger, measured), watch)
    except KeyboardInterrupt:
        return True
    return False


def _search(
    ledger: Ledger, singles: CollectiveTiming, watch: StopWatch
) -> tuple[StrategyTiming, bool]:
    """Close the strategies; how they were timed, and whether it was interrupted.

    With programs no strategy takes longer than with single collectives, whose best ones are where
    that search starts.
    """
    question, timing = ledger.candidates.question, cast(StrategyTiming, singles)
    try:
        if question.prices is Prices.PROGRAMS:
            from p2smt.workload.search.programs import ProgramTiming

            _reach(ledger, singles, watch)
            timing = ProgramTiming.of(singles.pricing)
            best = np.array([one.row for one in ledger.places()[: question.top]], dtype=np.int64)
            timing.settle(ledger, best, np.inf, watch)
        _close(ledger, timing, watch)
    except OutOfTimeError:
        pass
    except KeyboardInterrupt:
        return timing, True
    return timing, False


def _reach(ledger: Ledger, singles: CollectiveTiming, watch: StopWatch) -> None:
    """Time strategies with single collectives, on a ledger of its own: its bounds hold there only.

    What it timed can be reached with programs, even if it was broken off.
    """
    first = Ledger.of(ledger.candidates)
    try:
        _close(first, singles, watch)
    finally:
        ledger.reach(first)


def _close(ledger: Ledger, timing: StrategyTiming, watch: StopWatch) -> None:
    """First what may be among the best, then what may be near the best one."""
    question = ledger.candidates.question
    for within in (0.0, question.within):
        close(ledger, timing, within, question.top, watch)

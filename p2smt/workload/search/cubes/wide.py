"""The ordinary answer of a plan by a search over cubes.

Members come back as texts; those that are listed are timed again here by the ordinary path, so
placement and programs are the ones that a search in one piece names.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from p2smt.cost.library.file import packaged_names
from p2smt.cost.library.model import Library
from p2smt.cost.library.registry import library_of
from p2smt.errors import OutOfTimeError
from p2smt.parallelism.placement import IntArray
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.skeletons.coordination.conclude import given_up_words
from p2smt.skeletons.outcome import SearchOutcome
from p2smt.skeletons.shared_table import new_table, shared_table
from p2smt.skeletons.spread import SearchTerms, Spread, run_spread
from p2smt.workload.search.answer import StrategyRun
from p2smt.workload.search.branch import StrategyTiming, runnable
from p2smt.workload.search.collectives import CollectiveTiming
from p2smt.workload.search.cubes.patient import PatientShelf
from p2smt.workload.search.cubes.shelf import PlanShelf
from p2smt.workload.search.cubes.space import PlanSpace, keep_plan_shelf, member_parts, scale_of
from p2smt.workload.search.ledger import Closed, Ledger
from p2smt.workload.search.pricing.placed import PlacedCandidates
from p2smt.workload.search.programs import ProgramTiming
from p2smt.workload.search.question import PlanQuestion, Prices
from p2smt.workload.search.verdict import listed_rows

SCALE = "a tick is tick_s seconds of an iteration, a power of two: times are whole numbers of ticks"
_FIRST = 8
"""So many strategies, those of the least bounds, set the first cutoff."""
CUBE_RULE = "sizes of pp, dp, cp, tp, then rows of the parallelism matrix in this order"


@dataclass(frozen=True, slots=True)
class WideSearched:
    """How strategies were timed, whether the search was interrupted, and what it gave up on."""

    timing: StrategyTiming
    interrupted: bool = False
    given_up: str = ""


@dataclass(frozen=True, slots=True)
class WidePlan:
    """A search for strategies as the options of ``spread`` say, on the candidates of a ledger.

    ``measured``: as :func:`p2smt.workload.search.plan.plan` takes it.
    """

    ledger: Ledger
    singles: CollectiveTiming
    spread: Spread
    measured: tuple[StrategyRun, ...] = ()

    def search(self, watch: StopWatch) -> WideSearched:
        """Fill the ledger.

        A few strategies are timed before any part is given out: they are the answer where the
        search is cut short before a part is closed.
        """
        first = Ledger.of(self.ledger.candidates)
        try:
            self._time_first(first, watch)
            outcome, timing = self._searched(first, watch)
        except OutOfTimeError:
            return self._first_only(first)
        except KeyboardInterrupt:
            return replace(self._first_only(first), interrupted=True)
        return WideSearched(timing, outcome.interrupted, given_up_words(outcome.given_up))

    def _first_only(self, first: Ledger) -> WideSearched:
        """What there is without any part: the times with single collectives can be reached."""
        self.ledger.reach(first)
        return WideSearched(self.singles)

    def _searched(self, first: Ledger, watch: StopWatch) -> tuple[SearchOutcome, StrategyTiming]:
        question = self._question
        tick_s, ceiling_s = scale_of(self.ledger), self._reached_s(first)
        ceiling = None if math.isinf(ceiling_s) else int(ceiling_s / tick_s)
        space = PlanSpace(question, tick_s, ceiling, _library(question.topology.library))
        keep_plan_shelf(space, PlanShelf.of(question, self.ledger.candidates))
        asked = SearchTerms("plan", question.top, SCALE, CUBE_RULE, tick_s)
        with nullcontext() if self.spread.scheduler else new_table() as table:
            outcome = run_spread(space, asked, self.spread, watch, table)
            _fill(self.ledger, space, outcome)
            found = np.flatnonzero(np.isfinite(self.ledger.time_s))
            if not outcome.status.settled:
                self._add(first)
            return outcome, self._retimed(table, found)

    def _add(self, first: Ledger) -> None:
        """Take the times of strategies that the search has not come to, or had them slower."""
        faster = np.flatnonzero(first.time_s < self.ledger.time_s)
        self.ledger.time_s[faster] = first.time_s[faster]
        self.ledger.place[faster] = first.place[faster]

    @property
    def _question(self) -> PlanQuestion:
        return self.ledger.candidates.question

    def _time_first(self, first: Ledger, watch: StopWatch) -> None:
        """Time a few strategies with single collectives: what the others reach is for the workers.

        Raises:
            OutOfTimeError: the watch expired.
        """
        rows = runnable(first, first.open_rows(math.inf)[: max(_FIRST, self._question.top)])
        if len(rows):
            self.singles.settle(first, rows, math.inf, watch)

    def _reached_s(self, first: Ledger) -> float:
        """With programs, a cutoff that single collectives reach; else infinite."""
        question = self._question
        if question.prices is Prices.COLLECTIVES:
            return math.inf
        return first.cutoff_s(question.within, question.top)

    def _retimed(self, table: str | None, found: IntArray) -> StrategyTiming:
        """Time those that were found and the answer lists anew: by the ordinary path, to the end.

        Programs that a worker has told are not sought again.
        """
        watch = StopWatch.start(SearchLimits())
        singles = PlacedCandidates.of(self.ledger.candidates, self.singles.pricing.shelf, watch)
        timing: StrategyTiming = CollectiveTiming(singles)
        if self._question.prices is Prices.PROGRAMS:
            timing = _with_told(ProgramTiming.of(singles), table)
        rows = np.array(listed_rows(self.ledger, self.measured), dtype=np.int64)
        rows = rows[np.isin(rows, found) & (self.ledger.place[rows] < 0)]
        if not len(rows):
            return timing
        low_s = self.ledger.low_s[rows].copy()
        self.ledger.time_s[rows] = np.inf
        timing.settle(self.ledger, rows, np.inf, watch)
        self.ledger.low_s[rows] = np.minimum(self.ledger.low_s[rows], low_s)
        return timing


def _with_told(timing: ProgramTiming, table: str | None) -> ProgramTiming:
    """A timing that has the programs of a table, each checked here."""
    told = None if table is None else shared_table(table)
    return replace(timing, programs=PatientShelf(timing.programs.answers, table=told, checks=True))


def _fill(ledger: Ledger, space: PlanSpace, outcome: SearchOutcome) -> None:
    """Put what a search found and proved into a ledger."""
    found: dict[int, float] = {}
    for member in outcome.best:
        row = space.row_of(member_parts(member)[0])
        seconds = member.value * space.tick_s
        found[row] = min(seconds, found.get(row, math.inf))
    rows = np.array(sorted(found), dtype=np.int64)
    ledger.time_s[rows] = [found[row] for row in rows.tolist()]
    question = ledger.candidates.question
    cutoff_s = ledger.cutoff_s(question.within, question.top)
    if space.ceiling is not None:
        cutoff_s = min(cutoff_s, (space.ceiling + 1) * space.tick_s)
    _bar(ledger, rows, cutoff_s)
    proved = outcome.status in (Status.OPTIMAL, Status.INFEASIBLE)
    bound_s = 0.0 if outcome.bound is None else outcome.bound * space.tick_s
    still = ledger.closed == Closed.OPEN
    least_s = float(np.nextafter(cutoff_s, np.inf)) if proved else bound_s
    ledger.low_s[still] = np.maximum(ledger.low_s[still], least_s)
    low_s = ledger.time_s[rows] if proved else np.maximum(ledger.low_s[rows], bound_s)
    ledger.low_s[rows] = low_s
    ledger.closed[rows] = Closed.EVALUATED


def _bar(ledger: Ledger, found: IntArray, cutoff_s: float) -> None:
    """Mark those that the launcher cannot run, of those that communication alone rules out."""
    rows = ledger.open_rows(cutoff_s)
    runnable(ledger, np.setdiff1d(rows, found))


def _library(name: str) -> Library | None:
    """A library that a process which is started anew does not know."""
    return library_of(name) if name and name not in packaged_names() else None

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
class WidePlan:
    """A search for strategies as the options of ``spread`` say, on the candidates of a ledger.

    ``measured``: as :func:`p2smt.workload.search.plan.plan` takes it.
    """

    ledger: Ledger
    singles: CollectiveTiming
    spread: Spread
    measured: tuple[StrategyRun, ...] = ()

    def search(self, watch: StopWatch) -> tuple[StrategyTiming, bool]:
        """Fill the ledger; how its strategies were timed, and whether it was interrupted."""
        question = self._question
        try:
            ceiling_s = self._reached_s(watch)
        except OutOfTimeError:
            return self.singles, False
        except KeyboardInterrupt:
            return self.singles, True
        tick_s = scale_of(self.ledger)
        ceiling = None if math.isinf(ceiling_s) else int(ceiling_s / tick_s)
        space = PlanSpace(question, tick_s, ceiling, _library(question.topology.library))
        keep_plan_shelf(space, PlanShelf.of(question, self.ledger.candidates))
        asked = SearchTerms("plan", question.top, SCALE, CUBE_RULE, tick_s)
        with nullcontext() if self.spread.scheduler else new_table() as table:
            outcome = run_spread(space, asked, self.spread, watch, table)
            _fill(self.ledger, space, outcome)
            return self._retimed(table), outcome.interrupted

    @property
    def _question(self) -> PlanQuestion:
        return self.ledger.candidates.question

    def _reached_s(self, watch: StopWatch) -> float:
        """With programs, a cutoff that single collectives reach; else infinite.

        Those of few strategies: what the others reach is for the workers to find.

        Raises:
            OutOfTimeError: the watch expired.
        """
        question = self._question
        if question.prices is Prices.COLLECTIVES:
            return math.inf
        first = Ledger.of(self.ledger.candidates)
        rows = runnable(first, first.open_rows(math.inf)[: max(_FIRST, question.top)])
        if len(rows):
            self.singles.settle(first, rows, math.inf, watch)
        return first.cutoff_s(question.within, question.top)

    def _retimed(self, table: str | None) -> StrategyTiming:
        """Time those anew that the answer lists: by the ordinary path, without a limit.

        Programs that a worker has told are not sought again.
        """
        watch = StopWatch.start(SearchLimits())
        singles = PlacedCandidates.of(self.ledger.candidates, self.singles.pricing.shelf, watch)
        timing: StrategyTiming = CollectiveTiming(singles)
        if self._question.prices is Prices.PROGRAMS:
            timing = _with_told(ProgramTiming.of(singles), table)
        rows = np.array(listed_rows(self.ledger, self.measured), dtype=np.int64)
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
    ledger.low_s[rows] = ledger.time_s[rows] if proved else bound_s
    ledger.closed[rows] = Closed.EVALUATED


def _bar(ledger: Ledger, found: IntArray, cutoff_s: float) -> None:
    """Mark those that the launcher cannot run, of those that communication alone rules out."""
    rows = ledger.open_rows(cutoff_s)
    runnable(ledger, np.setdiff1d(rows, found))


def _library(name: str) -> Library | None:
    """A library that a process which is started anew does not know."""
    return library_of(name) if name and name not in packaged_names() else None

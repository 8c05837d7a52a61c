"""Closing one cube: the ordinary branch and bound over its strategies and placements alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from p2smt.parallelism.placement import IntArray, Matrix
from p2smt.result import StopWatch
from p2smt.search.spaces.rows import MatrixRules
from p2smt.skeletons.shared_table import SharedTable
from p2smt.workload.search.branch import StrategyTiming, close
from p2smt.workload.search.collectives import CollectiveTiming
from p2smt.workload.search.cubes.patient import PatientShelf
from p2smt.workload.search.cubes.shelf import PlanShelf, ProgramTexts, placed
from p2smt.workload.search.ledger import Closed, Ledger
from p2smt.workload.search.planned import exact
from p2smt.workload.search.pricing.candidates import Candidates
from p2smt.workload.search.pricing.placed import PlacedCandidates
from p2smt.workload.search.pricing.prices import as_matrix
from p2smt.workload.search.programs import ProgramTiming
from p2smt.workload.search.question import Prices
from p2smt.workload.strategy import Strategy


@dataclass(slots=True)
class CubeLedger(Ledger):
    """A ledger of some strategies whose cutoff is also that of the whole search, in seconds."""

    ceiling_s: Callable[[], float] = field(default=lambda: np.inf)

    def cutoff_s(self, within: float, top: int) -> float:
        """Strategies that take more are neither near the best nor take one of the first places."""
        return min(Ledger.cutoff_s(self, within, top), self.ceiling_s())


@dataclass(frozen=True, slots=True)
class CubeWatch(StopWatch):
    """A watch that also runs out when the search is over."""

    stopped: Callable[[], bool] = field(default=lambda: False)

    def expired(self) -> bool:
        """Whether no time is left, or none is needed."""
        return self.stopped() or self.remaining_s() == 0.0


@dataclass(frozen=True, slots=True)
class TimedStrategy:
    """A strategy of a cube on its best placement there, by its row among all candidates."""

    row: int
    strategy: Strategy
    matrix: Matrix
    programs: ProgramTexts
    seconds: float


@dataclass(slots=True)
class PlanCube:
    """The strategies of a block whose matrices obey more rules than those of the question.

    ``rows`` are theirs among all candidates.
    """

    shelf: PlanShelf
    rows: IntArray
    ledger: CubeLedger
    timing: StrategyTiming
    budget: CubeWatch
    deadline: StopWatch

    @staticmethod
    def of(
        shelf: PlanShelf,
        rows: IntArray,
        candidates: Candidates,
        ceiling_s: Callable[[], float],
        budget: CubeWatch,
        deadline: StopWatch,
        table: SharedTable | None = None,
    ) -> PlanCube:
        """Nothing timed so far; ``candidates`` are those rows, with the rules of the cube."""
        low_s = shelf.known.low_s[rows].copy()
        ledger = CubeLedger(candidates, low_s, np.zeros(len(rows), int), ceiling_s=ceiling_s)
        singles = placed(candidates, shelf.singles, budget)
        timing: StrategyTiming = CollectiveTiming(singles)
        if shelf.question.prices is Prices.PROGRAMS:
            timing = _with_programs(shelf, singles, deadline, table)
        return PlanCube(shelf, rows, ledger, timing, budget, deadline)

    def close(self) -> None:
        """Close the strategies; those that may be among the best, then those near the best.

        Raises:
            OutOfTimeError: the budget or the deadline came first, or the search is over.
        """
        question = self.shelf.question
        for within in (0.0, question.within):
            close(self.ledger, self.timing, within, question.top, self.budget)

    def timed(self) -> list[TimedStrategy]:
        """Those that are not above the cutoff, in no order."""
        question, ledger = self.shelf.question, self.ledger
        cutoff_s = ledger.cutoff_s(question.within, question.top)
        within = np.isfinite(ledger.time_s) & (ledger.time_s <= cutoff_s)
        return [self._timed(row) for row in np.flatnonzero(within).tolist()]

    def unproved(self) -> bool:
        """Whether a strategy may be sought whose programs are not proved the best."""
        question, ledger = self.shelf.question, self.ledger
        cutoff_s = ledger.cutoff_s(question.within, question.top)
        evaluated = np.flatnonzero(ledger.closed == Closed.EVALUATED)
        near = evaluated[ledger.low_s[evaluated] <= cutoff_s].tolist()
        return not all(exact(ledger, row) for row in near)

    def low_s(self) -> float:
        """No strategy of the cube that can run takes less, in seconds; infinite: none can."""
        ledger = self.ledger
        alive = (ledger.closed == Closed.OPEN) | (ledger.closed == Closed.EVALUATED)
        return float(ledger.low_s[alive].min(initial=np.inf))

    def _timed(self, row: int) -> TimedStrategy:
        ledger, place = self.ledger, int(self.ledger.place[row])
        block = int(ledger.candidates.block[row])
        matrix = as_matrix(self.timing.pricing.placed(block).matrices[place])
        found = self.timing.answers(row, place)
        texts: ProgramTexts = {
            name: None if one.program is None else str(one.program) for name, one in found.items()
        }
        return TimedStrategy(
            int(self.rows[row]),
            ledger.candidates.columns.strategy(row),
            matrix,
            texts,
            float(ledger.time_s[row]),
        )


def narrow(shelf: PlanShelf, rows: IntArray, rules: MatrixRules) -> Candidates:
    """Some of the candidates under other rules, which leave each of them a placement."""
    whole = shelf.candidates
    return Candidates(
        replace(whole.question, rules=rules),
        whole.columns.take(rows),
        whole.work.take(rows),
        whole.sizes,
        whole.block[rows],
        np.ones(len(whole.sizes), dtype=np.int64),
    )


def _with_programs(
    shelf: PlanShelf, singles: PlacedCandidates, deadline: StopWatch, table: SharedTable | None
) -> ProgramTiming:
    """Programs are those of the process: what one cube finds, the next one knows."""
    programs = PatientShelf(shelf.programs.answers, shelf.programs.kept, deadline, table)
    return ProgramTiming(singles.at(shelf.refined), singles.at(shelf.least), programs)

"""Closing one cube of a problem: proposals and programs until nothing of it can be among the best.

Every matrix of the cube that has a price is excluded from then on, so each proposal is the least of
what is left under bounds that never exceed the truth: once it comes after the cutoff, by its ticks
or at equal ticks by its entries, all that is left does.
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from p2smt.errors import OutOfTimeError
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.result import Result, SearchLimits, Status, StopWatch
from p2smt.search.bound_table import BoundTable
from p2smt.search.one_request import RequestAnswers
from p2smt.search.placements import best_matrix
from p2smt.search.spaces.row_bounds import narrowed
from p2smt.search.spaces.rows import MatrixCubes, flat
from p2smt.skeletons.cube import Closure, CubeVerdict, Member, OverBudget
from p2smt.skeletons.space import CubeTask, Signals
from p2smt.solvers.ask import stopping_when


@dataclass(slots=True)
class CubeSearch:
    """The search in one cube; ``formula`` is the cube's bound without a solver, in ticks.

    ``best``: members of the cube in order, at most ``top``.  ``unproved``: a matrix whose programs
    are not proved the best costs no less than so many ticks; None: there is none.
    """

    table: BoundTable
    answers: RequestAnswers
    cubes: MatrixCubes
    task: CubeTask
    signals: Signals
    formula: int
    best: list[Member] = field(default_factory=list)
    unproved: int | None = None
    _priced: set[Matrix] = field(default_factory=set)
    _started_s: float = field(default_factory=time.monotonic)

    def run(self, *, may_split: bool) -> Closure | OverBudget:
        """Close the cube; above its budget it is given back, if it may be split."""
        lowest = self.formula
        while True:
            if may_split and self._past(self.task.budget_s):
                return OverBudget(self.task.cube, tuple(self.best))
            if self.cut:
                return self._closure(CubeVerdict.UNKNOWN, lowest)
            found = self._proposal(may_split=may_split)
            cutoff = self.cutoff()
            if found.status is Status.INFEASIBLE:
                return self._ended(None if cutoff is None else cutoff.value + 1)
            if found.bound is not None and cutoff and found.bound > cutoff.value:
                return self._ended(found.bound)
            if found.status is not Status.OPTIMAL or found.value is None or found.bound is None:
                continue
            lowest = max(lowest, min([found.bound, *(one.value for one in self.best)]))
            if cutoff and (found.bound, flat(found.value)) > (cutoff.value, cutoff.tie):
                return self._ended(found.bound)
            try:
                self._price(found.value)
            except OutOfTimeError:
                return self._closure(CubeVerdict.UNKNOWN, lowest)

    def cutoff(self) -> Member | None:
        """What a member must precede, or be: the worst of the best ``top`` that are known."""
        known = sorted({*self.task.known, *self.best})
        mine = known[self.task.top - 1] if len(known) >= self.task.top else None
        told = self.signals.cutoff()
        return min((one for one in (mine, told) if one is not None), default=None)

    def _proposal(self, *, may_split: bool) -> Result[Matrix]:
        """A matrix of least cost under the table, of those that are left and may count."""
        self.table.calls += 1
        cutoff, excluded = self.cutoff(), frozenset(self._priced)
        rules = self.cubes.fixed(self.task.cube)
        question = replace(self.table.question(excluded), rules=rules)
        if cutoff is not None:
            question = replace(question, at_most=cutoff.value)
        question = narrowed(question, self.cubes.rows(self.task.cube))
        left = StopWatch.start(self._limits(self.task.budget_s if may_split else None))
        with stopping_when(self._useless):
            return best_matrix(question, self.table.solver, left)

    def _useless(self, bound: int | None) -> bool:
        """Whether a solver need not go on: the search is over, or nothing it finds would count."""
        cutoff = self.cutoff()
        beyond = bound is not None and cutoff is not None and bound > cutoff.value
        return beyond or self.signals.stopped()

    def _limits(self, budget_s: float | None) -> SearchLimits:
        """The time left of the budget and of the deadline, whichever ends first."""
        gone_s = time.monotonic() - self._started_s
        limits = [one - gone_s for one in (budget_s, self.task.deadline_s) if one is not None]
        left_s = max(0.0, min(limits)) if limits else None
        return SearchLimits(left_s, None, self.task.seed, self.task.threads)

    def _price(self, matrix: Matrix) -> None:
        """Find the programs of a matrix; a member if all are proved the best.

        Raises:
            OutOfTimeError: the deadline came first, or the search is over.
        """
        for entry in self.table.open(matrix):
            limits = self._limits(None)
            with stopping_when(lambda _: self.signals.stopped()):
                answer = self.answers.of(entry.request, entry.scene, limits)
            if self.cut:
                raise OutOfTimeError
            self.table.refine(entry, answer)
            if answer is None:
                return
        found, ticks = self.table.price(matrix), self.table.ticks(matrix)
        if found is None or ticks is None:
            return
        self._priced.add(matrix)
        if found.status is not Status.OPTIMAL:
            self.unproved = ticks if self.unproved is None else min(ticks, self.unproved)
            return
        insort(self.best, Member(ticks, flat(matrix), Placement(matrix).text()))
        del self.best[self.task.top :]

    @property
    def cut(self) -> bool:
        """Whether the deadline came, or the search is over: what was found may not be the best."""
        return self._past(self.task.deadline_s) or self.signals.stopped()

    def _past(self, limit_s: float | None) -> bool:
        return limit_s is not None and time.monotonic() - self._started_s >= limit_s

    def _ended(self, bound: int | None) -> Closure:
        """Closed by proof: what is left costs at least ``bound`` (None: nothing is left)."""
        cutoff = self.cutoff()
        self.best = [one for one in self.best if cutoff is None or one <= cutoff]
        if self.unproved is not None and (cutoff is None or self.unproved <= cutoff.value):
            least = [one.value for one in self.best]
            return self._closure(CubeVerdict.UNKNOWN, min([self.unproved, *least]))
        if self.best:
            return self._closure(CubeVerdict.SOLVED, self.best[0].value)
        if cutoff is None:
            return self._closure(CubeVerdict.EMPTY, None)
        return self._closure(
            CubeVerdict.BOUNDED, max(self.formula, min(_some(bound), cutoff.value))
        )

    def _closure(self, verdict: CubeVerdict, bound: int | None) -> Closure:
        best: Sequence[Member] = () if verdict is CubeVerdict.BOUNDED else self.best
        if best and bound is not None:
            bound = min(bound, best[0].value)
        return Closure(self.task.cube, verdict, bound, tuple(best))


def _some(bound: int | None) -> int:
    """A bound, where nothing is left one that is above all."""
    return 2**62 if bound is None else bound

"""The fastest plan of at most so many steps, found and proved by a solver.

Rows of permutes are lower bounds.  Every answer is checked and priced again; where a step is
dearer than its row, the solver is told what it costs and asked again, until no plan is left that
could be faster than the best one priced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from p2smt.arrays.ends import Ends
from p2smt.arrays.memory import MemoryLimit, within
from p2smt.arrays.steps import ArrayStep
from p2smt.cost.redistribution.prices import StepPrices
from p2smt.errors import EncodingBug, InputError, TooLarge
from p2smt.problems.redistribution import ExactMove, Moves, RedistributionProblem
from p2smt.result import (
    OUT_OF_EFFORT,
    OUT_OF_TIME,
    Result,
    SearchLimits,
    SolveStats,
    Status,
    StopWatch,
)
from p2smt.search.redistribution.layered.question import LayeredQuestion
from p2smt.search.redistribution.layered.rows import RowTable
from p2smt.search.redistribution.path import PathResult
from p2smt.solvers.ask import ask
from p2smt.solvers.questions import Optimum
from p2smt.solvers.solver import Solver


def best_layered(
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    limits: SearchLimits,
    max_steps: int,
    solver: Solver = Solver.CPSAT,
    at_most_s: float | None = None,
) -> PathResult:
    """The fastest plan of at most ``max_steps`` steps under a cap, among all of ``ends``.

    ``at_most_s``: only plans that take no longer are looked for; INFEASIBLE then says that there
    is none.

    Raises:
        TooLarge: there are too many kinds of groups for a table, or chunks are nested.
        EncodingBug: an answer breaks a rule or is faster than the solver was told.
    """
    hunt = _Hunt(memory, limits, solver, at_most_s)
    for number, (one, price) in enumerate(zip(ends, prices, strict=True)):
        hunt.run(number, one, price, max_steps)
    return hunt.result()


class _Hunt:
    """The best plan so far, and what is proved of each of the ends."""

    def __init__(
        self, memory: MemoryLimit, limits: SearchLimits, solver: Solver, at_most_s: float | None
    ) -> None:
        self.memory, self.solver = memory, solver
        self.watch = StopWatch.start(limits)
        self.at_most_s = at_most_s
        self.best: tuple[float, int, tuple[ArrayStep, ...]] | None = None
        self.bounds: list[float] = []
        self.settled, self.reason = True, ""
        self.calls = self.exact = 0

    def run(self, number: int, ends: Ends, prices: StepPrices, max_steps: int) -> None:
        """Settle one of the ends."""
        if ends.frame.nested:
            rule = "are planned by the exact search only"
            raise TooLarge("nested chunks of uneven dimensions", rule)
        if max(map(ends.frame.local_bytes, (ends.source, ends.target))) > self.memory.limit_bytes:
            return
        if ends.source == ends.target:
            self._take(number, 0.0, ())
            return
        if self.watch.expired():
            self._unsettled(0.0, OUT_OF_TIME)
        elif max_steps > 0:
            table = RowTable(ends, prices, self.memory)
            self._ask(number, LayeredQuestion(table, max_steps), prices)

    def _unsettled(self, bound_s: float, reason: str) -> None:
        self.bounds.append(bound_s)
        self.settled, self.reason = False, self.reason or reason

    def _ask(self, number: int, question: LayeredQuestion, prices: StepPrices) -> None:
        """Ask, price and ask again."""
        known: tuple[ExactMove, ...] = ()
        bound_s = 0.0
        while True:
            found = ask(self._problem(question, known), Optimum(), self.solver, self.watch.left())
            self.calls += 1
            bound_s = max(bound_s, (found.bound or 0) * question.tick_s)
            if found.status is Status.INFEASIBLE:
                self.bounds.append(self._most_s())
                return
            if found.value is None:
                break
            steps = self._checked(question, found.value)
            self._take(number, sum(prices.step(step).seconds for step in steps), steps)
            dearer = _dearer(question, prices, steps, found, known)
            if not dearer:
                self.bounds.append(bound_s)
                self.settled &= found.bound == dict(found.stats.counters)["objective"]
                return
            known += dearer
            self.exact += len(dearer)
        self._unsettled(bound_s, found.stats.reason or self._spent())

    def _spent(self) -> str:
        """What ran out, where the solver does not say."""
        effort = self.watch.limits.effort is not None and not self.watch.expired()
        return OUT_OF_EFFORT if effort else OUT_OF_TIME

    def _problem(
        self, question: LayeredQuestion, known: tuple[ExactMove, ...]
    ) -> RedistributionProblem:
        """The problem with what is known by now: only plans that are faster than the best."""
        problem = replace(question.problem, exact=known)
        if self._most_s() == math.inf:
            return problem
        at_most = question.ticks(self._most_s()) - (self.best is not None)
        rows = tuple(row for row in problem.rows if row.ticks <= at_most)
        return replace(problem, rows=rows, at_most=at_most)

    def _most_s(self) -> float:
        """What the best plan takes, or a plan may; without either there is no limit."""
        given = math.inf if self.at_most_s is None else self.at_most_s
        return given if self.best is None else min(given, self.best[0])

    def _checked(self, question: LayeredQuestion, moves: Moves) -> tuple[ArrayStep, ...]:
        """The steps of an answer, each of which keeps its own rule, and all to the cap."""
        steps, ends = question.steps(moves), question.ends
        try:
            for step in steps:
                step.check(ends.frame)
        except InputError as error:
            raise EncodingBug(str(error), question.problem.source, moves) from error
        if not steps or steps[-1].after != ends.target:
            raise EncodingBug("the steps end elsewhere", question.problem.target, moves)
        if not within(ends.frame, ends.source, steps, self.memory):
            raise EncodingBug("the steps exceed the cap", self.memory.limit_bytes, moves)
        return steps

    def _take(self, number: int, seconds: float, steps: tuple[ArrayStep, ...]) -> None:
        if self.best is None or seconds < self.best[0]:
            self.best = seconds, number, steps

    def result(self) -> PathResult:
        """The answer over all ends."""
        counters = (("exact_rows", self.exact),)
        stats = SolveStats(
            self.solver.value, self.watch.elapsed_s(), self.calls, counters, reason=self.reason
        )
        bound_s = min(self.bounds, default=0.0)
        if self.best is None:
            status = Status.INFEASIBLE if self.settled else Status.UNKNOWN
            bound_s = 0.0 if bound_s == math.inf else bound_s
            return PathResult(status, 0, (), None, bound_s, stats)
        status = Status.OPTIMAL if self.settled else Status.FEASIBLE
        seconds, number, steps = self.best
        return PathResult(status, number, steps, seconds, min(bound_s, seconds), stats)


def _dearer(
    question: LayeredQuestion,
    prices: StepPrices,
    steps: Sequence[ArrayStep],
    found: Result[Moves],
    known: Sequence[ExactMove],
) -> tuple[ExactMove, ...]:
    """What the solver is to be told: nothing if its ticks were those of the steps.

    Raises:
        EncodingBug: it was told more than the steps cost, or what it was told did not count.
    """
    told = dict(found.stats.counters)["objective"]
    exact = [question.exact(step, prices.step(step).seconds) for step in steps]
    ticks = sum(one.ticks for one in exact)
    if found.bound == told and ticks + len(steps) < told:
        raise EncodingBug(f"steps of {ticks} ticks, told {told}", question.problem.source, None)
    if ticks <= told + len(steps):
        return ()
    new = tuple(one for one in exact if one.move.permutes and one not in known)
    new = new or tuple(one for one in exact if one not in known)
    if not new:
        raise EncodingBug(f"steps of {ticks} ticks, told {told}", question.problem.source, None)
    return new

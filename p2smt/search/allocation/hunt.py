"""The search over all grids: known orders, then each grid in the order of its bound.

Many matrices inside share the same grid outside but not the same prices, so each is settled on its
own; most are, by their first bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from p2smt.errors import EncodingBug
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem
from p2smt.result import SearchLimits, StopWatch
from p2smt.search.allocation.check import ticks_of
from p2smt.search.allocation.grids import CellGrid, grids
from p2smt.search.allocation.near.climb import Climb
from p2smt.search.allocation.near.every import MOST_CELLS, every_order, number_of_orders
from p2smt.search.allocation.near.known import HostOrder, costed, filled
from p2smt.search.allocation.orders import row_major_grid
from p2smt.search.allocation.question import Tree, switch_tree
from p2smt.search.allocation.settle import GridSearch
from p2smt.search.allocation.terms import term
from p2smt.search.joint import ProgressCallback
from p2smt.solvers.solver import Solver

_RESOLUTION = 2**32
"""Ticks of the first answer."""
WITHOUT_LIMIT_S = 60.0
"""Seconds after which a search without a limit stops, if there is no proof by then."""
FEW_ORDERS = 5000
"""Orders of all grids together that are tried one by one where no bound meets the answer.

A question's ticks take some 0.1 ms, and most orders are out by them; costing one takes 5 ms."""
_CLIMB, _STEPS = 0.5, 60_000


@dataclass(slots=True)
class Hunt:
    """A search on named hosts; ``best`` is what was found so far, ``bound_s`` what was proved.

    Up to ``few_orders`` orders are tried one by one where no bound meets the answer.
    """

    problem: Problem
    listed: Sequence[IntArray]
    limits: SearchLimits
    solver: Solver
    progress: ProgressCallback | None = None
    few_orders: int = FEW_ORDERS
    best: HostOrder | None = None
    bound_s: float = 0.0
    calls: int = 0
    interrupted: bool = False
    _tick_s: float = 1.0
    _searches: list[GridSearch] = field(default_factory=list)

    @property
    def proved(self) -> bool:
        """Whether no order is faster, to a tick for each request."""
        slack = (len(self.problem.requests) + 2) * self._tick_s
        return self.best is not None and self.best.objective_s <= self.bound_s + slack

    def run(self) -> None:
        """Search to the limits; an interrupt keeps what was found."""
        limit_s = self.limits.time_limit_s
        watch = StopWatch.start(self.limits)
        if limit_s is None:
            watch = watch.ending_at(WITHOUT_LIMIT_S)
        try:
            self._known_orders(watch)
            self._settle(watch)
        except KeyboardInterrupt:
            self.interrupted = True
        self._hold()
        self._tell()

    def _hold(self) -> None:
        """What was proved is held against the best order, as the cost model has it.

        Raises:
            EncodingBug: its grid was said to have none so fast, or the question that was asked of
                the solvers has it cost more.
        """
        best = self.best
        if best is None:
            return
        slack = len(self.problem.requests) + 2
        for one in self._searches:
            if one.grid != best.grid:
                continue
            rows = one.rows(best.slots)
            if one.bound > self._ticks() + slack:
                raise EncodingBug("an order is faster than its grid's bound", one.bound, rows)
            question = one.fine().problem
            if ticks_of(question, rows) > best.objective_s / self._tick_s + slack:
                raise EncodingBug("a question has an order cost too much", question, rows)

    def _known_orders(self, watch: StopWatch) -> None:
        """The orders that answers are compared with; the first is costed whatever the time."""
        every, usual = grids(self.problem), row_major_grid(self.problem)
        alike = [grid for grid in every if grid.outer == usual]
        for grid in alike or every[:1]:
            for slots in filled(grid, self.listed):
                if self.best is None or not watch.expired():
                    self._take(grid, slots)

    def _take(self, grid: CellGrid, slots: IntArray) -> bool:
        """Cost an order device by device; keep it if it is the best."""
        order = costed(self.problem, grid, slots)
        if self.best is not None and order.objective_s >= self.best.objective_s:
            return False
        self.best = order
        return True

    def _ticks(self) -> int:
        """The ticks of the best order, each request rounded down as the questions are."""
        if self.best is None:
            return 0
        return max(0, int(self.best.objective_s / self._tick_s) - len(self.problem.requests))

    def _settle(self, watch: StopWatch) -> None:
        objective_s = 0.0 if self.best is None else self.best.objective_s
        self._tick_s = objective_s / _RESOLUTION or 1.0
        tree = switch_tree(self.problem.topology)
        self._searches = self._begun(tree, watch)
        self._tell()
        waiting = sorted(self._searches, key=lambda one: one.bound)
        while waiting and not watch.expired():
            one = waiting.pop(0)
            if one.bound < self._ticks():
                share = watch.remaining_s() or 0.0
                part = share / (1 + sum(w.bound < self._ticks() for w in waiting))
                self._grid(one, watch.ending_at(watch.elapsed_s() + part))
            self._tell()
        self._last(tree, watch)

    def _few(self) -> bool:
        """Whether the orders of all grids that are not settled can be tried one by one."""
        left = [one for one in self._searches if one.bound < self._ticks()]
        if any(one.grid.cells > MOST_CELLS for one in left):
            return False
        return sum(number_of_orders(one.tree, one.grid.cells) for one in left) <= self.few_orders

    def _begun(self, tree: Tree, watch: StopWatch) -> list[GridSearch]:
        """Every grid with its first bound and its known orders; none if the time runs out."""
        found = []
        for grid in grids(self.problem):
            if watch.expired():
                return []
            one = self._search(grid, tree)
            one.start()
            found.append(one)
            ticks, slots = next(one.known(self.listed[0], watch))
            if ticks < self._ticks():
                self._take(one.grid, slots)
        return found

    def _search(self, grid: CellGrid, tree: Tree) -> GridSearch:
        slots = next(filled(grid, self.listed))
        terms = tuple(term(self.problem, grid, one, slots) for one in self.problem.requests)
        return GridSearch(self.problem, grid, terms, tree, self._tick_s, self.solver, self._take)

    def _grid(self, one: GridSearch, watch: StopWatch) -> None:
        """Settle a grid; where that fails, climb from the best of its known orders."""
        left = watch.remaining_s() or 0.0
        one.run(self._ticks, watch.ending_at(watch.elapsed_s() + _CLIMB * left))
        if one.bound < self._ticks() and not self._few():
            self._climb(one, watch)

    def _climb(self, one: GridSearch, watch: StopWatch) -> None:
        """Better orders near the two best that are known for a grid."""
        pool_of, fine = one.tree.pool_of(), one.fine().problem
        starts = [slots for _, slots in islice(one.known(self.listed[0], watch), 2)]
        for number, slots in enumerate(starts):
            left = (watch.remaining_s() or 0.0) / (len(starts) - number)
            climb = Climb(fine, [pool_of[s] for s in slots.tolist()], self.limits.seed)
            for ticks, pools in climb.run(watch.ending_at(watch.elapsed_s() + left), _STEPS):
                if ticks < self._ticks():
                    self._take(one.grid, one.slots(one.counts(pools)))

    def _last(self, tree: Tree, watch: StopWatch) -> None:
        """Where no bound meets the answer and there are few orders: all that may be faster."""
        unsettled = [one for one in self._searches if one.bound < self._ticks()]
        if self.proved or watch.expired() or not self._few():
            return
        for one in unsettled:
            pool_of, fine = tree.pool_of(), one.fine().problem
            for slots in every_order(tree, one.grid.cells):
                if watch.expired():
                    return
                if ticks_of(fine, one.counts([pool_of[s] for s in slots.tolist()])) < self._ticks():
                    self._take(one.grid, slots)
        for one in unsettled:
            one.bound = self._ticks()
        self._tell()

    def _tell(self) -> None:
        """The bound over all grids, and the progress."""
        best = self._ticks()
        if self._searches:
            least = min(min(one.bound, best) for one in self._searches)
            self.bound_s = min(least * self._tick_s, self.best.objective_s if self.best else 0.0)
            self.calls = sum(one.calls for one in self._searches)
        if self.progress is not None:
            self.progress(self.best.objective_s if self.best else None, self.bound_s)

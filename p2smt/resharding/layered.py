"""The fastest plan of at most so many steps, found and proved by a solver.

Rows of permutes are lower bounds.  Every answer is checked and priced again; where a step is
dearer than its row, the solver is told what it costs and asked again, until no plan is left that
could be faster than the best one priced.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from p2smt.errors import EncodingBug, InputError, TooLarge
from p2smt.parallelism.placement import IntArray
from p2smt.problems.redistribution import (
    PARTIAL,
    REPLICATED,
    CostToGo,
    ExactMove,
    LevelCut,
    Move,
    MoveRow,
    Moves,
    Places,
    RedistributionProblem,
)
from p2smt.resharding.cuts import PathResult
from p2smt.resharding.endpoints import Ends
from p2smt.resharding.layered_rows import RowTable
from p2smt.resharding.states import ArrayState
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import KINDS, ArrayStep, MemoryLimit, StepKind, within
from p2smt.result import (
    OUT_OF_EFFORT,
    OUT_OF_TIME,
    Result,
    SearchLimits,
    SolveStats,
    Status,
    StopWatch,
)
from p2smt.solvers.ask import Optimum, Solver, ask


def best_layered(
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    limits: SearchLimits,
    max_steps: int,
    at_most_s: float | None = None,
) -> PathResult:
    """The fastest plan of at most ``max_steps`` steps under a cap, among all of ``ends``.

    ``at_most_s``: only plans that take no longer are looked for; INFEASIBLE then says that there
    is none.

    Raises:
        TooLarge: there are too many kinds of groups for a table, or chunks are nested.
        EncodingBug: an answer breaks a rule or is faster than the solver was told.
    """
    hunt = _Hunt(memory, limits, at_most_s)
    for number, (one, price) in enumerate(zip(ends, prices, strict=True)):
        hunt.run(number, one, price, max_steps)
    return hunt.result()


class _Hunt:
    """The best plan so far, and what is proved of each of the ends."""

    def __init__(self, memory: MemoryLimit, limits: SearchLimits, at_most_s: float | None) -> None:
        self.memory = memory
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
            best_s = None if self.best is None else self.best[0]
            self.watch.tell("steps by the solver", best_s, bound_s or None)
            found = ask(self._problem(question, known), Optimum(), Solver.CPSAT, self.watch.left())
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
        rows = tuple(row for row in problem.rows if row.price <= at_most)
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
            Solver.CPSAT.value, self.watch.elapsed_s(), self.calls, counters, reason=self.reason
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


# What a plan costs at least before and after a layer, by counts of digits alone.
# Digits of one class with the same beginning and end play one *role*.  Forgetting which digit of a
# role is where, and in which position, leaves few states: how many of each role are in each group
# of dimensions.  Every step is a step between such states, and no dearer there; so the cheapest
# ways from the source and to the destination bound the steps before and after a layer.


MOST_STATES = 1200

_Floats: TypeAlias = npt.NDArray[np.float64]


def cost_to_go_of(problem: RedistributionProblem) -> CostToGo | None:
    """The bounds, by dimensions if these are few states; None if there are too many."""
    dims = tuple((dim,) for dim in range(problem.dims))
    for bins in (dims, (tuple(range(problem.dims)),)):
        states = _States(problem, bins)
        if states.number <= MOST_STATES:
            return states.outlook()
    return None


class _States:
    """Counts of each role in each bin of dimensions, replicated and partial."""

    def __init__(self, problem: RedistributionProblem, bins: Sequence[tuple[int, ...]]) -> None:
        self.problem, self.bins = problem, tuple(bins)
        by_role: dict[tuple[object, ...], list[int]] = {}
        for q, size in enumerate(problem.sizes):
            ends = problem.source[q][0], problem.target[q][0]
            by_role.setdefault((problem.classes[q], size, *ends), []).append(q)
        self.roles = tuple(map(tuple, by_role.values()))
        self.partial = PARTIAL in problem.source
        width = len(self.bins) + 1 + self.partial
        self.number = math.prod(math.comb(len(role) + width - 1, width - 1) for role in self.roles)

    def outlook(self) -> CostToGo:
        """The bounds of every state that lies on a way from source to target."""
        ways = [list(_counts(len(role), self._width)) for role in self.roles]
        self.counts = np.array(list(product(*ways)), dtype=np.int64)
        self.table = self._table()
        source, target = (self._index(end) for end in (self.problem.source, self.problem.target))
        before, after = self._distances(source, False), self._distances(target, True)
        shown = [b for b in range(self._width) if b != len(self.bins)]
        rows = [
            (*self.counts[i][:, shown].ravel().tolist(), int(before[i]), int(after[i]))
            for i in range(len(self.counts))
            if before[i] + after[i] < math.inf
        ]
        bins = (*self.bins, (PARTIAL[0],)) if self.partial else self.bins
        return CostToGo(self.roles, bins, tuple(rows))

    @property
    def _width(self) -> int:
        """Places of a digit: the bins, replicated, and partial if any is."""
        return len(self.bins) + 1 + self.partial

    def _index(self, places: Sequence[tuple[int, int]]) -> int:
        """The state of a layout."""
        wanted = np.zeros((len(self.roles), self._width), dtype=np.int64)
        for number, role in enumerate(self.roles):
            for q in role:
                wanted[number, self._bin(places[q])] += 1
        return int((self.counts == wanted).all(axis=(1, 2)).argmax())

    def _bin(self, place: tuple[int, int]) -> int:
        if place in (REPLICATED, PARTIAL):
            return len(self.bins) + (place == PARTIAL)
        return next(b for b, dims in enumerate(self.bins) if place[0] in dims)

    def _table(self) -> _Floats:
        """The least ticks by kind, moved digits by class, and sharding ones by size.

        A permute may exchange digits of one role, which no count shows: it moves as many or more.
        """
        problem = self.problem
        self.names = sorted(set(problem.classes))
        shape = [max(Move) + 1]
        shape += [problem.classes.count(name) + 1 for name in self.names]
        shape += [problem.sizes.count(size) + 1 for size in problem.size_classes]
        table = np.full(shape, math.inf)
        for row in problem.rows:
            key = (int(row.move), *row.moved, *row.sharding)
            table[key] = min(table[key], row.price)
        permutes = table[Move.PERMUTE]
        for axis in range(len(self.names)):
            permutes = np.flip(np.minimum.accumulate(np.flip(permutes, axis), axis), axis)
        table[Move.PERMUTE] = permutes
        return table

    def _distances(self, start: int, back: bool) -> _Floats:
        """Least ticks from a state to all, or (``back``) from all to it."""
        found = np.full(len(self.counts), math.inf)
        found[start] = 0.0
        heap, closed = [(0.0, start)], np.zeros(len(self.counts), dtype=bool)
        while heap:
            cost, state = heapq.heappop(heap)
            if closed[state]:
                continue
            closed[state] = True
            new = cost + self._prices(state, back)
            for i in np.flatnonzero(new < found):
                found[i] = new[i]
                heapq.heappush(heap, (float(new[i]), int(i)))
        return found

    def _prices(self, state: int, back: bool) -> _Floats:
        """Least ticks of one step from a state to each, or from each to it."""
        one = np.broadcast_to(self.counts[state], self.counts.shape)
        before, after = (self.counts, one) if back else (one, self.counts)
        change = after - before
        moved = np.maximum(change, 0).sum(axis=2)
        bins = len(self.bins)
        columns = [sum(moved[:, r] for r in self._of_class(name)) for name in self.names] + [
            before[:, self._of_size(size), :bins].sum(axis=(1, 2))
            for size in self.problem.size_classes
        ]
        found = np.full(len(change), math.inf)
        for move, legal in self._legal(change):
            here = np.flatnonzero(legal)
            if len(here):
                parts = [np.asarray(column, dtype=np.int64)[here] for column in columns]
                key = (np.full(len(here), int(move)), *parts)
                found[here] = np.minimum(found[here], self.table[key])
        return found

    def _of_class(self, name: int) -> list[int]:
        return [r for r, role in enumerate(self.roles) if self.problem.classes[role[0]] == name]

    def _of_size(self, size: int) -> list[int]:
        return [r for r, role in enumerate(self.roles) if self.problem.sizes[role[0]] == size]

    def _legal(self, change: IntArray) -> list[tuple[Move, npt.NDArray[np.bool_]]]:
        """Which changes each kind of step makes."""
        bins = len(self.bins)
        lists, copies = change[:, :, :bins], change[:, :, bins]
        sums = change[:, :, bins + 1] if self.partial else np.zeros_like(copies)
        joins, leaves = (lists >= 0).all(axis=(1, 2)), (lists <= 0).all(axis=(1, 2))
        whole, still = (sums == 0).all(axis=1), (lists == 0).all(axis=(1, 2))
        either = np.asarray((lists >= 0).all(axis=1) | (lists <= 0).all(axis=1))
        apart = either.all(axis=1)
        same = (copies == 0).all(axis=1)
        blocks = whole & self._blocks(lists)
        found = [
            (Move.SLICE, joins & whole & ~still),
            (Move.GATHER, leaves & whole & ~still),
            (Move.PERMUTE, blocks & ~still),
            (Move.TURN, blocks),
            (Move.REDUCE_SCATTER, joins & same & ~still),
            (Move.ALL_REDUCE, still & ~whole & (sums <= 0).all(axis=1)),
        ]
        return [*found, (Move.ALL_TO_ALL, apart & whole & same & ~still)]

    def _blocks(self, lists: IntArray) -> npt.NDArray[np.bool_]:
        """Whether the exponents of each prime in each bin stay."""
        kept = np.ones(len(lists), dtype=bool)
        for _, of_digits, _ in self.problem.factors():
            weights = np.array([of_digits[role[0]] for role in self.roles])
            kept &= (np.tensordot(lists, weights, axes=(1, 0)) == 0).all(axis=1)
        return kept


def _counts(digits: int, width: int) -> list[tuple[int, ...]]:
    """All ways to put so many digits into so many places."""
    if width == 1:
        return [(digits,)]
    return [
        (first, *rest) for first in range(digits + 1) for rest in _counts(digits - first, width - 1)
    ]


# A redistribution in at most so many steps as a problem for the solvers, and its answer as steps.
# Seconds become whole ticks, rounded down.


RESOLUTION = 2**20
"""The cheapest step takes so many ticks."""

_KINDS: Mapping[Move, StepKind] = {
    Move.SLICE: StepKind.SLICE,
    Move.GATHER: StepKind.ALL_GATHER,
    Move.ALL_TO_ALL: StepKind.ALL_TO_ALL,
    Move.PERMUTE: StepKind.PERMUTE,
    Move.REDUCE_SCATTER: StepKind.REDUCE_SCATTER,
    Move.ALL_REDUCE: StepKind.ALL_REDUCE,
    Move.TURN: StepKind.PERMUTE,
}


class LayeredQuestion:
    """One question: ``problem`` to begin with, and the seconds of a tick."""

    def __init__(self, table: RowTable, max_steps: int) -> None:
        self.table, self.ends = table, table.ends
        rows = table.rows()
        least = min((row.price for row in rows if row.price > 0), default=1.0)
        self.tick_s = least / RESOLUTION
        frame = self.ends.frame
        problem = RedistributionProblem(
            frame.sizes,
            table.classes,
            frame.shape,
            places_of(self.ends.source, len(frame.digits)),
            places_of(self.ends.target, len(frame.digits)),
            max_steps,
            tuple(
                MoveRow(
                    row.move,
                    row.moved,
                    row.sharding,
                    row.turned,
                    row.packed,
                    row.first,
                    row.later,
                    self.ticks(row.price),
                )
                for row in rows
            ),
            borders=tuple(
                LevelCut(
                    one.digits, one.turned, tuple((n, of, self.ticks(s)) for n, of, s in one.costs)
                )
                for one in table.borders()
            ),
            turns=self.ends.source.order != self.ends.target.order,
            merges=table.prices.one_permute_suffices,
            packs=table.memory.of_steps,
        )
        self.problem = replace(problem, outlook=cost_to_go_of(problem))

    def ticks(self, seconds: float) -> int:
        """Whole ticks, rounded down."""
        return int(seconds / self.tick_s)

    def steps(self, moves: Moves) -> tuple[ArrayStep, ...]:
        """The steps of an answer."""
        found: list[ArrayStep] = []
        state = self.ends.source
        for move, places in moves:
            order = self.ends.target.order if move is Move.TURN else state.order
            after = state_at(places, len(self.ends.frame.shape), order)
            found.append(KINDS[_KINDS[move]](state, after))
            state = after
        return tuple(found)

    def exact(self, step: ArrayStep, seconds: float) -> ExactMove:
        """What a step costs, for the solver."""
        digits = len(self.ends.frame.digits)
        turned = step.before.order != self.ends.source.order
        return ExactMove(
            self.move(step),
            turned,
            places_of(step.before, digits),
            places_of(step.after, digits),
            self.ticks(seconds),
        )

    def move(self, step: ArrayStep) -> Move:
        """The kind of a step."""
        if step.before.order != step.after.order:
            return Move.TURN
        return next(move for move, kind in _KINDS.items() if kind is step.kind)


def places_of(state: ArrayState, digits: int) -> Places:
    """A state as places."""
    found = [REPLICATED] * digits
    for dim, held in enumerate(state.dims):
        for place, digit in enumerate(held):
            found[digit] = (dim, place)
    for digit in state.partial:
        found[digit] = PARTIAL
    return tuple(found)


def state_at(places: Sequence[tuple[int, int]], dims: int, order: int) -> ArrayState:
    """Places as a state."""
    lists: list[list[tuple[int, int]]] = [[] for _ in range(dims)]
    for digit, (dim, place) in enumerate(places):
        if dim >= 0:
            lists[dim].append((place, digit))
    partial = tuple(digit for digit, place in enumerate(places) if place == PARTIAL)
    held = tuple(tuple(digit for _, digit in sorted(one)) for one in lists)
    return ArrayState(held, partial, order)

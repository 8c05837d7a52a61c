"""What a plan costs at least before and after a layer, by counts of digits alone.

Digits of one class with the same beginning and end play one *role*.  Forgetting which digit of a
role is where, and in which position, leaves few states: how many of each role are in each group of
dimensions.  Every step is a step between such states, and no dearer there; so the cheapest ways
from the source and to the destination bound the steps before and after a layer.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from p2smt.parallelism.placement import IntArray
from p2smt.problems.redistribution import (
    PARTIAL,
    REPLICATED,
    Move,
    Outlook,
    RedistributionProblem,
)

MOST_STATES = 1200

_Floats: TypeAlias = npt.NDArray[np.float64]


def outlook_of(problem: RedistributionProblem) -> Outlook | None:
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

    def outlook(self) -> Outlook:
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
        return Outlook(self.roles, bins, tuple(rows))

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
            table[key] = min(table[key], row.ticks)
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

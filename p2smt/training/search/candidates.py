"""The strategies of a question with their work, and bounds on their time.

A bound of communication that costs nothing holds for every placement; that of requests which are
each on the placement that is best for them alone is closer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2smt.parallelism.folded import pair_count
from p2smt.parallelism.matrices import PlacementRules, count_matrices
from p2smt.parallelism.placement import IntArray
from p2smt.training.formulas.stages import RECOMPUTES, MixtureColumns, StrategyColumns
from p2smt.training.pipeline import StageTimes, StrategyWork, combine, work
from p2smt.training.search.copies import (
    MANY,
    copied_count,
    joined_sizes,
    numbered_count,
    request_axes,
)
from p2smt.training.search.question import PlanQuestion
from p2smt.training.strategy import AXES, DISPATCHERS, MODULES

Seconds = npt.NDArray[np.float64]
AxisSet = tuple[int, ...]
"""Rows that a request is along, ascending: of the matrix, or of both matrices of a mixture."""
_TOGETHER = 16_384
"""Strategies whose work is found at once."""


@dataclass(frozen=True, slots=True)
class OutlinedWork:
    """Memory and computing of strategies of a mixture; the rest is found for those looked at.

    ``free_s``: seconds of an iteration where communication costs nothing.
    """

    question: PlanQuestion
    columns: StrategyColumns
    memory_bytes: Seconds
    free_s: Seconds

    @staticmethod
    def of(question: PlanQuestion, columns: StrategyColumns) -> OutlinedWork:
        """Strategies that move tokens in other ways compute alike: these are found once."""
        apart = [name for name in question.searched if name not in ("dispatcher", "overlap")]
        apart += [] if columns.sequences is None else ["sequences"]
        _, first, which = distinct_rows([field_numbers(columns, name) for name in apart])
        memory_bytes, free_s = np.empty(len(first)), np.empty(len(first))
        for at in range(0, len(first), _TOGETHER):
            part = slice(at, at + _TOGETHER)
            found = _work(question, columns.take(first[part]))
            memory_bytes[part] = found.memory_bytes
            free_s[part] = StageTimes(found, found.compute_s, (), ()).iteration_s
        return OutlinedWork(question, columns, memory_bytes[which], free_s[which])

    def take(self, rows: IntArray) -> StrategyWork:
        """The work of some of the strategies."""
        return _work(self.question, self.columns.take(rows))

    def part(self, rows: IntArray) -> OutlinedWork:
        """The outline of some of the strategies."""
        known = self.memory_bytes[rows], self.free_s[rows]
        return OutlinedWork(self.question, self.columns.take(rows), *known)


def _work(question: PlanQuestion, columns: StrategyColumns) -> StrategyWork:
    device = question.topology.known_device
    done = work(question.model, question.batch, columns, device, question.efficiency)
    known = set(request_axes(question))
    return replace(done, requests=tuple(r for r in done.requests if known >= set(r.column.axes)))


def field_numbers(columns: StrategyColumns, name: str) -> IntArray:
    """A searched field of strategies as numbers, each value another."""
    more = columns.mixture
    if name == "recompute":
        modules = np.zeros(len(columns), dtype=np.int64)
        if more is not None:
            modules = more.modules.astype(np.int64) @ (1 << np.arange(len(MODULES)))
        return np.asarray(columns.recompute + len(RECOMPUTES) * modules)
    if more is not None and name == "dispatcher":
        return np.asarray(more.dispatcher == DISPATCHERS[1], dtype=np.int64)
    owner = columns if hasattr(columns, name) else more
    return np.asarray(getattr(owner, name), dtype=np.int64)


def distinct_rows(fields: list[IntArray]) -> tuple[IntArray, IntArray, IntArray]:
    """Distinct rows of columns of whole numbers as one number each, in order; the first of each;
    and which of them every row is."""
    keys = np.zeros(len(fields[0]), dtype=np.int64)
    for column in fields:
        values, numbers = np.unique(column, return_inverse=True)
        keys = keys * len(values) + numbers.ravel()
    found, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return found, first, which.ravel()


@dataclass(frozen=True, slots=True)
class Candidates:
    """Strategies by row: ``block`` is the row of their axis sizes in ``sizes``.

    ``rows`` are those of :func:`~p2smt.training.search.copies.request_axes`, and ``sizes`` theirs.
    ``placements``: how many placements, or pairs of
    them, the axes of each block have under the rules.
    """

    question: PlanQuestion
    columns: StrategyColumns
    work: StrategyWork | OutlinedWork
    sizes: IntArray
    block: IntArray
    placements: IntArray
    rows: tuple[str, ...]

    @staticmethod
    def of(question: PlanQuestion, columns: StrategyColumns) -> Candidates:
        """The strategies of a space with their work on the device of the question."""
        if question.model.experts and columns.mixture is None:  # all have the defaults
            columns = replace(columns, mixture=MixtureColumns.none(len(columns)))
        rows = request_axes(question)
        degrees = [columns.ranks[axis] for axis in rows]
        _, first, block = distinct_rows(degrees)
        sizes = np.stack([column[first] for column in degrees], axis=1)
        done, placements = _all_work(question, columns), placement_counts(question, sizes)
        return Candidates(question, columns, done, sizes, block, placements, rows)

    def __len__(self) -> int:
        return len(self.columns)

    def under(self, rows: IntArray, rules: PlacementRules) -> Candidates:
        """Some of them under other rules, which leave each of them a placement."""
        whole = self.work
        return Candidates(
            replace(self.question, rules=tuple(rules)),
            self.columns.take(rows),
            whole.part(rows) if isinstance(whole, OutlinedWork) else whole.take(rows),
            self.sizes,
            self.block[rows],
            np.ones(len(self.sizes), dtype=np.int64),
            self.rows,
        )

    @property
    def whole_work(self) -> StrategyWork:
        """The work of all strategies."""
        if isinstance(self.work, OutlinedWork):
            return self.work.take(np.arange(len(self)))
        return self.work

    @property
    def sets(self) -> tuple[AxisSet, ...]:
        """The sets of axes that some request is along."""
        outlined = isinstance(self.work, OutlinedWork)
        some = (self.work.take(np.arange(1)) if outlined else self.whole_work).requests
        return tuple(dict.fromkeys(self.axis_set(one.column.axes) for one in some))

    def copies(self, row: int) -> int | None:
        """Copies of the shards of a row; None: they are not searched for."""
        return int(self.sizes[self.block[row], 1]) if self.rows_of_attention > MANY else None

    @property
    def rows_of_attention(self) -> int:
        """How many of the rows are attention's; experts' matrix has as many, pp's being in both."""
        return self.rows.index(AXES[-1]) + 1

    def axis_set(self, names: tuple[str, ...]) -> AxisSet:
        """Axes of a request as rows, ascending; those of experts come after those of attention."""
        return _axis_set(names, self.rows)

    def computing_s(self) -> Seconds:
        """Seconds of an iteration of each strategy where communication costs nothing."""
        if isinstance(self.work, OutlinedWork):
            return self.work.free_s
        free = {one.column.name: 0.0 for one in self.work.requests}
        return np.broadcast_to(combine(self.work, free), (len(self),))


def _all_work(question: PlanQuestion, columns: StrategyColumns) -> StrategyWork | OutlinedWork:
    if question.model.experts:
        return OutlinedWork.of(question, columns)
    return _work(question, columns)


def placement_counts(question: PlanQuestion, sizes: IntArray) -> IntArray:
    """How many placements, or pairs of these, there are for each row of sizes."""
    levels, many = question.topology.sizes, len(AXES)
    if question.numbered_once:
        each = (joined_sizes(question, one) for one in sizes.tolist())
        return np.array([numbered_count(question, *one) for one in each], dtype=np.int64)
    if question.copied:
        each = (joined_sizes(question, one) for one in sizes.tolist())
        return np.array([copied_count(question, *one) for one in each], dtype=np.int64)
    if question.model.experts:
        pairs = (
            pair_count(levels, one[:many], (one[0], *one[many:]), question.rules)
            for one in sizes.tolist()
        )
        return np.array(list(pairs), dtype=np.int64)
    counts = count_matrices(levels, many, question.rules)
    placements = [counts.get(tuple(one), 0) for one in sizes.tolist()]
    return np.array(placements, dtype=np.int64)


@lru_cache(maxsize=64)
def _axis_set(names: tuple[str, ...], rows: tuple[str, ...]) -> AxisSet:
    return tuple(sorted(rows.index(name) for name in names))

"""The strategies of a question with their work, and bounds on their time.

A bound of communication that costs nothing holds for every placement; that of requests which are
each on the placement that is best for them alone is closer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from p2smt.parallelism.placement import IntArray
from p2smt.workload.formulas.columns import StrategyColumns
from p2smt.workload.search.pricing.matrices import count_matrices
from p2smt.workload.search.pricing.prices import Seconds
from p2smt.workload.search.question import PlanQuestion
from p2smt.workload.strategy import AXES
from p2smt.workload.timing.combine import combine
from p2smt.workload.timing.work import StrategyWork, work

AxisSet = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Strategies by row: ``block`` is the row of their axis sizes in ``sizes``.

    ``placements``: how many placements the axes of each block have under the rules.
    """

    question: PlanQuestion
    columns: StrategyColumns
    work: StrategyWork
    sizes: IntArray
    block: IntArray
    placements: IntArray

    @staticmethod
    def of(question: PlanQuestion, columns: StrategyColumns) -> Candidates:
        """The strategies of a space with their work on the device of the question."""
        done = work(
            question.model,
            question.batch,
            columns,
            question.topology.known_device,
            question.efficiency,
        )
        degrees = np.stack([getattr(columns, axis) for axis in AXES], axis=1)
        sizes, block = np.unique(degrees, axis=0, return_inverse=True)
        counts = count_matrices(question.topology.sizes, len(AXES), question.rules)
        placements = [counts.get(tuple(one), 0) for one in sizes.tolist()]
        return Candidates(
            question, columns, done, sizes, block.ravel(), np.array(placements, dtype=np.int64)
        )

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def sets(self) -> tuple[AxisSet, ...]:
        """The sets of axes that some request is along."""
        return tuple(dict.fromkeys(axis_set(one.column.axes) for one in self.work.requests))

    def computing_s(self) -> Seconds:
        """Seconds of an iteration of each strategy where communication costs nothing."""
        free = {one.column.name: 0.0 for one in self.work.requests}
        return np.broadcast_to(combine(self.work, free), (len(self),))


@lru_cache(maxsize=64)
def axis_set(names: tuple[str, ...]) -> AxisSet:
    """Axes by name as indices, ascending."""
    return tuple(sorted(AXES.index(name) for name in names))

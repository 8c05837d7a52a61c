"""Payloads of many valid programs on the real factors, without their states.

What a step's payload is depends on the number of non-empty rows of its members alone, and
those numbers obey simple rules as long as the program is valid (:mod:`p2smt.programs.semantics`
says what valid is).  A device's number depends only on which of its coordinates are zero: groups
treat all other values of a coordinate alike.  So 2^depth numbers stand for all devices, however
many there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from p2smt.collectives.demand import Chunks, Demand
from p2smt.collectives.names import Collective
from p2smt.parallelism.placement import IntArray
from p2smt.programs.program import Grouping, local_groups

Rows = tuple[int, ...]
_Counts = IntArray


class RowCounts:
    """Row counts of programs given by instruction numbers, over one hierarchy.

    ``items`` are the instructions by number, ``factors`` the real ones.  What a step does to
    the counts is worked out once.
    """

    def __init__(
        self,
        demand: Demand,
        factors: Sequence[int],
        items: Sequence[tuple[Collective, Grouping]],
    ) -> None:
        self.demand, self.factors, self.items = demand, tuple(factors), items
        self._next: dict[tuple[bytes, int], tuple[int, _Counts] | None] = {}

    @cached_property
    def _start(self) -> _Counts:
        held = 1 if self.demand.start.chunks is Chunks.OWN else math.prod(self.factors)
        return np.full(2 ** len(self.factors), held, dtype=np.int64)

    def payloads(self, program: Sequence[int]) -> Rows | None:
        """Payload of each step in rows; None where a reduce-scatter would split rows unevenly."""
        counts, found = self._start, []
        for number in program:
            key = counts.tobytes(), number
            if key not in self._next:
                self._next[key] = self._step(counts, *self.items[number])
            outcome = self._next[key]
            if outcome is None:
                return None
            payload, counts = outcome
            found.append(payload)
        return tuple(found)

    def _step(
        self, counts: _Counts, collective: Collective, grouping: Grouping
    ) -> tuple[int, _Counts] | None:
        """Payload in rows, and the counts afterwards."""
        members = math.prod(self.factors[grouping.outer : grouping.inner])
        groups = local_groups((2,) * len(self.factors), grouping)
        held, after = counts[groups[:, 0]], counts.copy()
        match collective:
            case Collective.ALL_GATHER:
                held = held * members
            case Collective.REDUCE_SCATTER if (held % members).any():
                return None
        kept = held // members if collective is Collective.REDUCE_SCATTER else held
        after[groups] = kept[:, None]
        if collective is Collective.REDUCE:
            after[groups[:, 1:]] = 0
        return int(held.max()), after

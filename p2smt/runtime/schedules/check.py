"""Payloads of a schedule on a rank, and the results it must end with.

Every contribution of the contract has a sequence of small integers of its own
(:class:`p2smt.runtime.payload.Numbers`), bounded so that the type holds every sum exactly.  What
was never written is not a number, or far below all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from p2smt.collectives.contract import Contract, Contribution, Goal
from p2smt.runtime.payload import PERIOD, Array, DataType, Floats, Numbers
from p2smt.runtime.schedules.rows import RankRows
from p2smt.runtime.schedules.values import contributions_of, goals_of
from p2smt.runtime.unwritten import fill_unwritten, is_unwritten
from p2smt.schedules.model import Buffer

PeriodOf = Callable[[Contribution], Array]
"""One period of a contribution's payload."""


@dataclass(frozen=True, slots=True)
class RankValues:
    """What a rank is given and must produce; ``memory`` has a row per chunk."""

    contract: Contract
    rank: int
    rows: RankRows
    memory: torch.Tensor
    goals: list[Goal]
    known: dict[Contribution, int]
    numbers: Numbers

    @staticmethod
    def of_rank(
        contract: Contract,
        rank: int,
        rows: RankRows,
        memory: torch.Tensor,
        data_type: DataType,
        seed: int,
    ) -> RankValues:
        """The values of a rank."""
        known = contributions_of(contract)
        most = max((len(goal.parts) for goal in contract.goals), default=1)
        period = min(PERIOD, memory.shape[1])
        numbers = Numbers(data_type, max(most, 1), max(len(known), 1), seed, period)
        return RankValues(contract, rank, rows, memory, goals_of(contract)[rank], known, numbers)

    def integers(self, part: Contribution) -> Array:
        """One period of a contribution's exact payload."""
        return self.numbers.integers(self.known[part])

    def floats(self, part: Contribution) -> Array:
        """One period of its random payload, rounded to the type."""
        rounded = torch.from_numpy(self.numbers.floats(self.known[part])).to(self.memory.dtype)
        values: Array = rounded.to(torch.float64).numpy()
        return values

    def load(self, values: PeriodOf) -> None:
        """Give the memory its initial contents."""
        fill_unwritten(self.memory)
        for chunk, part in enumerate(self.contract.starts[self.rank]):
            if part is not None:
                row = self.memory[self.rows.row(Buffer.INPUT, chunk)]
                row.copy_(torch.from_numpy(np.resize(values(part), row.shape[0])))

    def wrong(self, values: PeriodOf, *, exact: bool) -> str:
        """The first element of a goal that is not as it must be, in words; "": none.

        Random values are compared within the bound on rounding errors of sums in any order.
        """
        for goal in self.goals:
            found = self._found(goal)
            parts = [values(part) for part in goal.parts]
            right = np.resize(np.sum(parts, axis=0), len(found))
            off = found != right if exact else ~(abs(found - right) <= self._bound(goal, parts))
            if off.any():
                place = int(np.flatnonzero(off)[0])
                what = "wrong value" if exact else "beyond the bound of rounding errors"
                where = f"rank {self.rank}, output chunk {goal.chunk}, element {place}"
                return f"{where}: {what}: expected {right[place]:g}, found {_shown(found[place])}"
        return ""

    def kept(self) -> list[torch.Tensor]:
        """A copy of the output, where there is a goal."""
        return [self._output(goal).clone() for goal in self.goals]

    def holds(self, right: list[torch.Tensor], sign: int) -> bool:
        """Whether the output is what was kept once, or its negative."""
        rows = zip(self.goals, right, strict=True)
        return all(torch.equal(self._output(goal), sign * row) for goal, row in rows)

    def _output(self, goal: Goal) -> torch.Tensor:
        return self.memory[self.rows.row(Buffer.OUTPUT, goal.chunk)]

    def _found(self, goal: Goal) -> Array:
        row = self._output(goal)
        wide = torch.float64 if row.dtype.is_floating_point else torch.int64
        found: Array = row.to(wide).numpy()
        return found

    def _bound(self, goal: Goal, parts: list[Array]) -> Floats:
        size: Floats = np.sum([abs(part) for part in parts], axis=0)
        if len(goal.parts) < 2:
            size = np.zeros_like(size)
        return np.resize(self.numbers.error_bound(size), self.memory.shape[1])

    @property
    def bounded(self) -> bool:
        """Whether the bound on rounding errors is finite."""
        return bool(np.isfinite(self.numbers.error_bound(np.ones(1))).all())


def _shown(value: float) -> str:
    if is_unwritten(value):
        return "what was never written"
    return f"{value:g}"

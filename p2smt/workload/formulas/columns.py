"""Strategies as columns of numbers, for formulas over many of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from p2smt.parallelism.placement import BoolArray, IntArray
from p2smt.workload.strategy import Recompute, Strategy

RECOMPUTES = tuple(Recompute)
"""``recompute`` of columns counts in this order."""


@dataclass(frozen=True, slots=True)
class StrategyColumns:
    """Fields of strategies, an array of equal length for each.

    ``recompute`` holds indices of ``RECOMPUTES``; ``splits`` the given splits (an empty one: even),
    or nothing if all are even.
    """

    tp: IntArray
    pp: IntArray
    dp: IntArray
    cp: IntArray
    vpp: IntArray
    micro_batch: IntArray
    sequence_parallel: BoolArray
    zero: IntArray
    recompute: IntArray
    flash: BoolArray
    dtype: npt.NDArray[np.str_]
    splits: tuple[tuple[int, ...], ...] = ()

    @staticmethod
    def of(strategies: Sequence[Strategy]) -> StrategyColumns:
        """The columns of some strategies, in their order."""
        values: dict[str, npt.NDArray[np.generic]] = {
            name: np.array([getattr(one, name) for one in strategies], dtype=dtype)
            for name, dtype in _DTYPES.items()
        }
        values["recompute"] = np.array(
            [RECOMPUTES.index(one.recompute) for one in strategies], dtype=np.int64
        )
        splits = tuple(one.split for one in strategies)
        return StrategyColumns(**values, splits=splits if any(splits) else ())  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.tp)

    def take(self, rows: IntArray | BoolArray) -> StrategyColumns:
        """Some of the strategies, by index or by mask."""
        chosen = {
            field.name: getattr(self, field.name)[rows]
            for field in fields(self)
            if field.name != "splits"
        }
        order = np.arange(len(self))[rows].tolist() if self.splits else []
        return StrategyColumns(**chosen, splits=tuple(self.splits[i] for i in order))

    def strategy(self, row: int) -> Strategy:
        """One of them as a strategy."""
        whole = {name: int(getattr(self, name)[row]) for name in _WHOLE}
        return Strategy(
            **whole,
            sequence_parallel=bool(self.sequence_parallel[row]),
            recompute=RECOMPUTES[int(self.recompute[row])],
            flash=bool(self.flash[row]),
            dtype=str(self.dtype[row]),
            split=self.splits[row] if self.splits else (),
        )


_WHOLE = ("tp", "pp", "dp", "cp", "vpp", "micro_batch", "zero")
_DTYPES: dict[str, type[np.generic]] = {
    **dict.fromkeys(_WHOLE, np.int64),
    "sequence_parallel": np.bool_,
    "flash": np.bool_,
    "dtype": np.str_,
}

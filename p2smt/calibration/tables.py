"""Errors by table: of the times that a fit saw, and of a table that it did not see.

A table is what one run measured: the rows of a file with one operation on groups of one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p2smt.calibration.predict import shape_of
from p2smt.calibration.samples import Sample
from p2smt.cost.algorithms import Operation

Rows = tuple[int, ...]
Again = Callable[[list[Sample], list[Sample]], "NDArray[np.float64] | None"]
"""Predicted times of the second samples by a fit to the first; None: it would say nothing."""

MOST_LEFT_OUT = 24
"""Tables that are left out in turn; of more, the first."""


@dataclass(frozen=True, slots=True)
class TableFit:
    """How well one table is met.

    Errors are medians of max(predicted / measured, measured / predicted) - 1 over all its times:
    1 is a factor of two either way.  ``left_out_error`` is that of a fit to the other tables;
    None where there is no such fit.
    """

    source: str
    operation: Operation
    times: int
    median_error: float
    max_error: float
    left_out_error: float | None

    @property
    def judged_error(self) -> float:
        """What the fit is judged by: the larger of the two medians."""
        return max(self.median_error, self.left_out_error or 0.0)


def table_fits(
    samples: Sequence[Sample], predicted_s: Sequence[float], again: Again
) -> tuple[TableFit, ...]:
    """The errors of each table, in the order of their first rows."""
    tables = _tables(samples)
    return tuple(
        _table_fit(
            samples, predicted_s, rows, again if len(tables) > 1 and i < MOST_LEFT_OUT else None
        )
        for i, rows in enumerate(tables)
    )


def _tables(samples: Sequence[Sample]) -> list[Rows]:
    """The indices of the samples of each table."""
    found: dict[object, list[int]] = {}
    for i, sample in enumerate(samples):
        name, line, _ = sample.source.rpartition(":")
        place = (name, shape_of(sample))
        found.setdefault(place if line else sample.source, []).append(i)
    return [tuple(rows) for rows in found.values()]


def _table_fit(
    samples: Sequence[Sample], predicted_s: Sequence[float], rows: Rows, again: Again | None
) -> TableFit:
    mine = [samples[i] for i in rows]
    errors = _errors(mine, np.array([predicted_s[i] for i in rows]))
    left_out = None
    if again is not None:
        others = [sample for i, sample in enumerate(samples) if i not in set(rows)]
        unseen = again(others, mine)
        left_out = None if unseen is None else float(np.median(_errors(mine, unseen)))
    name = mine[0].source.rpartition(":")[0] or mine[0].source
    median, most = float(np.median(errors)), float(errors.max())
    return TableFit(name, mine[0].operation, len(mine), median, most, left_out)


def _errors(samples: Sequence[Sample], predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    off = np.abs(np.log(predicted / np.array([sample.seconds for sample in samples])))
    return np.asarray(np.expm1(off))

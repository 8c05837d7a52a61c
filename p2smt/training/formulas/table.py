"""The table of formulas, whole and compiled.

sympy is loaded when the table is first asked for: commands that need no workload do without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from p2smt.parallelism.placement import FloatArray

if TYPE_CHECKING:
    from p2smt.training.formulas.symbols import FormulaRow
    from p2smt.training.formulas.traffic import TrafficRow


@dataclass(frozen=True, slots=True)
class CompiledRows:
    """Rows as one function: ``values`` of symbols and earlier rows to those of these rows."""

    inputs: tuple[str, ...]
    names: tuple[str, ...]
    function: Callable[..., Sequence[FloatArray | float]]

    def __call__(self, values: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """The rows' values by name; arrays are broadcast against each other."""
        found = self.function(*(values[name] for name in self.inputs))
        return {
            name: np.asarray(value, dtype=np.float64)
            for name, value in zip(self.names, found, strict=True)
        }


@dataclass(frozen=True, slots=True)
class FormulaTable:
    """``counts`` need no device: sizes, operations, bytes, calls; ``seconds`` do."""

    counts: CompiledRows
    seconds: CompiledRows
    traffic: tuple[TrafficRow, ...]


def count_rows() -> tuple[FormulaRow, ...]:
    """Rows of sizes, operations, memory, and of what requests carry."""
    from p2smt.training.formulas.memory import MEMORY_ROWS
    from p2smt.training.formulas.seconds import COMPUTE_ROWS
    from p2smt.training.formulas.symbols import SIZE_ROWS
    from p2smt.training.formulas.traffic import TRAFFIC

    sent = (one.row(what) for one in TRAFFIC for what in ("payload", "calls", "part"))
    return (*SIZE_ROWS, *COMPUTE_ROWS, *MEMORY_ROWS, *sent)


def second_rows() -> tuple[FormulaRow, ...]:
    """Rows of seconds without communication, and of what hides it."""
    from p2smt.training.formulas.seconds import SECONDS_ROWS
    from p2smt.training.formulas.traffic import TRAFFIC

    return (*SECONDS_ROWS, *(one.row("cover_s") for one in TRAFFIC))


@cache
def formula_table() -> FormulaTable:
    """The table of decoders with equal dense layers, compiled once."""
    from p2smt.training.formulas.traffic import TRAFFIC

    return FormulaTable(_compiled(count_rows()), _compiled(second_rows()), TRAFFIC)


@cache
def kinds_table(mla: bool) -> FormulaTable:
    """The table of decoders with layers of several kinds, whose attention may be latent."""
    from p2smt.training.formulas import kinds_traffic

    counts, seconds = kind_rows(mla)
    return FormulaTable(_compiled(counts), _compiled(seconds), kinds_traffic.traffic(mla))


def kind_rows(mla: bool) -> tuple[tuple[FormulaRow, ...], tuple[FormulaRow, ...]]:
    """Rows that need no device, and seconds, of models with layers of several kinds."""
    from p2smt.training.formulas import kinds, kinds_memory, kinds_seconds, kinds_traffic

    rows = kinds_traffic.traffic(mla)
    sent = (one.row(what) for one in rows for what in ("payload", "calls", "part"))
    counts = (*kinds.count_rows(mla), *kinds_memory.memory_rows(mla), *sent)
    return counts, (*kinds_seconds.seconds_rows(mla), *(one.row("cover_s") for one in rows))


def _compiled(rows: Sequence[FormulaRow]) -> CompiledRows:
    """Rows one after the other: each is an assignment that later ones use."""
    from sympy import lambdify

    own = {row.name for row in rows}
    met = {symbol for row in rows for symbol in row.expression.free_symbols}
    inputs = sorted((symbol for symbol in met if symbol.name not in own), key=str)
    assignments = [(row.symbol, row.expression) for row in rows]

    def assigned(outputs: Any) -> Any:
        return assignments, outputs

    # sympy hands over [first, [others]] or the list itself: the symbols are already reduced
    modules = [{"reduce": reduce}, "numpy"]
    function = lambdify(inputs, [row.symbol for row in rows], modules=modules, cse=assigned)
    return CompiledRows(
        tuple(symbol.name for symbol in inputs), tuple(row.name for row in rows), function
    )

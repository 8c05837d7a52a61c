"""Every row of the tables: the pages print them, and `make formulas` makes functions of them."""

from __future__ import annotations

from p2smt.training.formulas import kinds, kinds_seconds
from p2smt.training.formulas.memory import MEMORY_ROWS
from p2smt.training.formulas.seconds import COMPUTE_ROWS, SECONDS_ROWS
from p2smt.training.formulas.symbols import SIZE_ROWS, FormulaRow
from p2smt.training.formulas.traffic import TRAFFIC


def count_rows() -> tuple[FormulaRow, ...]:
    """Rows of sizes, operations, memory, and of what requests carry."""
    sent = (one.row(what) for one in TRAFFIC for what in ("payload", "calls", "part"))
    return (*SIZE_ROWS, *COMPUTE_ROWS, *MEMORY_ROWS, *sent)


def second_rows() -> tuple[FormulaRow, ...]:
    """Rows of seconds without communication, and of what hides it."""
    return (*SECONDS_ROWS, *(one.row("cover_s") for one in TRAFFIC))


def kind_rows(mla: bool) -> tuple[tuple[FormulaRow, ...], tuple[FormulaRow, ...]]:
    """Rows that need no device, and seconds, of models with layers of several kinds."""
    rows = kinds_seconds.traffic(mla)
    sent = (one.row(what) for one in rows for what in ("payload", "calls", "part"))
    counts = (*kinds.count_rows(mla), *kinds.memory_rows(mla), *sent)
    return counts, (*kinds_seconds.seconds_rows(mla), *(one.row("cover_s") for one in rows))

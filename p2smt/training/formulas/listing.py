"""The table of formulas as text, for documents."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.training.formulas.table import count_rows, second_rows


@dataclass(frozen=True, slots=True)
class ListedFormula:
    """A row in words: ``expression`` names symbols and other rows."""

    name: str
    expression: str
    unit: str
    meaning: str
    source: str


def listed_formulas() -> tuple[ListedFormula, ...]:
    """Every row of the table in its order; a row uses given symbols and rows before it."""
    return tuple(
        ListedFormula(row.name, str(row.expression), row.unit, row.meaning, row.source)
        for row in (*count_rows(), *second_rows())
    )


def listed_symbols() -> tuple[tuple[str, str], ...]:
    """Every symbol that is given from outside, with what it stands for."""
    from p2smt.training.formulas.symbols import MEANINGS

    return tuple((symbol.name, meaning) for symbol, meaning in MEANINGS)

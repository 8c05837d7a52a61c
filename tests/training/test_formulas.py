"""The table of formulas: whole, sourced, in order, and loaded only where it is needed."""

from __future__ import annotations

import pytest

from p2smt.training.formulas.compiled import formula_table
from p2smt.training.formulas.rows import count_rows, kind_rows, second_rows
from p2smt.training.formulas.symbols import KIND_MEANINGS, MEANINGS
from tests.interpreter import assert_silent
from tests.training.compiled_formulas import FOLDER, modules

UNITS = {"", "tokens", "elements", "layers", "devices", "flop", "bytes", "s"}


def test_rows_use_symbols_with_a_meaning_and_rows_before_them() -> None:
    known = {symbol.name for symbol, _ in MEANINGS}
    assert len(known) == len(MEANINGS)
    used = set()
    for row in (*count_rows(), *second_rows()):
        needed = {symbol.name for symbol in row.expression.free_symbols}
        assert needed <= known, row.name
        assert row.name not in known, row.name
        known.add(row.name)
        used |= needed
    assert {symbol.name for symbol, _ in MEANINGS} <= used


@pytest.mark.parametrize("mla", [False, True])
def test_rows_of_kinds_use_symbols_with_a_meaning_and_rows_before_them(mla: bool) -> None:
    known = {symbol.name for symbol, _ in (*MEANINGS, *KIND_MEANINGS)}
    assert len(known) == len(MEANINGS) + len(KIND_MEANINGS)
    counts, seconds = kind_rows(mla)
    for row in (*counts, *seconds):
        needed = {symbol.name for symbol in row.expression.free_symbols}
        assert needed <= known, row.name
        known.add(row.name)
        assert all((row.meaning, row.source)), row.name
        assert row.unit in UNITS, row.name


def test_every_symbol_of_kinds_is_used() -> None:
    rows = [row for mla in (False, True) for part in kind_rows(mla) for row in part]
    used = {symbol.name for row in rows for symbol in row.expression.free_symbols}
    assert {symbol.name for symbol, _ in KIND_MEANINGS} <= used


def test_counts_need_no_device() -> None:
    of_device = {"peak", "W", "eta", "layer_s"}
    assert not of_device & set(formula_table().counts.inputs)
    assert of_device <= set(formula_table().seconds.inputs)


def test_every_row_says_what_it_is_and_where_it_is_from() -> None:
    for one in (*count_rows(), *second_rows()):
        assert all((one.meaning, one.source, str(one.expression))), one.name
        assert one.unit in UNITS, one.name


def test_functions_are_those_of_the_rows() -> None:
    written = {name: (FOLDER / f"{name}.py").read_text(encoding="utf-8") for name in modules()}
    assert written == modules(), "run: make formulas"


def test_sympy_is_not_loaded_with_the_table() -> None:
    code = (
        "import sys; import p2smt.training.iteration, p2smt.training.pipeline;"
        "from p2smt.training.formulas.compiled import formula_table, kinds_table;"
        "formula_table(); kinds_table(False); kinds_table(True);"
        "assert 'sympy' not in sys.modules"
    )
    assert_silent(code)

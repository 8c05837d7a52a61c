"""The formulas as functions of arrays: ``dense``, ``kinds`` and ``latent`` are written by
``make formulas`` from the rows, so that no command loads sympy; each is loaded when it is asked."""

from __future__ import annotations

from p2smt.training.formulas.compiled.table import FormulaTable


def formula_table() -> FormulaTable:
    """The table of decoders with equal dense layers."""
    from p2smt.training.formulas.compiled.dense import TABLE

    return TABLE


def kinds_table(mla: bool) -> FormulaTable:
    """The table of decoders with layers of several kinds, whose attention may be latent."""
    if mla:
        from p2smt.training.formulas.compiled.latent import TABLE
    else:
        from p2smt.training.formulas.compiled.kinds import TABLE

    return TABLE

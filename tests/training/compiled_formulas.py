"""Writes the modules of p2smt/training/formulas/compiled; ``make formulas`` runs it.

Each row is an assignment that later ones use, as sympy prints it for numpy.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from textwrap import fill, indent
from typing import Any

from sympy import lambdify

from p2smt.training.formulas.kinds_seconds import traffic as kinds_traffic
from p2smt.training.formulas.rows import count_rows, kind_rows, second_rows
from p2smt.training.formulas.symbols import FormulaRow
from p2smt.training.formulas.traffic import TRAFFIC, TrafficRow
from tests.imports import ROOT

FOLDER = ROOT / "p2smt" / "training" / "formulas" / "compiled"
HEAD = '''"""The formulas of decoders with {what}, written by ``make formulas``."""

from __future__ import annotations

from functools import reduce
from typing import Any

from numpy import {called}

from p2smt.collectives.names import RequestKind
from p2smt.training.formulas.compiled.table import CompiledRows, FormulaTable, Traffic
from p2smt.training.prediction import Cover
'''
TABLE = """

TABLE = FormulaTable(
    CompiledRows.of(counts),
    CompiledRows.of(seconds),
    (
{traffic}    ),
)
"""
CALLED = re.compile(r"\b(ceil|greater|maximum|minimum|nan|select)\b")
WIDTH = 70


def modules() -> dict[str, str]:
    """Their texts by name."""
    kinds, latent = ((kind_rows(mla), kinds_traffic(mla)) for mla in (False, True))
    return {
        "dense": _module("equal dense layers", (count_rows(), second_rows()), TRAFFIC),
        "kinds": _module("layers of several kinds", *kinds),
        "latent": _module("layers of several kinds and latent attention", *latent),
    }


def _module(
    what: str, rows: tuple[Sequence[FormulaRow], Sequence[FormulaRow]], sent: Sequence[TrafficRow]
) -> str:
    """Two functions, and the table that they make with what is sent."""
    functions = "".join(map(_function, ("counts", "seconds"), rows))
    called = ", ".join(sorted(set(CALLED.findall(functions))))
    traffic = "".join(f"        {_sent(one)},\n" for one in sent)
    return HEAD.format(what=what, called=called) + functions + TABLE.format(traffic=traffic)


def _function(name: str, rows: Sequence[FormulaRow]) -> str:
    own = {row.name for row in rows}
    met = {symbol for row in rows for symbol in row.expression.free_symbols}
    inputs = sorted((symbol for symbol in met if symbol.name not in own), key=str)
    lines = "\n".join(_assignments(inputs, rows))
    parameters = fill(", ".join(f"{symbol}:Any" for symbol in inputs), WIDTH)
    parameters = indent(parameters.replace(":", ": "), "    ")
    head = f"def {name}(\n{parameters},\n) -> dict[str, Any]:"
    return f"\n\n{head}\n{lines}\n    return locals()\n"


def _assignments(inputs: Sequence[Any], rows: Sequence[FormulaRow]) -> list[str]:
    """A line for each row, between the head and the result of what sympy makes of all."""
    assigned = [(row.symbol, row.expression) for row in rows]

    def kept(outputs: Any) -> Any:
        return assigned, outputs

    made = lambdify(inputs, [row.symbol for row in rows], modules="numpy", cse=kept)
    return inspect.getsource(made).splitlines()[1 : len(rows) + 1]


def _sent(row: TrafficRow) -> str:
    words = [f'"{row.name}"', str(row.kind), str(row.axes).replace("'", '"'), f"cover={row.cover}"]
    more = (f"{name}={getattr(row, name)}" for name in ("once", "edge", "closes"))
    given = [word for word in more if not word.endswith(("=False", "=0"))]
    return f"Traffic({', '.join([*words, *given])})"


def main() -> None:
    """Write them."""
    for name, text in modules().items():
        (FOLDER / f"{name}.py").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Predictions of the presets beside every published table: ``results.json`` and ``RESULTS.md``.

    python -m experiments.accuracy.accuracy

Nothing is fitted here; ``make accuracy`` also draws the figure.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.accuracy.blind import blind_results
from experiments.accuracy.cells import Cell, cells_of
from experiments.accuracy.error_classes import yaml_text
from experiments.accuracy.fitting.constants import committed
from experiments.accuracy.hold_out import HeldOut, held_out
from experiments.accuracy.launches import launched
from experiments.accuracy.page import page
from experiments.accuracy.pairs import comparisons, pair_target
from experiments.accuracy.summary import Result, targets
from experiments.accuracy.systems import has_preset, topology_name, topology_of
from experiments.tables.tables import Published, tables
from experiments.testbed.script import ended
from p2smt.cost.accuracy import ACCURACY_FILE
from p2smt.errors import InputError
from p2smt.report.progress import counted

HERE = Path(__file__).resolve().parent
RESULTS, PAGE = HERE / "results.json", HERE / "RESULTS.md"
COLUMNS = ("bytes", "measured_s", "predicted_s", "ratio", "algorithm", "protocol", "bound_s")
DIGITS = 6
"""Significant digits: far finer than the model, and the same on every machine."""


def results() -> list[Result]:
    """Every table that has a preset, with its cells."""
    known = [table for table in tables().values() if has_preset(table)]
    return [_result(table) for table in counted(known, "tables")]


def apart() -> list[Published]:
    """The tables without a preset."""
    return [table for table in tables().values() if not has_preset(table)]


def _result(table: Published) -> Result:
    topology = launched(topology_of(table), table, committed())
    cells = cells_of(table, topology)
    return Result(table, topology_name(table), topology.library_name, cells)


def data(
    found: Sequence[Result], unseen: Sequence[HeldOut], blind: Sequence[Result]
) -> dict[str, Any]:
    """What ``results.json`` holds."""
    return {
        "columns": COLUMNS,
        "tables": [_table_data(one) for one in found],
        "apart": [
            {"name": one.name, "system": one.system, "source": one.source} for one in apart()
        ],
        "targets": [
            {"what": one.what, "asked": one.asked, "found": one.found, "met": one.met}
            for one in (*targets(found), pair_target(list(comparisons(found))))
        ],
        "pairs": [
            [one.whole, one.part, one.size_bytes, one.calls, one.tie, one.agree]
            for one in comparisons(found)
        ],
        "held_out": [one.as_data() for one in unseen],
        "blind": [
            {"name": one.table.name, "predicted_s": [_rounded(c.predicted_s) for c in one.cells]}
            for one in blind
        ],
    }


def _table_data(one: Result) -> dict[str, Any]:
    return {
        "name": one.table.name,
        "topology": one.topology,
        "library": one.library,
        "collective": one.table.collective,
        "rows": [_cell_data(cell) for cell in one.cells],
    }


def _cell_data(cell: Cell) -> list[int | float | str]:
    times = (_rounded(value) for value in (cell.measured_s, cell.predicted_s, cell.ratio))
    last = (cell.algorithm, cell.protocol, _rounded(cell.bound_s))
    return [cell.size_bytes, *times, *last]


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def written(found: Mapping[str, Any]) -> str:
    """JSON with one line per entry of its lists, so that changes can be read."""
    parts = []
    for key, value in found.items():
        lines = ",\n".join(f" {json.dumps(entry)}" for entry in value)
        parts.append(f"{json.dumps(key)}: [\n{lines}\n]" if value else f"{json.dumps(key)}: []")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(arguments: Sequence[str]) -> None:
    """Predict every table and write the results and their page.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"argument {arguments[0]}", "none is expected", "leave it out")
    found, unseen, blind = results(), held_out(), blind_results()
    RESULTS.write_text(written(data(found, unseen, blind)), encoding="utf-8")
    PAGE.write_text(page(found, apart(), unseen, blind), encoding="utf-8")
    ACCURACY_FILE.write_text(yaml_text(found, unseen, blind), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

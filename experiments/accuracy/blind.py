"""Blind: every table predicted from constants that no table of its system was fitted to.

A system is left out whole, so what is its own alone (a network that no other has) is where the
search of a fit starts: what its sources say, or a guess.  This is how far off the prices of a
system are that nobody measured.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Sequence

from experiments.accuracy.cells import MIB, cells_of
from experiments.accuracy.fitting.constants import (
    HERE,
    Constants,
    committed,
    fitted_library,
    fitted_topology,
)
from experiments.accuracy.launches import launched
from experiments.accuracy.summary import Result
from experiments.accuracy.systems import has_preset, topology_name, topology_of
from experiments.tables.tables import Published, tables
from p2smt.report.progress import counted

BLIND = HERE / "constants_blind.json"
"""By the name of a system the constants that matter to it, fitted without it."""


def systems() -> dict[str, list[Published]]:
    """The tables of each system that has a preset."""
    found: dict[str, list[Published]] = defaultdict(list)
    for table in tables().values():
        if has_preset(table):
            found[table.system].append(table)
    return dict(found)


def blind_results() -> list[Result]:
    """Every table as in :func:`.accuracy.results`, by constants that have not seen its system."""
    unseen = json.loads(BLIND.read_text(encoding="utf-8"))
    known = [table for table in tables().values() if has_preset(table)]
    return [
        _result(table, {**committed(), **unseen.get(table.system, {})})
        for table in counted(known, "tables that constants have not seen")
    ]


def _result(table: Published, constants: Constants) -> Result:
    """A table by some constants; that of a profile on the preset, which has not seen it."""
    start = topology_of(table, profile=False)
    library = start.known_library
    number = sorted(systems()).index(table.system)
    other = fitted_library(library, constants, f"{library.name}-blind-{number}")
    topology = launched(fitted_topology(start, constants).under(other), table, constants)
    name = topology_name(table, profile=False)
    return Result(table, name, library.name, cells_of(table, topology))


def blind_errors(results: Sequence[Result]) -> tuple[float, float]:
    """Medians of abs(predicted / measured - 1) from 1 MiB up, and below."""
    cells = [cell for one in results for cell in one.cells]
    large = [cell.error for cell in cells if cell.size_bytes >= MIB]
    small = [cell.error for cell in cells if cell.size_bytes < MIB]
    return statistics.median(large), statistics.median(small)

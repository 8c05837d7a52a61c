"""Which placement is best by the ratio of two payloads: a table for people, data for ``--json``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType

from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem
from p2smt.report.crossings.cell_tables import span_data
from p2smt.report.tables import table
from p2smt.search.crossings.placements import PlacementCells


def placement_tables(problem: Problem, found: PlacementCells) -> Iterator[RenderableType]:
    """The best placement by the ratio of the payloads."""
    first, second, *more = (request.name for request in problem.requests)
    axes = ", ".join(axis.name for axis in problem.axes)
    yield f"large payloads on {problem.topology.name}; a row of the matrix for each of {axes}"
    rows = []
    for cell in found.cells:
        others = len(cell.best) - 1
        best = Placement(found.matrices[cell.best[0]]).text()
        end = "" if cell.high is None else str(cell.high)
        rows.append((str(cell.low), end, best, f"and {others} equal" if others else ""))
    columns = (">ratio from", ">to", f"best of {len(found.matrices)}", "")
    title = f"payload of {first} over that of {second}"
    for name, share in zip(more, found.shares[1:], strict=True):
        title += f"; that of {name} is {share} of the second"
    yield table(title, columns, rows)


def placement_data(problem: Problem, found: PlacementCells | None) -> dict[str, Any]:
    """The same as data; without cells (the time ran out) there are none."""
    cells = [] if found is None else found.cells
    return {
        "status": "unknown" if found is None else "complete",
        "axes": [axis.name for axis in problem.axes],
        "requests": [request.name for request in problem.requests],
        "shares": [] if found is None else list(map(str, found.shares)),
        "placements": 0 if found is None else len(found.matrices),
        "cells": [
            {
                "placement": [list(row) for row in found.matrices[cell.best[0]]],
                "equal": len(cell.best) - 1,
                "ratio": span_data(cell.low, cell.high),
                "s_per_byte": [
                    str(found.lines[cell.best[0]].slope),
                    str(found.lines[cell.best[0]].at_zero),
                ],
            }
            for cell in cells
            if found is not None
        ],
    }

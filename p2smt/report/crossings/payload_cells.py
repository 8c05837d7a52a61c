"""Which program of a request is best by its payload: a table for people, data for ``--json``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from rich.console import RenderableType

from p2smt.cost.symbolic.envelope import LeastCell
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem
from p2smt.report.costs.symbol_numbers import numbers_data, numbers_text
from p2smt.report.costs.symbolic_text import any_form_data, exact_bytes, form_text
from p2smt.report.crossings.cell_tables import names_of, span_data
from p2smt.report.tables import table
from p2smt.search.crossings.payloads import PayloadCells, PlacedForm
from p2smt.units import format_bytes


def payload_tables(problem: Problem, found: PayloadCells) -> Iterator[RenderableType]:
    """The best programs of a request by its payload, with the topology's numbers."""
    topology, several = problem.topology, found.matrices > 1
    under = f" under {topology.library}" if topology.library else ""
    title = f"{problem.requests[0].name} on {topology.name}{under}"
    names = _names(found)
    columns = ("", *["placement"] * several, "program", "by", "cost")
    rows = [
        (
            letter,
            *[Placement(found.forms[index].matrix).text()] * several,
            str(found.forms[index].program),
            _ways(found.forms[index]),
            form_text(found.forms[index].form, topology.names),
        )
        for index, letter in names.items()
    ]
    yield table(title, columns, rows)
    yield ""
    yield numbers_text(found.numbers, topology.names)
    yield ""
    bounds = ["0 B", *(_bound(*pair) for pair in pairwise(found.cells))]
    ends = [*bounds[1:], "" if found.complete else "open"]
    best = [names[cell.best[0]] for cell in found.cells]
    rows = list(zip(bounds, ends, best, strict=False))
    yield table("payload", (">from", ">to", "best"), rows)
    if not found.complete:
        end = found.cells[-1].high if found.cells else None
        yield f"the time limit came: payloads from {exact_bytes(end or Fraction(0))} on are open"


def _names(found: PayloadCells) -> dict[int, str]:
    return names_of(sorted({cell.best[0] for cell in found.cells}))


def _ways(one: PlacedForm) -> str:
    """How its steps run; once, where all run alike."""
    return "; ".join(one.ways if len(set(one.ways)) > 1 else one.ways[:1])


def _bound(before: LeastCell, after: LeastCell) -> str:
    """Where one cell ends and the next begins: a rational, or a root between two."""
    low, high = before.high or after.low, after.low
    if low == high:
        return exact_bytes(low)
    whole = math.floor(low), math.ceil(high)
    ends = whole if whole[0] else (low, high)
    return f"{format_bytes(float(low))} (root in {ends[0]}..{ends[1]} B)"


def payload_data(problem: Problem, found: PayloadCells | None) -> dict[str, Any]:
    """The same as data; bounds in bytes.  Without cells (the time ran out) there are none."""
    request, names = problem.requests[0], {} if found is None else _names(found)
    return {
        "status": "complete" if found is not None and found.complete else "unknown",
        "request": request.kind.value,
        "axes": list(request.axes),
        "levels": list(problem.topology.names),
        "library": problem.topology.library or None,
        "placements": 0 if found is None else found.matrices,
        "numbers": None if found is None else numbers_data(found.numbers),
        "programs": [] if found is None else _programs_data(found, names, problem.topology.names),
        "cells": [] if found is None else [_cell_data(found, names, c) for c in found.cells],
        "open_from": _open_from(found),
    }


def _open_from(found: PayloadCells | None) -> str | None:
    """From which payload on nothing is said."""
    if found is not None and found.complete:
        return None
    return str(found.cells[-1].high) if found is not None and found.cells else "0"


def _programs_data(
    found: PayloadCells, names: dict[int, str], levels: Sequence[str]
) -> list[dict[str, Any]]:
    return [
        {
            "name": letter,
            "program": str(found.forms[index].program),
            "placement": [list(row) for row in found.forms[index].matrix],
            "ways": list(found.forms[index].ways),
            **any_form_data(found.forms[index].form),
            "text": form_text(found.forms[index].form, levels),
        }
        for index, letter in names.items()
    ]


def _cell_data(found: PayloadCells, names: dict[int, str], cell: LeastCell) -> dict[str, Any]:
    return {
        "best": names[cell.best[0]],
        "program": str(found.forms[cell.best[0]].program),
        "payload": span_data(cell.low, cell.high),
        "equal": len(cell.best) - 1,
    }

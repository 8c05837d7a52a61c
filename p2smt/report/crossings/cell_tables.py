"""Cells in which one program is best: tables for people, data for ``--json``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from rich.console import RenderableType

from p2smt.cost.symbolic.envelope import LeastCell
from p2smt.plans.crossings.certificate import SymbolicSetting
from p2smt.report.costs.symbolic_text import form_data, form_text
from p2smt.report.tables import letters, table
from p2smt.search.crossings.cells import CrossingTable, NamedForm


def names_of(shown: Sequence[int]) -> dict[int, str]:
    """A letter for each cost, by index."""
    return {index: letters(n) for n, index in enumerate(shown)}


def crossing_tables(setting: SymbolicSetting, found: CrossingTable) -> Iterator[RenderableType]:
    """The programs that are best somewhere, and where."""
    names, levels = names_of(found.shown), setting.scene.topology.names
    size, inner = " x ".join(map(str, setting.factors)), levels[-1]
    ports = ",".join(map(str, setting.ports))
    yield _programs(found.forms, names, levels, f"{setting.kind.value} over {size}, ports {ports}")
    yield ""
    ratios = found.rows[0].ratios
    fixed = f"latency ratios {_listed(ratios.latency[:-1])}, cost per call {ratios.call}"
    title = f"x = n beta_{inner} / alpha_{inner}; {fixed}"
    rows = [
        (_listed(row.ratios.bandwidth[:-1]), _cells_text(row.cells, names)) for row in found.rows
    ]
    yield table(title, (">bandwidth ratio", "best, by the payload x"), rows)
    if found.large:
        yield ""
        cells = _cells_text(found.large, names)
        first, last = found.large[0].low, found.large[-1].high
        yield f"large payloads, bandwidth ratio of {levels[0]} from {first} to {last}: {cells}"


def _programs(
    forms: Sequence[NamedForm], names: dict[int, str], levels: Sequence[str], title: str
) -> RenderableType:
    rows = [
        (letter, str(forms[index].programs[0]), form_text(forms[index].form, levels))
        for index, letter in names.items()
    ]
    return table(title, ("", "program", "cost"), rows)


def _listed(numbers: Sequence[Fraction]) -> str:
    return ", ".join(map(str, numbers))


def _cells_text(cells: Sequence[LeastCell], names: dict[int, str]) -> str:
    """Such as ``A up to 192/5, then B``; ``A (or 2 others)`` where costs are equal."""
    parts = []
    for cell in cells:
        others = len(cell.best) - 1
        tie = f" (equal: {others} more)" if others else ""
        end = "" if cell.high is None or cell is cells[-1] else f" up to {cell.high}"
        parts.append(f"{names[cell.best[0]]}{tie}{end}")
    return ", then ".join(parts)


def crossing_data(setting: SymbolicSetting, found: CrossingTable | None) -> dict[str, Any]:
    """The cells as data; without a table (the time ran out) there are none."""
    shown = found.shown if found is not None else ()
    names, forms = names_of(shown), found.forms if found is not None else ()
    return {
        "status": "unknown" if found is None else "complete",
        "request": setting.kind.value,
        "factors": list(setting.factors),
        "ports": list(setting.ports),
        "max_length": setting.max_length,
        "programs": _programs_data(forms, names, setting.scene.topology.names),
        "large_payloads": large_cells(found) if found is not None else [],
        "cells": flat_cells(found) if found is not None else [],
    }


def flat_cells(found: CrossingTable) -> list[dict[str, Any]]:
    """Each cell of each row by itself: its program, and from where to where each number goes."""
    return [
        {
            "program": str(found.forms[cell.best[0]].programs[0]),
            "payload": span_data(cell.low, cell.high),
            "bandwidth_ratio": span_data(row.ratios.bandwidth[0], row.ratios.bandwidth[0]),
            "latency_ratio": span_data(row.ratios.latency[0], row.ratios.latency[0]),
            "cost_per_call": span_data(row.ratios.call, row.ratios.call),
            "inner_bandwidth_ratios": list(map(str, row.ratios.bandwidth[1:-1])),
            "inner_latency_ratios": list(map(str, row.ratios.latency[1:-1])),
            "equal": len(cell.best) - 1,
        }
        for row in found.rows
        for cell in row.cells
    ]


def span_data(low: Fraction, high: Fraction | None) -> dict[str, str | None]:
    """From where to where a number goes, as texts; None: without end."""
    return {"from": str(low), "to": None if high is None else str(high)}


def _programs_data(
    forms: Sequence[NamedForm], names: dict[int, str], levels: Sequence[str]
) -> list[dict[str, Any]]:
    return [
        {
            "name": letter,
            "programs": list(map(str, forms[index].programs)),
            **form_data(forms[index].form),
            "text": form_text(forms[index].form, levels),
        }
        for index, letter in names.items()
    ]


def large_cells(found: CrossingTable) -> list[dict[str, Any]]:
    """The cells of large payloads, by the bandwidth ratio of the outermost level."""
    return [
        {
            "program": str(found.forms[cell.best[0]].programs[0]),
            "bandwidth_ratio": span_data(cell.low, cell.high),
            "equal": len(cell.best) - 1,
        }
        for cell in found.large
    ]

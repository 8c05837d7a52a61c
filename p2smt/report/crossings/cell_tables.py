"""Cells in which one program is best: tables for people, data for ``--json``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from rich.console import RenderableType

from p2smt.cost.scene import Scene
from p2smt.cost.symbolic.envelope import LeastCell
from p2smt.parallelism.request import Request
from p2smt.plans.crossings.certificate import SymbolicSetting
from p2smt.report.costs.symbolic_text import form_data, form_text
from p2smt.report.tables import letters, table
from p2smt.search.crossings.cells import CrossingTable, LevelRatios, NamedForm
from p2smt.units import format_bytes


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
        "rows": [
            {**_ratios_data(row.ratios), "cells": _cells_data(row.cells, names)}
            for row in (found.rows if found is not None else ())
        ],
        "large_payloads": _cells_data(found.large if found is not None else (), names),
    }


def _ratios_data(ratios: LevelRatios) -> dict[str, Any]:
    return {
        "latency_ratios": list(map(str, ratios.latency)),
        "bandwidth_ratios": list(map(str, ratios.bandwidth)),
        "cost_per_call": str(ratios.call),
    }


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


def _cells_data(cells: Sequence[LeastCell], names: dict[int, str]) -> list[dict[str, Any]]:
    return [
        {
            "low": str(cell.low),
            "high": None if cell.high is None else str(cell.high),
            "best": names[cell.best[0]],
            "equal": len(cell.best) - 1,
        }
        for cell in cells
    ]


def payload_tables(
    scene: Scene, request: Request, forms: Sequence[NamedForm], cells: Sequence[LeastCell]
) -> Iterator[RenderableType]:
    """The best programs of a request by its payload, with the topology's numbers."""
    names = names_of(sorted({cell.best[0] for cell in cells}))
    title = f"{request.name} on {scene.topology.name}"
    yield _programs(forms, names, scene.topology.names, title)
    yield ""
    rows = [(_bytes(cell.low), _bytes(cell.high), names[cell.best[0]]) for cell in cells]
    yield table("payload", (">from", ">to", "best"), rows)


def _bytes(number: Fraction | None) -> str:
    if number is None:
        return ""
    exact = f" ({number} B)" if number else ""
    return f"{format_bytes(float(number))}{exact}"


def payload_data(
    scene: Scene,
    request: Request,
    forms: Sequence[NamedForm] | None,
    cells: Sequence[LeastCell],
) -> dict[str, Any]:
    """The same as data; bounds in bytes."""
    names = names_of(sorted({cell.best[0] for cell in cells}))
    return {
        "status": "unknown" if forms is None else "complete",
        "request": request.kind.value,
        "axes": list(request.axes),
        "levels": list(scene.topology.names),
        "programs": _programs_data(forms or (), names, scene.topology.names),
        "cells": _cells_data(cells, names),
    }

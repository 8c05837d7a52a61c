"""Cells in which one program is best: tables for people, data for ``--json``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from rich.console import RenderableType

from p2smt.collectives.demand import plain_kind
from p2smt.cost.symbolic.form import LeastCell
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.crossings.least_set import SymbolicSetting
from p2smt.report.costs.symbolic_text import (
    any_form_data,
    exact_bytes,
    form_data,
    form_text,
    numbers_data,
    numbers_text,
)
from p2smt.report.outputs.symbolic import (
    CrossingProgram,
    CrossingsOutput,
    CrossingsPayloadOutput,
    CrossingsPlacementOutput,
    FlatCell,
    LargePayloadCell,
    NumberRange,
    PayloadCell,
    PlacedProgramPart,
    PlacementCell,
)
from p2smt.report.tables import letters, table
from p2smt.search.crossings.least import CrossingTable, NamedForm
from p2smt.search.crossings.on_topology import PayloadCells, PlacedForm, PlacementCells
from p2smt.units import format_bytes


def names_of(shown: Sequence[int]) -> dict[int, str]:
    """A letter for each cost, by index."""
    return {index: letters(n) for n, index in enumerate(shown)}


def crossing_tables(
    setting: SymbolicSetting, found: CrossingTable, *, short: bool = False
) -> Iterator[RenderableType]:
    """Where which programs are best, and these; ``short``: as in :func:`payload_tables`."""
    names, levels = names_of(found.shown), setting.scene.topology.names
    size, inner = " x ".join(map(str, setting.factors)), levels[-1]
    ports = ",".join(map(str, setting.ports))
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
    yield ""
    title = f"{setting.kind.value} over {size}, ports {ports}"
    yield _programs(found.forms, names, levels, title, short=short)


def _programs(
    forms: Sequence[NamedForm],
    names: dict[int, str],
    levels: Sequence[str],
    title: str,
    *,
    short: bool,
) -> RenderableType:
    rows = [
        (letter, str(forms[index].programs[0]), form_text(forms[index].form, levels))
        for index, letter in names.items()
    ]
    return table(title, ("", "program", "cost"), rows, least=("cost",) if short else ())


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


def crossing_data(setting: SymbolicSetting, found: CrossingTable | None) -> CrossingsOutput:
    """The cells as data; without a table (the time ran out) there are none."""
    shown = found.shown if found is not None else ()
    names, forms = names_of(shown), found.forms if found is not None else ()
    return CrossingsOutput(
        status="unknown" if found is None else "complete",
        request=setting.kind,
        factors=setting.factors,
        ports=setting.ports,
        max_length=setting.max_length,
        programs=_programs_data(forms, names, setting.scene.topology.names),
        large_payloads=_large_cells(found) if found is not None else [],
        cells=flat_cells(found) if found is not None else [],
    )


def flat_cells(found: CrossingTable) -> list[FlatCell]:
    """Each cell of each row by itself: its program, and from where to where each number goes."""
    return [
        FlatCell(
            program=str(found.forms[cell.best[0]].programs[0]),
            payload=NumberRange(from_=cell.low, to=cell.high),
            bandwidth_ratio=_alone(row.ratios.bandwidth[0]),
            latency_ratio=_alone(row.ratios.latency[0]),
            cost_per_call=_alone(row.ratios.call),
            inner_bandwidth_ratios=row.ratios.bandwidth[1:-1],
            inner_latency_ratios=row.ratios.latency[1:-1],
            equal=len(cell.best) - 1,
        )
        for row in found.rows
        for cell in row.cells
    ]


def _alone(number: Fraction) -> NumberRange:
    return NumberRange(from_=number, to=number)


def _programs_data(
    forms: Sequence[NamedForm], names: dict[int, str], levels: Sequence[str]
) -> list[CrossingProgram]:
    return [
        CrossingProgram(
            name=letter,
            programs=list(map(str, forms[index].programs)),
            **vars(form_data(forms[index].form)),
            text=form_text(forms[index].form, levels),
        )
        for index, letter in names.items()
    ]


def _large_cells(found: CrossingTable) -> list[LargePayloadCell]:
    """The cells of large payloads, by the bandwidth ratio of the outermost level."""
    return [
        LargePayloadCell(
            program=str(found.forms[cell.best[0]].programs[0]),
            bandwidth_ratio=NumberRange(from_=cell.low, to=cell.high),
            equal=len(cell.best) - 1,
        )
        for cell in found.large
    ]


# Which program of a request is best by its payload: a table for people, data for ``--json``.


def payload_tables(
    problem: Problem, found: PayloadCells, *, short: bool = False
) -> Iterator[RenderableType]:
    """The best programs of a request by its payload, with the topology's numbers.

    ``short``: without the costs where these take more room than there is.
    """
    topology, several = problem.topology, found.matrices > 1
    under = f" under {topology.library_name}" if topology.library else ""
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
    bounds = ["0 B", *(_bound(*pair) for pair in pairwise(found.cells))]
    ends = [*bounds[1:], "" if found.complete else "open"]
    best = [names[cell.best[0]] for cell in found.cells]
    cells = list(zip(bounds, ends, best, strict=False))
    yield table("payload", (">from", ">to", "best"), cells)
    if not found.complete:
        end = found.cells[-1].high if found.cells else None
        yield f"the time limit came: payloads from {exact_bytes(end or Fraction(0))} on are open"
    yield ""
    yield table(title, columns, rows, least=("cost",) if short else ())
    yield ""
    yield numbers_text(found.numbers, topology.names)


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


def payload_data(problem: Problem, found: PayloadCells | None) -> CrossingsPayloadOutput:
    """The same as data; bounds in bytes.  Without cells (the time ran out) there are none."""
    request, names = problem.requests[0], {} if found is None else _names(found)
    levels = problem.topology.names
    return CrossingsPayloadOutput(
        status="complete" if found is not None and found.complete else "unknown",
        request=plain_kind(request.kind),
        axes=request.axes,
        levels=levels,
        library=problem.topology.library_name or None,
        placements=0 if found is None else found.matrices,
        numbers=None if found is None else numbers_data(found.numbers),
        programs=[] if found is None else _payload_programs_data(found, names, levels),
        cells=[] if found is None else [_cell_data(found, names, c) for c in found.cells],
        open_from=_open_from(found),
    )


def _open_from(found: PayloadCells | None) -> Fraction | None:
    """From which payload on nothing is said."""
    if found is not None and found.complete:
        return None
    return found.cells[-1].high if found is not None and found.cells else Fraction(0)


def _payload_programs_data(
    found: PayloadCells, names: dict[int, str], levels: Sequence[str]
) -> list[PlacedProgramPart]:
    return [
        PlacedProgramPart(
            name=letter,
            program=str(found.forms[index].program),
            placement=found.forms[index].matrix,
            ways=found.forms[index].ways,
            **vars(any_form_data(found.forms[index].form)),
            text=form_text(found.forms[index].form, levels),
        )
        for index, letter in names.items()
    ]


def _cell_data(found: PayloadCells, names: dict[int, str], cell: LeastCell) -> PayloadCell:
    return PayloadCell(
        best=names[cell.best[0]],
        program=str(found.forms[cell.best[0]].program),
        payload=NumberRange(from_=cell.low, to=cell.high),
        equal=len(cell.best) - 1,
    )


# Which placement is best by the ratio of two payloads: a table for people, data for ``--json``.


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


def placement_data(problem: Problem, found: PlacementCells | None) -> CrossingsPlacementOutput:
    """The same as data; without cells (the time ran out) there are none."""
    return CrossingsPlacementOutput(
        status="unknown" if found is None else "complete",
        axes=[axis.name for axis in problem.axes],
        requests=[request.name for request in problem.requests],
        shares=() if found is None else found.shares,
        placements=0 if found is None else len(found.matrices),
        cells=[] if found is None else [_placement_cell(found, cell) for cell in found.cells],
    )


def _placement_cell(found: PlacementCells, cell: LeastCell) -> PlacementCell:
    line = found.lines[cell.best[0]]
    return PlacementCell(
        placement=found.matrices[cell.best[0]],
        equal=len(cell.best) - 1,
        ratio=NumberRange(from_=cell.low, to=cell.high),
        s_per_byte=(line.slope, line.at_zero),
    )

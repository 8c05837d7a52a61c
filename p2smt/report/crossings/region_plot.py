"""Regions in which one program is best, over bandwidth ratio and payload.  Needs matplotlib."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from p2smt.cost.symbolic.form import payload_cells
from p2smt.errors import InputError
from p2smt.files.write import write_atomically
from p2smt.plans.crossings.least_set import SymbolicSetting
from p2smt.report.costs.sweep import plot_format
from p2smt.report.crossings.cell_tables import names_of
from p2smt.search.crossings.least import CrossingTable, LevelRatios

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS, _FINER, _LINE = 160, 16, 88
_SEAM = 0.4
"""Points by which neighbours overlap, so that nothing is seen between them."""
Column = tuple[Fraction, list[tuple[Fraction, Fraction | None, int]]]
"""A bandwidth ratio and its cells: from, to, and the first that is best."""
# Okabe and Ito's colours, which colour-blind readers can tell apart.
_COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#0072B2", "#D55E00")


def write_regions(setting: SymbolicSetting, found: CrossingTable, path: str) -> None:
    """Draw the regions and write them whole or not at all.

    Raises:
        InputError: there is one bandwidth ratio only, or the file cannot be written.
        BackendError: matplotlib is not installed.
    """
    suffix, picture = plot_format(path), io.BytesIO()
    if len(found.rows) < 2:
        raise InputError("--plot", "draws a range of bandwidth ratios", "give some such as 1..64")
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "p2smt"}):
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix, {})
        _drawn(setting, found).savefig(picture, format=suffix, dpi=150, metadata=metadata)
    write_atomically(path, picture.getvalue())


def _drawn(setting: SymbolicSetting, found: CrossingTable) -> Figure:
    """Each column's breakpoints are exact; between columns they are joined."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    columns = _columns(found)
    ends = [float(high) for _, cells in columns for _, high, _ in cells if high is not None]
    low, top = min(ends, default=1.0) / 4, max(ends, default=1.0) * 4
    names = names_of(sorted({best for _, cells in columns for _, _, best in cells}))
    colours = {best: _COLOURS[n % len(_COLOURS)] for n, best in enumerate(names)}
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for run in _runs(columns):
        for k, (_, _, best) in enumerate(run[0][1]):
            bottoms = [max(float(cells[k][0]), low) for _, cells in run]
            tops = [top if cells[k][1] is None else float(cells[k][1] or 0) for _, cells in run]
            ratios = [float(ratio) for ratio, _ in run]
            colour = colours[best]
            axes.fill_between(
                ratios, bottoms, tops, facecolor=colour, edgecolor=colour, linewidth=_SEAM
            )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlim(float(columns[0][0]), float(columns[-1][0]))
    axes.set_ylim(low, top)
    levels = setting.scene.topology.names
    axes.set_xlabel(f"bandwidth ratio: beta of {levels[0]} over beta of {levels[-1]}")
    axes.set_ylabel(f"payload: n beta / alpha of {levels[-1]}")
    axes.set_title("\n".join(title_lines(setting, found.rows[0].ratios)), fontsize="medium")
    handles = [
        Patch(
            color=colours[best],
            label=textwrap.fill(f"{letter}: {found.forms[best].programs[0]}", _LINE),
        )
        for best, letter in names.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", frameon=False, fontsize="small")
    return figure


def title_lines(setting: SymbolicSetting, ratios: LevelRatios) -> Iterator[str]:
    """What is drawn, then every number that it is drawn for."""
    size, ports = " x ".join(map(str, setting.factors)), ",".join(map(str, setting.ports))
    longest = f"programs of at most {setting.max_length} instructions"
    yield f"{setting.kind.value} over {size}, ports {ports}, rings, {longest}"
    inner = [f"inner bandwidth ratios {_listed(ratios.bandwidth[1:-1])}"] * (
        len(setting.factors) > 2
    )
    latency = f"latency ratios {_listed(ratios.latency[:-1])}"
    yield ", ".join([latency, *inner, f"cost per call {ratios.call} (of the innermost alpha)"])


def _listed(numbers: Sequence[Fraction]) -> str:
    return ", ".join(map(str, numbers))


def _step(found: CrossingTable) -> float:
    """The width of a column, in powers of two."""
    first, last = (row.ratios.bandwidth[0] for row in (found.rows[0], found.rows[-1]))
    return math.log2(last / first) / _COLUMNS


def _columns(found: CrossingTable) -> list[Column]:
    """Bandwidth ratios evenly in powers of two, each with its cells and the first best of them.

    Between two with other bests in another order there are more.
    """
    first, step = found.rows[0].ratios.bandwidth[0], _step(found)
    columns = [_column(found, first * Fraction(2 ** (n * step))) for n in range(_COLUMNS + 1)]
    finer = []
    for before, after in pairwise(columns):
        finer.append(before)
        if _order(before) != _order(after):
            width = (after[0] - before[0]) / _FINER
            finer += [_column(found, before[0] + n * width) for n in range(1, _FINER)]
    return [*finer, columns[-1]]


def _column(found: CrossingTable, at: Fraction) -> Column:
    numbers = found.rows[0].ratios.with_outermost(at).numbers
    cells = payload_cells([one.form for one in found.forms], numbers)
    return at, [(cell.low, cell.high, cell.best[0]) for cell in cells]


def _order(column: Column) -> list[int]:
    return [best for _, _, best in column[1]]


def _runs(columns: list[Column]) -> Iterator[list[Column]]:
    """Columns with the same bests in the same order; each reaches to where the next begins."""
    run: list[Column] = []
    for column in columns:
        if run and _order(run[-1]) != _order(column):
            yield [*run, (column[0], run[-1][1])]
            run = []
        run.append(column)
    yield run

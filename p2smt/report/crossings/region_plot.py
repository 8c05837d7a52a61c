"""Regions in which one program is best, over bandwidth ratio and payload.  Needs matplotlib."""

from __future__ import annotations

import io
import math
import textwrap
from fractions import Fraction
from typing import TYPE_CHECKING

from p2smt.cost.symbolic.envelope import payload_cells
from p2smt.errors import InputError
from p2smt.files.write import write_atomically
from p2smt.plans.crossings.certificate import SymbolicSetting
from p2smt.report.costs.sweep_plot import plot_format
from p2smt.report.crossings.cell_tables import names_of
from p2smt.search.crossings.cells import CrossingTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS, _LINE = 160, 88
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
    """Each column's cells as they are: exact breakpoints, drawn where the column stands."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    columns = _columns(found)
    ends = [float(high) for _, cells in columns for _, high, _ in cells if high is not None]
    low, top = min(ends, default=1.0) / 4, max(ends, default=1.0) * 4
    names = names_of(sorted({best for _, cells in columns for _, _, best in cells}))
    colours = {best: _COLOURS[n % len(_COLOURS)] for n, best in enumerate(names)}
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    half = 2 ** (_step(found) / 2)
    for ratio, cells in columns:
        for first, last, best in cells:
            bottom = max(float(first), low)
            height = (top if last is None else float(last)) - bottom
            left = float(ratio) / half
            axes.bar(
                left, height, float(ratio) * half - left, bottom, align="edge", color=colours[best]
            )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlim(float(columns[0][0]), float(columns[-1][0]))
    axes.set_ylim(low, top)
    levels = setting.scene.topology.names
    axes.set_xlabel(f"bandwidth ratio: beta of {levels[0]} over beta of {levels[-1]}")
    axes.set_ylabel(f"payload: n beta / alpha of {levels[-1]}")
    axes.set_title(f"{setting.kind.value} over {' x '.join(map(str, setting.factors))}")
    handles = [
        Patch(
            color=colours[best],
            label=textwrap.fill(f"{letter}: {found.forms[best].programs[0]}", _LINE),
        )
        for best, letter in names.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", frameon=False, fontsize="small")
    return figure


def _step(found: CrossingTable) -> float:
    """The width of a column, in powers of two."""
    first, last = (row.ratios.bandwidth[0] for row in (found.rows[0], found.rows[-1]))
    return math.log2(last / first) / _COLUMNS


def _columns(
    found: CrossingTable,
) -> list[tuple[Fraction, list[tuple[Fraction, Fraction | None, int]]]]:
    """Bandwidth ratios evenly in powers of two, each with its cells and the first best of them."""
    first, forms = found.rows[0].ratios, [one.form for one in found.forms]
    columns = []
    for n in range(_COLUMNS + 1):
        at = first.bandwidth[0] * Fraction(2 ** (n * _step(found)))
        numbers = first.with_outermost(at).numbers
        cells = [(c.low, c.high, c.best[0]) for c in payload_cells(forms, numbers)]
        columns.append((at, cells))
    return columns

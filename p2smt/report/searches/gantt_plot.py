"""Cubes by worker over time as a picture.  Needs matplotlib, which the ``plots`` extra brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.errors import BackendError
from p2smt.parallel_search.subproblem import CubeVerdict
from p2smt.report.searches.timeline import CubeBar, LostTime, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    CubeVerdict.SOLVED: "#0072B2",
    CubeVerdict.LISTED: "#0072B2",
    CubeVerdict.EMPTY: "#56B4E9",
    CubeVerdict.BOUNDED: "#E69F00",
    CubeVerdict.UNKNOWN: "#999999",
    None: "#CC79A7",  # it was split
}
"""Okabe and Ito's."""
STALE = "#D55E00"
QUEUEING, IDLING = "#F0E442", "#DDDDDD"
ROW_INCHES, MOST_ROWS = 0.3, 64


def draw_gantt(timeline: Timeline) -> Figure:
    """A bar for each cube, a row for each worker; on the right what each worker lost.

    The first 64 workers are drawn.

    Raises:
        BackendError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        text = "matplotlib is not installed: pip install 'p2smt[plots]'"
        raise BackendError(text) from error
    workers = timeline.workers[:MOST_ROWS]
    height = 1.6 + ROW_INCHES * max(2, len(workers))
    figure = Figure(figsize=(11, height), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 1), sharey=True)
    rows = {worker: row for row, worker in enumerate(workers)}
    for bar in timeline.bars:
        if bar.worker in rows:
            _draw_bar(left, bar, rows[bar.worker])
    for at_s in timeline.splits_s:
        left.axvline(at_s, color="#CC79A7", lw=0.5)
    left.set(xlabel="seconds since the search began", xlim=(0, timeline.end_s or 1.0))
    left.set_yticks(range(len(workers)), workers, fontsize="small")
    left.invert_yaxis()
    for lost in timeline.lost()[:MOST_ROWS]:
        _draw_lost(right, lost, rows[lost.worker])
    right.set(xlabel="seconds lost")
    _legends(left, right)
    return figure


def _draw_bar(axes: Axes, bar: CubeBar, row: int) -> None:
    parts = [(bar.start_s, COLOURS[bar.verdict])]
    if bar.stale_s is not None:
        parts.append((bar.stale_s, STALE))
    for start_s, colour in parts:
        length = bar.end_s - start_s
        axes.barh(row, length, 0.7, start_s, color=colour, edgecolor="white", linewidth=0.3)


def _draw_lost(axes: Axes, lost: LostTime, row: int) -> None:
    left = 0.0
    for seconds, colour in (
        (lost.queueing_s, QUEUEING),
        (lost.stale_s, STALE),
        (lost.idling_s, IDLING),
    ):
        axes.barh(row, seconds, left=left, color=colour, height=0.7)
        left += seconds


def _legends(left: Axes, right: Axes) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shown = reversed(COLOURS.items())
    names = {colour: verdict.value if verdict else "split" for verdict, colour in shown}
    names[COLOURS[CubeVerdict.SOLVED]] = "solved or listed"
    patches = [Patch(color=colour, label=name) for colour, name in names.items()]
    splits = Line2D([], [], color="#CC79A7", lw=1, label="a cube is split")
    left.legend(
        handles=[*patches, splits],
        ncols=5,
        fontsize="small",
        loc="lower left",
        bbox_to_anchor=(0, 1),
    )
    losses = ((QUEUEING, "queueing"), (STALE, "stale incumbent"), (IDLING, "idling"))
    handles = [Patch(color=colour, label=name) for colour, name in losses]
    right.legend(
        handles=handles, ncols=1, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1)
    )

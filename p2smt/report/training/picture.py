"""A picture (SVG) of planned runs: where the time goes, and which axis spans which level.

Above a bar for each strategy, cut into compute, bubble, what shows of each axis, and optimizer;
the thin bar under it is communication that hides.  Below the parallelism matrix of the first
strategy, an axis a row and a level a column, and the ranks of the first nodes by their place on the
axes that have several devices; of a mixture the same of its experts, on the same devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.files.write import check_svg_name, write_atomically
from p2smt.parallelism.placement import Placement
from p2smt.report.training.run_words import (
    BUBBLE,
    COMPUTE,
    OPTIMIZER,
    TimePart,
    batch_words,
    cluster_words,
    model_words,
    time_parts,
)
from p2smt.training.prediction import RunEstimate
from p2smt.training.strategy import AXES, EXPERT_AXES, strategy_text
from p2smt.units import counted, format_time

MOST_BARS, MOST_NODES, MOST_IN_A_NODE = 10, 8, 16
_WIDTH, _MARGIN, _BAR, _PITCH = 720, 16, 18, 52
_CELL_X, _CELL_Y, _DEVICE = 74, 24, 40
_TEXT_PX = 6.2
_FONT = "font-family='Helvetica,Arial,sans-serif'"
# Okabe and Ito's colours, which all eyes can tell apart.
_COLOURS = {
    COMPUTE: "#009e73",
    BUBBLE: "#cccccc",
    "tp": "#d55e00",
    "cp": "#cc79a7",
    "dp": "#0072b2",
    "pp": "#e69f00",
    "ep": "#f0e442",
    "ed": "#00486f",
    "et": "#8c3d00",
    OPTIMIZER: "#56b4e9",
}
_OTHER = "#999999"


def write_run_picture(runs: Sequence[RunEstimate], path: str) -> None:
    """Draw runs, the best first, and write the picture whole or not at all.

    Raises:
        InputError: the name does not end in .svg, or it cannot be written.
    """
    check_svg_name(path)
    write_atomically(path, run_picture(runs))


def run_picture(runs: Sequence[RunEstimate]) -> str:
    """Runs (at least one) on one cluster as SVG."""
    best, shown = runs[0], runs[:MOST_BARS]
    title = f"{model_words(best.run.model)} on {cluster_words(best.topology)}"
    names = dict.fromkeys(part.name for run in shown for part in time_parts(run.prediction))
    lines = [
        _text(_MARGIN, 24, title, 14, bold=True),
        _text(_MARGIN, 42, f"an iteration of {batch_words(best.run.batch)}; thin bars: hidden", 11),
        *_legend(list(names), 54),
    ]
    top = 84
    slowest = max(max(run.iteration_s, _hidden_s(run)) for run in shown)
    for run in shown:
        lines += _bar(run, slowest, top)
        top += _PITCH
    width = _WIDTH
    for drawn in _drawn(best):
        lines += _matrix(drawn, best.topology, top + 14)
        matrix_width = _MARGIN * 2 + _CELL_X * (drawn.placement.width + 1)
        top += 64 + _CELL_Y * len(drawn.axes)
        lines += _nodes(drawn, best.topology, top)
        in_node, nodes = _shape(best.topology)
        top += 40 + _DEVICE * nodes
        width = max(width, matrix_width, _MARGIN * 2 + _wide(drawn.placement) * in_node)
    longest = max(len(strategy_text(run.run.strategy)) + 20 for run in shown)
    width = max(width, 2 * _MARGIN + int(_TEXT_PX * longest), 2 * _MARGIN + 8 * len(title))
    size = f"width='{width}' height='{top}' viewBox='0 0 {width} {top}'"
    head = [
        f"<svg xmlns='http://www.w3.org/2000/svg' {size}>",
        f"<rect width='{width}' height='{top}' fill='#ffffff'/>",
    ]
    return "\n".join([*head, *lines]) + "\n</svg>\n"


class _Drawn(NamedTuple):
    """A matrix, the names of its rows, and whose it is."""

    placement: Placement
    axes: tuple[str, ...]
    whose: str = ""


def _drawn(run: RunEstimate) -> Iterator[_Drawn]:
    """The matrices of a run: one, or those of attention and experts."""
    mixture = run.run.model.experts is not None
    if run.placement is not None:
        yield _Drawn(run.placement, AXES, " of attention" if mixture else "")
    if mixture and run.experts is not None:
        yield _Drawn(run.experts, EXPERT_AXES, " of experts")


def _legend(names: Sequence[str], top: int) -> Iterator[str]:
    left = _MARGIN
    for name in names:
        yield _box(left, top, 12, 12, _COLOURS.get(name, _OTHER))
        yield _text(left + 16, top + 10, name, 11)
        left += 30 + int(_TEXT_PX * len(name))


def _bar(run: RunEstimate, slowest_s: float, top: int) -> Iterator[str]:
    """The parts of an iteration side by side, and what hides under them."""
    label = f"{strategy_text(run.run.strategy)}: {format_time(run.iteration_s)}"
    yield _text(_MARGIN, top, label, 11)
    scale = (_WIDTH - 2 * _MARGIN) / slowest_s
    parts = time_parts(run.prediction)
    yield from _side_by_side(parts, [part.seconds for part in parts], scale, top + 6, _BAR)
    yield from _side_by_side(parts, [part.hidden_s for part in parts], scale, top + 7 + _BAR, 5)


def _hidden_s(run: RunEstimate) -> float:
    return sum(part.hidden_s for part in time_parts(run.prediction))


def _side_by_side(
    parts: Sequence[TimePart], seconds: Sequence[float], scale: float, top: int, height: int
) -> Iterator[str]:
    left = float(_MARGIN)
    for part, length in zip(parts, seconds, strict=True):
        width = length * scale
        if width > 0:
            told = f"{part.name} {format_time(length)}"
            yield _box(left, top, width, height, _COLOURS.get(part.name, _OTHER), told)
        left += width


def _matrix(drawn: _Drawn, topology: Topology, top: int) -> Iterator[str]:
    """The matrix; entries above 1 have the colour of their axis."""
    title = f"parts of each axis{drawn.whose} at each level"
    yield _text(_MARGIN, top, title, 12, bold=True)
    for column, name in enumerate(topology.names):
        label = f"{name} ({topology.sizes[column]})"
        yield _text(_MARGIN + _CELL_X * (column + 1) + 6, top + 20, label[:14], 10)
    for row, (axis, entries) in enumerate(zip(drawn.axes, drawn.placement.matrix, strict=True)):
        upper = top + 26 + _CELL_Y * row
        yield _text(_MARGIN, upper + 16, axis, 12, bold=True)
        for column, entry in enumerate(entries):
            left, colour = _MARGIN + _CELL_X * (column + 1), "#f2f2f2"
            if entry > 1:
                colour = _COLOURS[axis]
            yield _box(left, upper, _CELL_X - 4, _CELL_Y - 4, colour)
            dark = entry < 2 or axis == "ep"
            fill = "#222222" if dark else "#fff"
            yield _text(left + 8, upper + 15, str(entry), 12, fill=fill)


def _shape(topology: Topology) -> tuple[int, int]:
    """Devices in a row of the drawing, and its rows: those of a node, and the first nodes."""
    in_node = topology.devices_under(topology.node_level)
    each = min(in_node if in_node > 1 else topology.devices, MOST_IN_A_NODE)
    return each, min(-(-topology.devices // each), MOST_NODES)


def _wide(placement: Placement) -> int:
    """Pixels of a device: its place on each axis of several devices must go in."""
    return max(_DEVICE, 10 + 6 * 5 * sum(size > 1 for size in placement.axis_sizes))


def _nodes(drawn: _Drawn, topology: Topology, top: int) -> Iterator[str]:
    """Devices of the first nodes, each with its place on the axes of several devices."""
    sizes, names = drawn.placement.axis_sizes, drawn.axes
    chosen = [index for index, size in enumerate(sizes) if size > 1]
    ranks = drawn.placement.rank_tensor()
    places = np.empty((ranks.size, len(sizes)), dtype=np.int64)
    places[ranks.ravel()] = np.indices(ranks.shape).reshape(len(sizes), -1).T
    each, rows = _shape(topology)
    axes = " ".join(names[index] for index in chosen) or "one device"
    first = counted(each * rows, "device")
    more = "" if each * rows == topology.devices else f" (the first {first})"
    yield _text(_MARGIN, top + 2, f"a row for each node; places on {axes}{more}", 11)
    wide = _wide(drawn.placement)
    for device in range(min(each * rows, topology.devices)):
        left, upper = _MARGIN + device % each * wide, top + 10 + device // each * _DEVICE
        yield _box(left, upper, wide - 4, _DEVICE - 6, _shade(places[device][0], sizes[0]))
        words = " ".join(f"{names[index]}{places[device][index]}" for index in chosen)
        yield _text(left + 4, upper + 21, words, 9)


def _shade(stage: int, stages: int) -> str:
    """A light colour for a stage of the pipeline: later ones are darker."""
    part = stage / max(stages - 1, 1)
    red, green, blue = (round(255 - (255 - end) * (0.12 + 0.6 * part)) for end in (230, 159, 0))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _box(left: float, top: float, width: float, height: float, colour: str, told: str = "") -> str:
    title = f"<title>{escape(told)}</title>" if told else ""
    at = f"x='{left:.2f}' y='{top:.2f}' width='{width:.2f}' height='{height:.2f}'"
    return f"<rect {at} fill='{colour}'>{title}</rect>"


def _text(
    x: float, y: float, text: str, size: int, bold: bool = False, fill: str = "#222222"
) -> str:
    weight = " font-weight='bold'" if bold else ""
    return (
        f"<text x='{x}' y='{y}' {_FONT} font-size='{size}'{weight} fill='{fill}'>"
        f"{escape(text)}</text>"
    )

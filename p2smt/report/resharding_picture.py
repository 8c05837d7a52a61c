"""A picture (SVG) of who holds which block of the array before and after each step.

A panel for each type on the way, a square for each device, a row of squares for each node.  A
square is the whole array (two of its dimensions), what is filled of it the device's block; a colour
stands for a place in the array, so that blocks of one colour in two panels are the same elements.
Of other dimensions that are sharded on the way the block's elements are written under the square,
and its colour is darker the further they are in them.  Hatched blocks are partial: contributions
that are still to be reduced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from p2smt.files.write import check_svg_name, write_atomically
from p2smt.parallelism.placement import IntArray
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.types import layout_text, mesh_text
from p2smt.units import format_bytes, format_time

MOST_DEVICES, MOST_IN_A_ROW = 64, 16
_SQUARE, _PITCH_X, _PITCH_Y = 30, 38, 48
_MARGIN, _HEAD, _TOP = 16, 54, 50
_UNDER, _UNDER_PX = 10, 5
"""What a row is higher by where something is written under the squares; width of a character."""
_DARKER = 0.7
"""What the last elements of a dimension that is not drawn keep of their colour is 1 less this."""
_TEXT_PX = 6.2
# Okabe and Ito's colours at the upper left, upper right, lower left and lower right.
_CORNERS = ((213, 94, 0), (240, 228, 66), (0, 114, 178), (0, 158, 115))
_FONT = "font-family='Helvetica,Arial,sans-serif'"


def write_picture(plan: RedistributionPlan, path: str) -> None:
    """Draw a plan and write it whole or not at all.

    Raises:
        InputError: the name does not end in .svg, or it cannot be written.
    """
    check_svg_name(path)
    write_atomically(path, picture(plan))


@dataclass(frozen=True, slots=True)
class _Grid:
    """What of the array is drawn, what is written (dimensions), and where squares stand."""

    drawn: tuple[int, ...]
    written: tuple[int, ...]
    across: int
    rows: int
    pitch_x: int
    pitch_y: int

    @staticmethod
    def of(plan: RedistributionPlan) -> _Grid:
        drawn, written = _dimensions(plan)
        across = _in_a_row(plan)
        rows = -(-min(plan.frame.devices, MOST_DEVICES) // across)
        longest = max(
            len(_under(block, written))
            for state in plan.states
            for block in held_blocks(plan.frame, state)
        )
        wide = max(_PITCH_X, (longest + 1) * _UNDER_PX)
        return _Grid(drawn, written, across, rows, wide, _PITCH_Y + _UNDER * bool(written))

    @property
    def height(self) -> int:
        return _HEAD + self.rows * self.pitch_y + _MARGIN


def picture(plan: RedistributionPlan) -> str:
    """The plan as SVG: panels one below the other, from source to destination."""
    grid = _Grid.of(plan)
    panels: list[str] = []
    width = grid.across * grid.pitch_x
    for number, state in enumerate(plan.states):
        lines = _heading(plan, number)
        width = max(width, *(int(_TEXT_PX * len(line)) for line in lines))
        panels += _panel(plan, state, grid, lines, _TOP + number * grid.height)
    title = _title(plan, grid)
    width = max(width, *(int(_TEXT_PX * len(line)) for line in title)) + 2 * _MARGIN
    whole = _TOP + len(plan.states) * grid.height
    head = [_text(_MARGIN, 22 + 18 * n, line, 13 - n, n == 0) for n, line in enumerate(title)]
    body = "\n".join([*_opening(width, whole), *head, *panels])
    return f"{body}\n</svg>\n"


def _opening(width: int, height: int) -> list[str]:
    size = f"width='{width}' height='{height}' viewBox='0 0 {width} {height}'"
    lines = "<path d='M0,6 L6,0' stroke='#000000' stroke-opacity='0.55' stroke-width='1'/>"
    pattern = "<pattern id='partial' width='6' height='6' patternUnits='userSpaceOnUse'>"
    return [
        f"<svg xmlns='http://www.w3.org/2000/svg' {size}>",
        f"<defs>{pattern}{lines}</pattern></defs>",
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
    ]


def _title(plan: RedistributionPlan, grid: _Grid) -> list[str]:
    mesh, shape = plan.source.mesh, shape_text(plan.source.shape, plan.frame.shape)
    shown = grid.drawn
    what = f"{shape} {plan.frame.element.value} on {mesh_text(mesh)}, {plan.topology.name}"
    seen = "a square is the array: " + " and ".join(
        f"dimension {dim} {'down' if n == 0 and len(shown) > 1 else 'across'}"
        for n, dim in enumerate(shown)
    )
    if grid.written:
        seen += f"; under it elements of dimension {' and '.join(map(str, grid.written))}"
    topology, count = plan.topology, plan.frame.devices
    if _in_a_row(plan) == topology.devices_under(topology.node_level) < count:
        seen += f"; a row for each {topology.names[topology.node_level]}"
    if count > MOST_DEVICES:
        seen += f"; the first {MOST_DEVICES} of {count} devices"
    return [f"{what}: {format_time(plan.objective_s)}", seen]


def _heading(plan: RedistributionPlan, number: int) -> list[str]:
    """What led to a state, and the state."""
    state = plan.states[number]
    if number == 0:
        first = "source"
    else:
        planned = plan.steps[number - 1]
        text, time = planned.step.text(plan.frame), format_time(planned.time.seconds)
        first = f"{number}. {text}: {time}"
    layout = layout_text(plan.frame.layout(state), plan.source.mesh)
    return [first, f"{layout}, {format_bytes(plan.frame.local_bytes(state))} on a device"]


def _in_a_row(plan: RedistributionPlan) -> int:
    """Devices side by side: those of a node, if these are not too many."""
    topology = plan.topology
    under = topology.devices_under(topology.node_level)
    count = under if under > 1 else topology.devices
    return min(count, MOST_IN_A_ROW)


def _dimensions(plan: RedistributionPlan) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two dimensions (of one there is but one), first of those that are sharded on the way.

    Then the others that are sharded.
    """
    dims = range(len(plan.frame.shape))
    sharded = [dim for dim in dims if any(state.dims[dim] for state in plan.states)]
    others = [dim for dim in dims if dim not in sharded]
    return tuple(sorted([*sharded, *others][:2])), tuple(sharded[2:])


def _under(block: IntArray, written: tuple[int, ...]) -> str:
    """The elements that a block has in dimensions that are not drawn, the end exclusive."""
    return " ".join(f"{block[dim][0]}:{block[dim][1]}" for dim in written)


def _panel(
    plan: RedistributionPlan, state: ArrayState, grid: _Grid, lines: list[str], top: int
) -> Iterator[str]:
    yield _text(_MARGIN, top + 18, lines[0], 12, bold=True)
    yield _text(_MARGIN, top + 34, lines[1], 11)
    blocks = held_blocks(plan.frame, state)
    for device in range(min(len(blocks), MOST_DEVICES)):
        left = _MARGIN + device % grid.across * grid.pitch_x
        upper = top + _HEAD + device // grid.across * grid.pitch_y
        yield _text(left, upper - 4, str(device), 9)
        yield from _square(plan, state, blocks[device], grid, left, upper)
        if grid.written:
            yield _text(left, upper + _SQUARE + 9, _under(blocks[device], grid.written), 8)


def _square(
    plan: RedistributionPlan,
    state: ArrayState,
    block: IntArray,
    grid: _Grid,
    left: int,
    upper: int,
) -> Iterator[str]:
    """The whole array, and in it the block that a device holds."""
    edge = f"width='{_SQUARE}' height='{_SQUARE}' fill='#f2f2f2' stroke='#b0b0b0'"
    yield f"<rect x='{left}' y='{upper}' {edge}/>"
    parts = np.array([block[dim] / plan.frame.shape[dim] for dim in grid.drawn])
    if len(parts) == 1:
        parts = np.array([[0.0, 1.0], parts[0]])
    (top, bottom), (start, end) = parts
    if (block[:, 1] <= block[:, 0]).any():
        return
    at = f"x='{left + _SQUARE * start:.2f}' y='{upper + _SQUARE * top:.2f}'"
    size = f"width='{_SQUARE * (end - start):.2f}' height='{_SQUARE * (bottom - top):.2f}'"
    light = 1 - _DARKER * _depth(plan, block, grid.written)
    colour = _colour((top + bottom) / 2, (start + end) / 2, light)
    yield f"<rect {at} {size} fill='{colour}'/>"
    if state.partial:
        yield f"<rect {at} {size} fill='url(#partial)'/>"


def _depth(plan: RedistributionPlan, block: IntArray, written: tuple[int, ...]) -> float:
    """How far the middle of a block is in dimensions that are not drawn, 0 to 1; 0: none is."""
    found, weight = 0.0, 1.0
    for dim in reversed(written):
        found += weight * float(block[dim].sum()) / (2 * plan.frame.shape[dim])
        weight *= 2
    return found / max(weight - 1, 1.0)


def _colour(down: float, across: float, light: float = 1.0) -> str:
    """A colour for a place in the array, mixed of those of the corners; ``light`` 0 is black."""
    parts = []
    for channel in range(3):
        upper = _CORNERS[0][channel] * (1 - across) + _CORNERS[1][channel] * across
        lower = _CORNERS[2][channel] * (1 - across) + _CORNERS[3][channel] * across
        parts.append(round(light * (upper * (1 - down) + lower * down)))
    return "#" + "".join(f"{part:02x}" for part in parts)


def _text(x: int, y: int, text: str, size: int, bold: bool = False) -> str:
    weight = " font-weight='bold'" if bold else ""
    return (
        f"<text x='{x}' y='{y}' {_FONT} font-size='{size}'{weight} fill='#222222'>"
        f"{escape(text)}</text>"
    )


# Which block of the array each device holds: intervals of elements, dimension by dimension.


def held_blocks(frame: Frame, state: ArrayState) -> IntArray:
    """First and last element (exclusive) by device and dimension: shape (devices, dimensions, 2).

    Chunks of chunks, digit by digit; of a dimension that divides these are its equal shards.
    """
    places = frame.coordinates()
    found = np.zeros((len(places), len(frame.shape), 2), dtype=np.int64)
    for dim, size in enumerate(frame.shape):
        start, length = np.zeros(len(places), dtype=np.int64), np.full(len(places), size)
        for digit in state.dims[dim]:
            chunk = -(-length // frame.digits[digit].size)
            skipped = np.minimum(places[:, digit] * chunk, length)
            start, length = start + skipped, np.minimum(length - skipped, chunk)
        found[:, dim, 0], found[:, dim, 1] = start, start + length
    return found[np.argsort(np.array(frame.orders[state.order]))]


# Shapes of arrays for people.


def shape_text(shape: Sequence[int], padded: Sequence[int]) -> str:
    """``65,64 padded to 68,64``; ``64,64`` where nothing is padded."""
    text, whole = ",".join(map(str, shape)), ",".join(map(str, padded))
    return text if text == whole else f"{text} padded to {whole}"

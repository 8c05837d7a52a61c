"""A space-time picture (SVG) of a synthesized schedule: ranks down, steps across.

A column is a step, as wide as its rounds.  An arrow is a message from sender to receiver, and takes
about a round; what an edge carries in a step is spread over the column.  Colours tell chunks apart,
or their roots.  A message of one rank's input is a thin line, a sum that is not whole a dashed one,
a whole sum a thick one.

Of many ranks or messages arrows say nothing.  Then it is a heat map: links down (each capacity of
the fabric that is used at all), steps across, the darker the more of what it can carry is sent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from itertools import accumulate, groupby
from math import ceil, hypot
from typing import TYPE_CHECKING

from p2smt.problems.schedule import Arrival, EdgeRow, SumSchedule
from p2smt.units import counted

if TYPE_CHECKING:
    from p2smt.fabric.fabric import Fabric

MOST_ARROWS = 3000
MOST_NAMED = 16
"""Colours that the legend names, if the page is wide enough."""
_MORE = 90
_ROUND, _LEAST, _GAP, _LEFT, _TOP, _BELOW = 60, 140, 14, 74, 78, 40
_SHARE_OF_ROUND = 0.8
_ROW, _MANY_RANKS = 44, 24
_HEAT_WIDTH, _HEAT_HEIGHT, _NAMES, _TONE_WIDTH = 900, 1400, 230, 100
_PARTED_WIDTH, _NAMED_WIDTH = 12, 80
_FONT = "font-family='Helvetica,Arial,sans-serif'"
_INK, _GREY, _LINE = "#222222", "#777777", "#d8d8d8"
# Okabe and Ito's, without black and the yellow that a white ground swallows.
_FEW = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F3C8D", "#666666")


@dataclass(frozen=True, slots=True)
class _Arrow:
    """From one rank to another in a step.

    share: where it stands among what its edge carries, 0 to 1.  lean: how much of the column it
    crosses.
    """

    step: int
    source: int
    target: int
    share: float
    lean: float
    colour: str
    width: float = 1.3
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class _Page:
    """Where ranks and steps stand; ``ends``: left and right of each column."""

    rows: tuple[int, ...]
    ends: tuple[tuple[int, int], ...]
    width: int
    height: int

    @staticmethod
    def of(ranks: int, rounds: Sequence[int], least_width: int) -> _Page:
        widths = [max(_LEAST, _ROUND * count) for count in rounds]
        lefts = accumulate((width + _GAP for width in widths), initial=_LEFT)
        ends = tuple((left, left + width) for left, width in zip(lefts, widths, strict=False))
        rows = tuple(_TOP + _ROW * rank for rank in range(ranks))
        right = ends[-1][1] if ends else _LEFT
        return _Page(rows, ends, max(right + 24, least_width), rows[-1] + _BELOW + 18)


def space_time_svg(
    schedule: SumSchedule,
    *,
    fabric: Fabric,
    roots: Sequence[int] | None = None,
    title: str = "",
) -> str:
    """The schedule as SVG: arrows, or of many ranks or messages a heat map.

    roots: of each chunk the rank to which it belongs, which gives its colour; None: each chunk
        has its own.
    """
    sent = sum(len(step.sends) for step in schedule.steps)
    if fabric.ranks > _MANY_RANKS or sent > MOST_ARROWS:
        return _heat_map(schedule, fabric, title)
    lines = [_title(schedule, title), _SEEN]
    page = _Page.of(fabric.ranks, [step.rounds for step in schedule.steps], _widest(lines))
    arrows = _arrows(schedule, fabric.edge_rows, fabric.ranks, roots)
    body = [
        *_headed(page.width, page.height, lines),
        *_grid(page, schedule),
        *(line for arrow in arrows for line in _drawn(page, arrow)),
        *_legend(page, schedule, roots),
        "</svg>",
    ]
    return "\n".join(body) + "\n"


_SEEN = "thin: a rank's input; dashed: a sum of some inputs; thick: the whole sum"


def _widest(lines: Sequence[str]) -> int:
    return max(int(7.4 * len(line)) for line in lines) + 32


def _headed(width: int, height: int, lines: Sequence[str]) -> Iterator[str]:
    yield from opening(width, height)
    yield from (drawn_text(16, 22 + 18 * n, line, 13 - n, n == 0) for n, line in enumerate(lines))


def _title(schedule: SumSchedule, title: str) -> str:
    rounds = sum(step.rounds for step in schedule.steps)
    sent = sum(len(step.sends) for step in schedule.steps)
    counts = {"step": len(schedule.steps), "round": rounds, "message": sent}
    size = ", ".join(counted(count, noun) for noun, count in counts.items())
    return f"{title}: {size}" if title else size


def _arrows(
    schedule: SumSchedule, edges: Sequence[EdgeRow], ranks: int, roots: Sequence[int] | None
) -> Iterator[_Arrow]:
    colours = _colours(_keys(schedule, roots))
    inside = _inputs(schedule)
    for number, step in enumerate(schedule.steps):
        carried = Counter(send.edge for send in step.sends)
        passed: Counter[int] = Counter()
        for send in step.sends:
            source, target, _ = edges[send.edge]
            share = passed[send.edge] / max(1, carried[send.edge] - 1)
            passed[send.edge] += 1
            count = inside[send.chunk, Arrival(number, send.edge, send.slot)]
            width = 2.6 if 1 < count == ranks else 1.3
            key = send.chunk if roots is None else roots[send.chunk]
            dashed = 1 < count < ranks
            lean = _SHARE_OF_ROUND / step.rounds
            yield _Arrow(number, source, target, share, lean, colours[key], width, dashed)


def _inputs(schedule: SumSchedule) -> Mapping[tuple[int, Arrival], int]:
    """Of how many inputs each message is the sum."""
    found: dict[tuple[int, Arrival], int] = {}
    for number, step in enumerate(schedule.steps):
        for send in step.sends:
            parts = (1 if part is None else found[send.chunk, part] for part in send.parts)
            found[send.chunk, Arrival(number, send.edge, send.slot)] = sum(parts)
    return found


def _keys(schedule: SumSchedule, roots: Sequence[int] | None) -> list[int]:
    """What has a colour: chunks, or their roots."""
    chunks = {send.chunk for step in schedule.steps for send in step.sends}
    return sorted(chunks if roots is None else {roots[chunk] for chunk in chunks})


def _colours(keys: Sequence[int]) -> Mapping[int, str]:
    """Colours easy to tell apart while they are few; then round the circle, light and dark."""
    if len(keys) <= len(_FEW):
        return dict(zip(keys, _FEW, strict=False))
    found: dict[int, str] = {}
    for place, key in enumerate(keys):
        light = (0.36, 0.52)[place % 2]
        parts = hls_to_rgb(place / len(keys), light, 0.75)
        found[key] = "#" + "".join(f"{round(255 * part):02x}" for part in parts)
    return found


def _grid(page: _Page, schedule: SumSchedule) -> Iterator[str]:
    """Columns with their headings, and a line for each rank."""
    top, bottom = page.rows[0] - 12, page.rows[-1] + 12
    for number, (step, (left, right)) in enumerate(zip(schedule.steps, page.ends, strict=True)):
        size = f"width='{right - left}' height='{bottom - top}'"
        yield f"<rect x='{left}' y='{top}' {size} fill='#f6f6f6'/>"
        rounds = counted(step.rounds, "round")
        yield drawn_text(left, top - 6, f"{number + 1}: {rounds}", 11)
    for rank, row in enumerate(page.rows):
        right = page.ends[-1][1] if page.ends else _LEFT
        ends = f"x1='{_LEFT - 8}' y1='{row}' x2='{right + 8}' y2='{row}'"
        yield f"<line {ends} stroke='{_LINE}' stroke-width='1'/>"
        yield drawn_text(16, row + 4, f"rank {rank}", 11)


def _drawn(page: _Page, arrow: _Arrow) -> Iterator[str]:
    """A line and its head."""
    left, right = page.ends[arrow.step]
    lean = arrow.lean * (right - left - 8)
    x1 = left + 4 + arrow.share * (right - left - 8 - lean)
    x2, y1, y2 = x1 + lean, page.rows[arrow.source], page.rows[arrow.target]
    length = hypot(x2 - x1, y2 - y1)
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    size = 4 + arrow.width
    bx, by = x2 - size * dx, y2 - size * dy
    stroke = f"stroke='{arrow.colour}' stroke-width='{arrow.width:.2f}'"
    dashes = " stroke-dasharray='4,3'" if arrow.dashed else ""
    ends = f"x1='{x1:.1f}' y1='{y1}' x2='{bx:.1f}' y2='{by:.1f}'"
    yield f"<line {ends} {stroke}{dashes}/>"
    sides = [
        (bx - 0.45 * size * dy, by + 0.45 * size * dx),
        (bx + 0.45 * size * dy, by - 0.45 * size * dx),
    ]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(x2, y2), *sides])
    yield f"<polygon points='{points}' fill='{arrow.colour}'/>"


def _legend(page: _Page, schedule: SumSchedule, roots: Sequence[int] | None) -> Iterator[str]:
    """The first colours."""
    keys, at = _keys(schedule, roots), 16
    colours, y = _colours(keys), page.height - 16
    what = "chunk" if roots is None else "chunks of rank"
    yield drawn_text(at, y, what, 11)
    at += 8 + int(6.2 * len(what))
    for named, key in enumerate(keys):
        if named == MOST_NAMED or at > page.width - _MORE:
            yield drawn_text(at, y, f"and {len(keys) - named} more", 11)
            return
        yield f"<rect x='{at}' y='{y - 9}' width='10' height='10' fill='{colours[key]}'/>"
        yield drawn_text(at + 13, y, str(key), 11)
        at += 24 + 7 * len(str(key))


# The heat map.


def _heat_map(schedule: SumSchedule, fabric: Fabric, title: str) -> str:
    loads = _loads(schedule, fabric)
    used = sorted({k for step in loads for k in step}, key=lambda k: (_kind(fabric, k), k))
    high = max(2, min(16, _HEAT_HEIGHT // max(1, len(used))))
    wide = max(4, min(_LEAST, _HEAT_WIDTH // max(1, len(loads))))
    every = -(-12 // high)
    named = f" (of {every} links one is named)" if every > 1 else ""
    lines = [_title(schedule, title), f"what a link sends in a step, of what it can{named}:"]
    width = max(_NAMES + wide * len(loads), 16 + _TONE_WIDTH * len(_TONES), _widest(lines)) + 24
    body = [
        *_headed(width, _TOP + high * len(used) + _BELOW, lines),
        *_tone_names(),
        *_heat_names(used, fabric, high, every),
        *_step_numbers([step.rounds for step in schedule.steps], wide),
    ]
    for row, capacity in enumerate(used):
        limit = fabric.capacities[capacity].bandwidth
        tones = [
            _tone(step[capacity] / (limit * done.rounds))
            for step, done in zip(loads, schedule.steps, strict=True)
        ]
        body += _heat_row(tones, _TOP + high * row, high, wide)
    body += _step_ends(len(loads), wide, high * len(used))
    return "\n".join([*body, "</svg>"]) + "\n"


_TONES: Mapping[str, str] = {
    "nothing": "#f0f0f0",
    "to 1/4": "#c6dbef",
    "to 1/2": "#6baed6",
    "to 3/4": "#2171b5",
    "less than all": "#08519c",
    "all": "#08254f",
}


def _tone_names() -> Iterator[str]:
    for number, (word, tone) in enumerate(_TONES.items()):
        at = 16 + _TONE_WIDTH * number
        yield f"<rect x='{at}' y='{_TOP - 32}' width='12' height='10' fill='{tone}'/>"
        yield drawn_text(at + 16, _TOP - 23, word, 10)


def _loads(schedule: SumSchedule, fabric: Fabric) -> list[Counter[int]]:
    """Of each step, how many chunks each capacity carries."""
    edges = fabric.edges
    return [
        Counter(load for send in step.sends for load in edges[send.edge].loads)
        for step in schedule.steps
    ]


def _tone(share: Fraction) -> str:
    """The colour of a share of a capacity."""
    tones = list(_TONES.values())
    return tones[-1] if share >= 1 else tones[ceil(4 * share)]


def _heat_row(tones: Sequence[str], top: int, high: int, wide: int) -> Iterator[str]:
    """A link's steps, those alike that follow each other as one."""
    left = _NAMES
    for tone, alike in groupby(tones):
        size = wide * len(list(alike))
        yield f"<rect x='{left}' y='{top}' width='{size}' height='{high}' fill='{tone}'/>"
        left += size


def _kind(fabric: Fabric, capacity: int) -> str:
    """Of what kind a link is: its name without numbers; links of a kind stand together."""
    return re.sub("[0-9]+", "", fabric.capacities[capacity].name)


def _heat_names(used: Sequence[int], fabric: Fabric, high: int, every: int) -> Iterator[str]:
    """The names of links, as many as there is room for, the first of each kind among them."""
    for _, alike in groupby(enumerate(used), key=lambda one: _kind(fabric, one[1])):
        for row, capacity in list(alike)[::every]:
            name = fabric.capacities[capacity].name[:34]
            yield drawn_text(16, _TOP + high * row + max(high, 9) - 1, name, 10)


def _step_numbers(rounds: Sequence[int], wide: int) -> Iterator[str]:
    """With their rounds where there is room."""
    every = -(-28 // wide)
    yield drawn_text(_NAMES - 30, _TOP - 6, "step", 10)
    for number in range(0, len(rounds), every):
        words = f": {counted(rounds[number], 'round')}" if wide >= _NAMED_WIDTH else ""
        yield drawn_text(_NAMES + wide * number, _TOP - 6, f"{number + 1}{words}", 10)


def _step_ends(steps: int, wide: int, high: int) -> Iterator[str]:
    """A white line between two steps, where they are wide enough."""
    if wide >= _PARTED_WIDTH:
        for x in range(_NAMES + wide, _NAMES + wide * steps, wide):
            yield f"<path d='M{x} {_TOP}v{high}' stroke='#ffffff' stroke-width='2'/>"


def opening(width: int, height: int) -> list[str]:
    """The head of a picture, and its white ground."""
    size = f"width='{width}' height='{height}' viewBox='0 0 {width} {height}'"
    return [
        f"<svg xmlns='http://www.w3.org/2000/svg' {size}>",
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
    ]


def drawn_text(x: float, y: float, text: str, size: int, bold: bool = False) -> str:
    """A text whose foot stands at a place."""
    weight = " font-weight='bold'" if bold else ""
    return (
        f"<text x='{x}' y='{y}' {_FONT} font-size='{size}'{weight} fill='{_INK}'>"
        f"{escape(text)}</text>"
    )

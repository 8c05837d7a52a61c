"""Small charts as SVG that needs no script: stacked bars, bars, and a scatter.

Places across are in per cent of the width, so that letters keep their size on a narrow screen; no
style attributes, which the page's policy forbids.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise

from p2smt.report.page.story import BarPart, Bars, PlotPoint, Scatter, Stack
from p2smt.units import counted, plain

# Least distance of any two in OKLab under simulated colour blindness: 10.9; each 3:1 on white.
COLOURS: Mapping[str, str] = {
    "compute": "#3d4f66",
    "bubble": "#8f959c",
    "bubble and communication": "#8f959c",
    "tp": "#f55c3d",
    "pp": "#087a91",
    "dp": "#8420b6",
    "cp": "#b83df5",
    "ep": "#ae4009",
    "parameters": "#3d4f66",
    "gradients": "#087a91",
    "optimizer": "#111820",
    "activations": "#f55c3d",
}
OTHERS = ("#087a91", "#8420b6", "#f55c3d", "#3d4f66", "#b83df5", "#ae4009")
WHITE_ON = ("#3d4f66", "#087a91", "#8420b6", "#ae4009", "#111820")
"""Colours on which white letters read better than black ones."""
LABELLED = 0.12
"""Parts of at least that share of a bar have their names in it."""
SCATTER_PX, _FOOT, _HEAD = 340, 40, 30


def text(value: str) -> str:
    """A text between tags or in an attribute."""
    return escape(value, quote=True)


def colour_of(name: str, number: int) -> str:
    """The colour of a part: that of its name, else one by its number."""
    return COLOURS.get(name.partition("+")[0], OTHERS[number % len(OTHERS)])


def per_cent(value: float, whole: float) -> str:
    """A part of a width."""
    return f"{100 * value / whole if whole > 0 else 0:.3f}%"


# Stacked bars.


def stack(chart: Stack) -> Iterator[str]:
    """A bar of parts with its scale and legend."""
    height = 18 if chart.parts and all(one.hidden for one in chart.parts) else 34
    yield f'<p class="cap">{text(chart.caption)}</p>'
    yield f'<svg class="bar" width="100%" height="{height}" role="img" '
    yield f'aria-label="{text(chart.caption)}: {text(_words(chart.parts))}">'
    yield '<rect class="track" x="0" y="0" width="100%" height="100%"/>'
    at = 0.0
    for number, one in enumerate(chart.parts):
        yield from _part(one, at, chart.whole, colour_of(one.name, number), height)
        at += one.value
    if chart.rest:
        left = per_cent(at, chart.whole)
        yield f'<text class="lab rest" x="{left}" dx="8" y="{plain(height / 2 + 4)}">'
        yield f"{text(chart.rest)}</text>"
    for value, _ in chart.marks:
        x = per_cent(value, chart.whole)
        yield f'<line class="mark" x1="{x}" x2="{x}" y1="0" y2="100%"/>'
    yield "</svg>"
    yield f'<p class="ends"><span>0</span><span>{text(chart.end)}</span></p>'
    yield from _legend(chart.parts, [words for _, words in chart.marks])


def _words(parts: Sequence[BarPart]) -> str:
    return ", ".join(f"{one.name} {one.text}" for one in parts)


def _part(one: BarPart, at: float, whole: float, colour: str, height: int) -> Iterator[str]:
    x, width, share = per_cent(at, whole), per_cent(one.value, whole), one.value / (whole or 1)
    inside = f'x="{x}" y="0" width="{width}" height="100%"'
    yield f'<g><rect class="part" {inside} fill="{colour}"/>'
    if one.hidden:
        yield f'<rect {inside} fill="url(#hatch)"/>'
    yield f"<title>{text(one.name)}: {text(one.text)}</title></g>"
    if share >= LABELLED and not one.hidden:
        wide = "lab" if share >= 2 * LABELLED else "lab wide"
        ink = "#fff" if colour in WHITE_ON else "#000"
        yield f'<text class="{wide}" x="{x}" dx="8" y="{plain(height / 2 + 4)}" fill="{ink}">'
        yield f"{text(one.name)}</text>"


def _legend(parts: Sequence[BarPart], marks: Sequence[str]) -> Iterator[str]:
    yield '<ul class="legend">'
    for number, one in enumerate(parts):
        hatched = '<rect width="12" height="12" fill="url(#hatch)"/>' if one.hidden else ""
        swatch = f'<rect width="12" height="12" fill="{colour_of(one.name, number)}"/>{hatched}'
        yield f'<li><svg width="12" height="12" aria-hidden="true">{swatch}</svg>'
        yield f"<bdi>{text(one.name)}</bdi> <b>{text(one.text)}</b></li>"
    for words in marks:
        line = '<line class="mark" x1="6" x2="6" y1="0" y2="12"/>'
        yield f'<li><svg width="12" height="12" aria-hidden="true">{line}</svg>{text(words)}</li>'
    yield "</ul>"


# Bars below each other.


def bars(chart: Bars) -> Iterator[str]:
    """Names, bars and values in words, a row each."""
    whole = chart.whole or max((one.value for one in chart.bars), default=1.0) or 1.0
    if chart.caption:
        yield f'<p class="cap">{text(chart.caption)}</p>'
    yield '<div class="bars">'
    for one in chart.bars:
        kind = "chosen" if one.chosen else "fill"
        yield f'<span class="name"><bdi>{text(one.name)}</bdi></span>'
        yield '<svg class="bar" width="100%" height="20" aria-hidden="true">'
        yield '<rect class="track" width="100%" height="100%"/>' if chart.whole else ""
        width = per_cent(min(one.value, whole), whole)
        yield f'<rect class="{kind}" width="{width}" height="100%"/></svg>'
        yield f'<span class="num">{text(one.text)}</span>'
    yield "</div>"


# A scatter.


def scatter(chart: Scatter, name: str) -> Iterator[str]:
    """Points with their axes; the front (nothing less in both) is filled and joined."""
    xs, ys = [one.x for one in chart.points], [one.y for one in chart.points]
    most = max([*ys, *([chart.limit[0]] if chart.limit else [])])
    x_ticks, y_ticks = ticks(min(xs), max(xs)), ticks(0.0, most)
    place = _Place(x_ticks[0], x_ticks[-1], max(y_ticks[-1], most))
    yield f'<svg class="scatter" id="{name}" width="100%" height="{SCATTER_PX}" role="group" '
    yield f'tabindex="0" aria-label="{text(chart.y_name)} by {text(chart.x_name)}: '
    yield f'{counted(len(chart.points), "point")}. Arrow keys go from one to the next.">'
    yield from _axes(chart, place, x_ticks, y_ticks)
    front = [chart.points[at] for at in front_of(chart.points)]
    for one, other in pairwise(front):
        ends = f'x1="{place.x(one.x)}" y1="{place.y(one.y)}" x2="{place.x(other.x)}"'
        yield f'<line class="front" {ends} y2="{place.y(other.y)}"/>'
    ahead = set(front_of(chart.points))
    order = sorted(range(len(chart.points)), key=lambda at: (chart.points[at].chosen, at in ahead))
    for at in order:  # the chosen one on top, then those of the front
        yield from _point(chart.points[at], at, place, at in ahead)
    yield "</svg>"


class _Place:
    """Where values lie: across in per cent, down in pixels."""

    def __init__(self, low: float, high: float, top: float) -> None:
        self.low, self.width, self.top = low, (high - low) or 1.0, top or 1.0

    def x(self, value: float) -> str:
        return f"{6 + 90 * (value - self.low) / self.width:.3f}%"

    def y(self, value: float) -> str:
        return f"{SCATTER_PX - _FOOT - (SCATTER_PX - _FOOT - _HEAD) * value / self.top:.1f}"


def _axes(
    chart: Scatter, place: _Place, x_ticks: Sequence[float], y_ticks: Sequence[float]
) -> Iterator[str]:
    for value in y_ticks:
        y, shown = place.y(value), plain(value, 12)
        yield f'<line class="rule" x1="5%" x2="98%" y1="{y}" y2="{y}"/>'
        yield f'<text class="tick" x="4.4%" y="{y}" dy="4" text-anchor="end">{shown}</text>'
    for value in x_ticks:
        x, below, shown = place.x(value), SCATTER_PX - _FOOT + 16, plain(value, 12)
        yield f'<text class="tick" x="{x}" y="{below}" text-anchor="middle">{shown}</text>'
    yield f'<text class="tick" x="0" y="12">\u2191 {text(chart.y_name)}</text>'
    yield f'<text class="tick" x="98%" y="{SCATTER_PX - 6}" text-anchor="end">'
    yield f"{text(chart.x_name)} \u2192</text>"
    if chart.limit is not None:
        y = place.y(chart.limit[0])
        yield f'<line class="limit" x1="5%" x2="98%" y1="{y}" y2="{y}"/>'
        yield f'<text class="tick" x="98%" y="{y}" dy="-6" text-anchor="end">'
        yield f"{text(chart.limit[1])}</text>"


def _point(one: PlotPoint, at: int, place: _Place, ahead: bool) -> Iterator[str]:
    x, y = place.x(one.x), place.y(one.y)
    told = f"<title>{text(one.name)}: {text(one.told)}</title>"
    if one.chosen:
        star = " ".join(f"{px:.1f},{py:.1f}" for px, py in _star(9.0))
        yield f'<svg x="{x}" y="{y}" overflow="visible"><polygon class="star" data-i="{at}" '
        yield f'points="{star}">{told}</polygon></svg>'
        yield f'<text class="lab" x="{x}" y="{y}" dx="-4" dy="24">chosen</text>'
        return
    kind = "dot full" if ahead else "dot"
    yield f'<circle class="{kind}" data-i="{at}" cx="{x}" cy="{y}" r="5.5">{told}</circle>'


def _star(radius: float) -> Iterator[tuple[float, float]]:
    for corner in range(10):
        angle = math.pi * (corner / 5 - 0.5)
        length = radius if corner % 2 == 0 else 0.45 * radius
        yield length * math.cos(angle), length * math.sin(angle)


def front_of(points: Sequence[PlotPoint]) -> list[int]:
    """The points that no other is at most in both numbers and less in one, by their x."""
    found: list[int] = []
    for at in sorted(range(len(points)), key=lambda at: (points[at].x, points[at].y)):
        if not found or points[at].y < points[found[-1]].y:
            found.append(at)
    return found


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from at most the low end to at least the high one."""
    span = (high - low) or abs(high) or 1.0
    raw = span / (most - 1)
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(scale * factor for factor in (1, 2, 2.5, 5, 10) if scale * factor >= raw)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(plain(number * step, 12)) for number in range(first, max(last, first + 1) + 1)]

"""A picture (SVG) of times by payload: schedules and their bound, and prices beside the library's.

Both scales are logarithmic.  No schedule is in the grey below the bound, in the model; prices are
another measure, with latencies and contention, so they can be on either side.  Strips at the foot
say which schedule is for which payloads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from p2smt.report.schedules.space_time import drawn_text, opening
from p2smt.report.text import printable
from p2smt.units import format_bytes, format_time

if TYPE_CHECKING:
    from p2smt.report.page.reading import Fields
    from p2smt.synthesis.certificate.sizes import SizeCertificate

BOUND, MODEL, PRICE = "bound (in the model)", "schedules (in the model)", "schedules (price)"
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _FOOT = 900, 520, 76, 24, 92, 84
_LOOKS = {BOUND: ("#555555", ""), MODEL: ("#0072B2", ""), PRICE: ("#0072B2", "5,4")}
_LIBRARY = ("#D55E00", "5,4")
_STRIPS = ("#c8dcec", "#f2d8c6")
_PER_OCTAVE, _MOST_TICKS = 4, 11

SizePoints = tuple[tuple[float, float], ...]
"""Payloads, ascending, and the seconds of each."""


@dataclass(frozen=True, slots=True)
class SizeCurves:
    """Times of a range of payloads by what they are of; ``pieces``: schedules, and from where."""

    collective: str
    fabric: str
    curves: tuple[tuple[str, SizePoints], ...]
    pieces: tuple[tuple[float, str], ...]

    @staticmethod
    def of_answer(answer: Fields) -> SizeCurves:
        """Those that ``synthesize --size --json`` says.

        Raises:
            InputError: the answer is not as it was printed.
        """
        rows = answer.each("sizes")
        library = answer.words("library")
        keys = {BOUND: "bound_s", MODEL: "seconds", PRICE: "price_s"}
        if library and all(row.maybe("library_s") is not None for row in rows):
            keys[f"{library}, its choice (price)"] = "library_s"
        curves = tuple(
            (name, tuple((row.number("size_bytes"), row.number(key)) for row in rows))
            for name, key in keys.items()
        )
        subject = answer.words("collective"), answer.words("fabric")
        pieces = tuple(
            (one.number("from_bytes"), _size(one.inside("found"))) for one in answer.each("pieces")
        )
        return SizeCurves(*subject, curves, pieces)

    @staticmethod
    def of_certificate(claim: SizeCertificate) -> SizeCurves:
        """Those that a certificate claims."""
        low, high = claim.low, claim.high
        octaves = math.ceil(_PER_OCTAVE * math.log2(high / low)) if high > low else 0
        places = {Fraction(one.payload) for one in claim.corners}
        places |= {Fraction(round(low * 2 ** (n / _PER_OCTAVE))) for n in range(octaves)}
        rows = [claim.corner_at(at) for at in sorted(places)]
        curves = tuple(
            (name, tuple((float(row.payload), float(seconds)) for row, seconds in found))
            for name, found in (
                (BOUND, [(row, row.bound_s) for row in rows]),
                (MODEL, [(row, row.time_s) for row in rows]),
            )
        )
        subject = claim.least.collective, claim.fabric.name
        triples = ((float(one.low), claim.schedules[one.line.number]) for one in claim.times())
        pieces = tuple((low, f"({','.join(map(str, triple))})") for low, triple in triples)
        return SizeCurves(*subject, curves, pieces)

    @property
    def ranging(self) -> bool:
        """Whether there is more than one payload to draw."""
        return any(len(points) > 1 for _, points in self.curves)


def _size(found: Fields) -> str:
    return f"({','.join(str(int(found.number(k))) for k in ('steps', 'rounds', 'chunks'))})"


def size_svg(found: SizeCurves) -> str:
    """The times as SVG; there is more than one payload."""
    scale, title = _Scale.of(found), f"{found.collective} on {found.fabric}"
    body = [
        drawn_text(16, 24, printable(title), 14, True),
        *_legend(found),
        *_axes(scale),
        *_ground(scale, dict(found.curves)[BOUND]),
        *(line for name, points in found.curves for line in _curve(scale, name, points)),
        *_strips(scale, found.pieces),
    ]
    return "\n".join([*opening(_WIDTH, _HEIGHT), *body, "</svg>"]) + "\n"


@dataclass(frozen=True, slots=True)
class _Scale:
    """The payloads at both ends, and the powers of ten at the foot and the top."""

    low: float
    high: float
    foot: int
    top: int

    @staticmethod
    def of(found: SizeCurves) -> _Scale:
        points = [point for _, curve in found.curves for point in curve]
        seconds = [s for _, s in points if s > 0] or [1.0]
        ends = min(n for n, _ in points), max(n for n, _ in points)
        foot = math.floor(math.log10(min(seconds)))
        top = max(math.ceil(math.log10(max(seconds))), foot + 1)
        return _Scale(max(1.0, ends[0]), max(2.0, ends[1]), foot, top)

    def x(self, payload: float) -> float:
        part = math.log(max(self.low, payload) / self.low) / math.log(self.high / self.low)
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * part

    def y(self, seconds: float) -> float:
        part = (math.log10(max(seconds, 10.0**self.foot)) - self.foot) / (self.top - self.foot)
        return _HEIGHT - _FOOT - (_HEIGHT - _FOOT - _TOP) * part


def _axes(scale: _Scale) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _FOOT
    for power in range(scale.foot, scale.top + 1):
        y = scale.y(10.0**power)
        yield f"<line x1='{_LEFT}' x2='{right}' y1='{y:.1f}' y2='{y:.1f}' stroke='#d8d8d8'/>"
        yield drawn_text(16, y + 4, format_time(10.0**power), 11)
    first, last = math.ceil(math.log2(scale.low)), math.floor(math.log2(scale.high))
    every = -(-(last - first + 1) // _MOST_TICKS)
    for power in range(first, last + 1, max(1, every)):
        x = scale.x(2.0**power)
        yield f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{_TOP}' y2='{bottom}' stroke='#eeeeee'/>"
        yield drawn_text(x - 18, bottom + 16, format_bytes(2.0**power), 11)
    yield drawn_text(_LEFT, _HEIGHT - 8, "payload; strips: (steps, rounds, chunks)", 11)


def _ground(scale: _Scale, bound: SizePoints) -> Iterator[str]:
    """What no schedule is in."""
    bottom = _HEIGHT - _FOOT
    points = [(scale.x(n), scale.y(s)) for n, s in bound]
    ends = [(points[-1][0], float(bottom)), (points[0][0], float(bottom))]
    yield f"<polygon points='{_places([*points, *ends])}' fill='#555555' fill-opacity='0.12'/>"


def _curve(scale: _Scale, name: str, points: SizePoints) -> Iterator[str]:
    colour, dashes = _LOOKS.get(name, _LIBRARY)
    places = _places([(scale.x(n), scale.y(s)) for n, s in points])
    dashed = f" stroke-dasharray='{dashes}'" if dashes else ""
    yield f"<polyline points='{places}' fill='none' stroke='{colour}' stroke-width='2'{dashed}/>"


def _places(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _legend(found: SizeCurves) -> Iterator[str]:
    left = 16
    for name, _ in found.curves:
        colour, dashes = _LOOKS.get(name, _LIBRARY)
        dashed = f" stroke-dasharray='{dashes}'" if dashes else ""
        line = f"<line x1='{left}' x2='{left + 26}' y1='52' y2='52' stroke='{colour}'"
        yield f"{line} stroke-width='2'{dashed}/>"
        words = printable(name)[:60]
        yield drawn_text(left + 32, 56, words, 12)
        left += 52 + int(6.6 * len(words))


def _strips(scale: _Scale, pieces: Sequence[tuple[float, str]]) -> Iterator[str]:
    """Which schedule is for which payloads, named where there is room."""
    y = _HEIGHT - _FOOT + 28
    ends = [*(low for low, _ in pieces[1:]), scale.high]
    for at, ((low, name), high) in enumerate(zip(pieces, ends, strict=True)):
        x, width = scale.x(low), scale.x(high) - scale.x(low)
        place = f"x='{x:.1f}' y='{y}' width='{width:.1f}' height='18'"
        yield f"<rect {place} fill='{_STRIPS[at % 2]}'><title>{printable(name)}</title></rect>"
        if width > 6.2 * len(name) + 6:
            yield drawn_text(x + 4, y + 13, name, 11)

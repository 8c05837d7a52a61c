"""A picture (SVG) of a transfer: who sends to whom by level, and when its busiest ports are busy.

Squares are pairs, senders down and receivers across: nodes over the network, and the devices of the
node in which most is sent.  The more bytes, the fuller; colours are the first hop on which a pair
has a message.  Below is a line for each of the busiest ports of each level, from the first byte
that it passes in a bucket on; dashes are where buckets end, the thick line is the bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from p2smt.files.write import check_svg_name, write_atomically
from p2smt.report.transfers.told import ToldTransfer
from p2smt.transfer.plan import Edge
from p2smt.transfer.ports import Port
from p2smt.units import counted, format_bytes, format_time

MOST_PORTS, MOST_BUCKETS = 6, 48
_WIDTH, _MARGIN, _TOP, _LEFT = 900, 16, 66, 190
_SIDE, _LEAST, _MOST, _LABELS = 320, 2.0, 22.0, 34
_ROW, _BAR = 22, 14
_INK, _LINE, _GROUND = "#222222", "#d8d8d8", "#f6f6f6"
_FONT = "font-family='Helvetica,Arial,sans-serif'"
_LEVELS = ("#3d4f66", "#8a97a8", "#b8c0cc")
# Okabe and Ito's; the last is for all hops that come after.
_HOPS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#666666")


def write_transfer_picture(told: ToldTransfer, path: str) -> None:
    """Draw a plan and write the picture whole or not at all.

    Raises:
        InputError: the name does not end in .svg, or it cannot be written.
    """
    check_svg_name(path)
    write_atomically(path, transfer_picture(told))


def transfer_picture(told: ToldTransfer) -> str:
    """The plan as SVG."""
    title = [told.verdict, _what(told)]
    body = [_text(_MARGIN, 24 + 19 * n, line, 14 - n, n == 0) for n, line in enumerate(title)]
    bottom = _TOP
    for left, square in zip((_MARGIN, _WIDTH // 2), _squares(told), strict=False):
        body += _pairs(square, left, _TOP)
        bottom = max(bottom, _TOP + 34 + _LABELS + int(square.cell * len(square.senders)))
    body += _legend(told, bottom + 22)
    top = bottom + 50
    body += _times(told, top)
    height = top + 56 + _ROW * len(drawn_ports(told))
    size = f"width='{_WIDTH}' height='{height}' viewBox='0 0 {_WIDTH} {height}'"
    ground = f"<rect width='{_WIDTH}' height='{height}' fill='#ffffff'/>"
    opening = f"<svg xmlns='http://www.w3.org/2000/svg' {size}>"
    return "\n".join([opening, ground, *body, "</svg>"]) + "\n"


def _what(told: ToldTransfer) -> str:
    question = told.question
    sides = f"{counted(len(question.sources), 'rank')} to {len(question.targets)}"
    tensors = counted(len(question.before.tensors), "tensor")
    sent = f"{format_bytes(told.sent_bytes)} in {counted(told.times.count, 'bucket')}"
    return f"{tensors}, {sides}, {sent}; a device stages {format_bytes(told.times.staging_bytes)}"


# Who sends to whom.


class _Square(NamedTuple):
    """Pairs with bytes and hop; ``senders`` and ``receivers``: the rows and the columns."""

    heading: str
    what: str
    pairs: Mapping[Edge, tuple[int, int]]
    senders: Sequence[int]
    receivers: Sequence[int]

    @property
    def cell(self) -> float:
        """How large a square of one pair is."""
        most = max(len(self.senders), len(self.receivers))
        return max(_LEAST, min(_MOST, _SIDE / most))


def _squares(told: ToldTransfer) -> list[_Square]:
    ports, (busiest, inside) = told.question.ports, told.inside
    names, found = (
        told.question.topology.names,
        list[tuple[str, str, Mapping[Edge, tuple[int, int]]]](),
    )
    node = names[ports.network] if ports.network >= 0 else "node"
    if told.between:
        found.append((f"between {node}s", node, told.between))
    if inside:
        found.append((f"inside {node} {busiest}, in which most is sent", names[-1], inside))
    return [
        _Square(heading, what, pairs, sorted({a for a, _ in pairs}), sorted({b for _, b in pairs}))
        for heading, what, pairs in found
    ]


def _pairs(square: _Square, left: int, top: int) -> Iterator[str]:
    yield _text(left, top + 12, f"{square.heading}: from down, to across", 12, bold=True)
    x0, y0, cell = left + _LABELS, top + 20 + 14, square.cell
    across, down = cell * len(square.receivers), cell * len(square.senders)
    yield f"<rect {_at(x0, y0, across, down)} fill='{_GROUND}' stroke='{_LINE}'/>"
    step = max(1, round(16 / cell))
    for at, one in list(enumerate(square.senders))[::step]:
        yield _text(left, y0 + cell * (at + 0.5) + 4, str(one), 10)
    for at, one in list(enumerate(square.receivers))[:: max(step, round(22 / cell))]:
        yield _text(x0 + cell * at, y0 - 4, str(one), 10)
    most = max(payload for payload, _ in square.pairs.values())
    row = {one: at for at, one in enumerate(square.senders)}
    column = {one: at for at, one in enumerate(square.receivers)}
    gap = 1.0 if cell > 6 else 0.0
    for (source, target), (payload, hop) in square.pairs.items():
        place = _at(x0 + cell * column[target], y0 + cell * row[source], cell - gap, cell - gap)
        shade = f"fill='{_colour(hop)}' fill-opacity='{0.15 + 0.85 * payload / most:.2f}'"
        said = f"{square.what} {source} to {target}: {format_bytes(payload)}, hop {hop}"
        yield f"<rect {place} {shade}><title>{escape(said)}</title></rect>"


def _colour(hop: int) -> str:
    return _HOPS[min(hop, len(_HOPS)) - 1]


def _legend(told: ToldTransfer, top: int) -> Iterator[str]:
    last = max(told.hops.values(), default=0)
    for at in range(min(last, len(_HOPS))):
        left = _MARGIN + 80 * at
        later = at + 1 == len(_HOPS) and last > len(_HOPS)
        yield f"<rect {_at(left, top - 9, 10, 10)} fill='{_HOPS[at]}'/>"
        yield _text(left + 15, top, f"hop {at + 1}{', later' if later else ''}", 11)


# When ports are busy.


def drawn_ports(told: ToldTransfer) -> list[Port]:
    """The busiest ports of each level, the outermost first: one of a node and way."""
    first: dict[tuple[int, int, int], Port] = {}
    for port in told.seconds:  # the busiest first
        first.setdefault((port.level, told.question.ports.node_of(port), port.way), port)
    found: list[Port] = []
    for level in sorted({port.level for port in first.values()}):
        found += [port for port in first.values() if port.level == level][:MOST_PORTS]
    return found


def _times(told: ToldTransfer, top: int) -> Iterator[str]:
    chosen, total = drawn_ports(told), told.total_s
    if not chosen or not total:
        return
    width, bottom = _WIDTH - _LEFT - _MARGIN - 110, top + 18 + _ROW * len(chosen)
    count = told.times.count if told.times.count <= MOST_BUCKETS else 1
    more = "" if count == told.times.count else f", all {told.times.count} buckets as one"
    yield _text(_MARGIN, top + 8, f"busiest ports over time{more}", 12, bold=True)
    levels = sorted({port.level for port in chosen})
    for row, port in enumerate(chosen):
        y = top + 20 + _ROW * row
        yield _text(_MARGIN, y + 11, told.question.ports.words(port)[:34], 11)
        yield f"<rect {_at(_LEFT, y, width, _BAR)} fill='{_GROUND}'/>"
        colour, seconds = _LEVELS[levels.index(port.level) % len(_LEVELS)], told.seconds[port]
        for bucket in range(count):
            start = total * bucket / count + told.starts[port]
            place = _at(_LEFT + width * start / total, y, width * seconds / count / total, _BAR)
            yield f"<rect {place} fill='{colour}'/>"
        said = f"{format_time(seconds)}, {format_bytes(told.replay.loads[port])}"
        yield _text(_LEFT + width + 8, y + 11, said, 10)
    for bucket in range(1, count):
        x = _LEFT + width * bucket / count
        yield _upright(x, top + 16, bottom, _INK, 0.6, "3,3")
    bound = _LEFT + width * float(told.bound_s) / total
    yield _upright(bound, top + 14, bottom + 4, _INK, 2.0)
    yield _text(_LEFT, bottom + 16, "0", 11)
    yield _text(_LEFT + width + 8, bottom + 16, format_time(total), 11)
    words = f"bound {format_time(float(told.bound_s))}" if told.bound_s else "nothing is proved"
    yield _text(bound - 6.4 * len(words), bottom + 16, words, 11)


def _upright(
    x: float, top: float, bottom: float, colour: str, width: float, dashes: str = ""
) -> str:
    dashed = f" stroke-dasharray='{dashes}'" if dashes else ""
    ends = f"x1='{x:.2f}' x2='{x:.2f}' y1='{top:.2f}' y2='{bottom:.2f}'"
    return f"<line {ends} stroke='{colour}' stroke-width='{width}'{dashed}/>"


def _at(left: float, top: float, width: float, height: float) -> str:
    return f"x='{left:.2f}' y='{top:.2f}' width='{width:.2f}' height='{height:.2f}'"


def _text(x: float, y: float, text: str, size: int, bold: bool = False) -> str:
    weight = " font-weight='bold'" if bold else ""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' {_FONT} font-size='{size}'{weight} fill='{_INK}'>"
        f"{escape(text)}</text>"
    )

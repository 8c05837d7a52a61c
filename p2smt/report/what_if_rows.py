"""What would change an answer, by how much: a line each, at most 80 columns, and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from p2smt.cost.accuracy import PriceRange
from p2smt.report.outputs.changed_numbers import TrainedWhatIfRow, WhatIfRow
from p2smt.report.text import printable
from p2smt.result import Status
from p2smt.units import format_time

if TYPE_CHECKING:
    from p2smt.api.what_if import WhatIf
    from p2smt.plans.solution import Alternative, Solution
    from p2smt.search.solve_what_if import SolvedChange

COLUMNS = 80
_CHANGE, _TIME, _GAIN = 12, 9, 23
_BEST = COLUMNS - _CHANGE - _TIME - _GAIN - 3
_OPEN = "*"


@dataclass(frozen=True, slots=True)
class _Line:
    """A change in words: what is best then, its time, the gain with its range, or why none."""

    change: str
    best: str
    seconds: float
    status: Status
    gain: tuple[float, float, float] | None
    reason: str


def what_if_lines(
    rows: Sequence[_Line], now: tuple[str, float], what: str, gained: str
) -> list[str]:
    """The table: ``what`` is best, ``now`` with its time, and what ``gained`` is of."""
    lines = ["", _columns("what if", what, "iteration", f"gain in {gained}")]
    lines.append(_columns("now", now[0], format_time(now[1]), ""))
    lines += [_line(row) for row in rows]
    if any(row.status is Status.FEASIBLE for row in rows):
        lines.append(f"{_OPEN} the best found so far: a limit came before the proof")
    return lines


def _line(row: _Line) -> str:
    if not row.best:
        why = row.reason.partition(": ")[2] or row.reason  # what was given stands before it
        return shortened(f"{fitted(row.change, _CHANGE)} none: {printable(why)}", COLUMNS)
    mark = _OPEN if row.status is Status.FEASIBLE else ""
    seconds = mark + format_time(row.seconds)
    return _columns(row.change, row.best, seconds, row.reason or gain_words(row.gain))


def gain_words(gain: tuple[float, float, float] | None) -> str:
    """A gain with its range: ``+3.1 %, +2.4 to +4.0``."""
    if gain is None:
        return ""
    said, low, high = (100 * one for one in gain)
    ends = f", {_percent(low)} to {_percent(high)}" if _percent(low) != _percent(high) else ""
    return f"{_percent(said)} %{ends}"


def _percent(value: float) -> str:
    return f"{value:+.1f}" if abs(value) < 100 else f"{value:+,.0f}"


def _columns(change: str, best: str, seconds: str, gain: str) -> str:
    cells = fitted(change, _CHANGE), fitted(best, _BEST), f"{seconds:>{_TIME}}", gain
    return shortened(" ".join(cells).rstrip(), COLUMNS)


def fitted(text: str, width: int) -> str:
    """A text in a cell of a table: cut, or filled with blanks."""
    return set_cell_size(shortened(printable(text), width), width)


def shortened(text: str, width: int) -> str:
    """A text that is cut where it is wider."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 2) + ".."


# Of a training.


def training_lines(
    rows: Sequence[WhatIf], now: tuple[str, float], what: str = "strategy"
) -> list[str]:
    """What of a training each change gains, in tokens a second; ``what``: of which strategy."""
    return what_if_lines([_of_training(row) for row in rows], now, what, "tokens/s")


def _of_training(row: WhatIf) -> _Line:
    from p2smt.report.training.run_words import short_strategy

    best = "" if row.found is None else short_strategy(row.found.run.strategy)
    seconds = 0.0 if row.found is None else row.found.iteration_s
    gain = None if row.gain is None else (row.gain.gain, row.gain.low, row.gain.high)
    return _Line(row.change, best, seconds, row.status, gain, row.reason)


def training_data(rows: Sequence[WhatIf]) -> list[TrainedWhatIfRow]:
    """The same as data."""
    from p2smt.training.iteration import estimate_range
    from p2smt.training.measured.prediction_errors import iteration_range
    from p2smt.training.strategy import strategy_text

    found = []
    for row in rows:
        run, gain = row.found, row.gain
        within = None if run is None else iteration_range(run, estimate_range(run))
        found.append(
            TrainedWhatIfRow(
                change=row.change,
                status=row.status,
                best=None if run is None else strategy_text(run.run.strategy),
                iteration_s=None if run is None else run.iteration_s,
                range_s=_range(within),
                tokens_per_s=None if run is None else run.tokens_per_s,
                gain=None if gain is None else gain.gain,
                gain_range=None if gain is None else [gain.low, gain.high],
                reason=row.reason or None,
            )
        )
    return found


def _range(within: PriceRange | None) -> list[float] | None:
    return None if within is None else [within.low_s, within.high_s]


# Of `solve`.


def solve_lines(rows: Sequence[SolvedChange], now: Solution) -> list[str]:
    """What each change gains an answer of `solve`, in speed."""
    if now.best is None:
        return []
    base = now.best
    where = base.devices_by_host(now.problem.topology)
    lines = [_of_solution(row, where) for row in rows]
    return what_if_lines(
        lines, (_where(base, "this order of ranks"), base.objective_s), "placement", "speed"
    )


def _of_solution(row: SolvedChange, now: Sequence[tuple[str, int]]) -> _Line:
    if row.best is None:
        return _Line(row.change, "", 0.0, row.status, None, row.reason)
    same = row.where == now
    where = "the same" if same else _where(row.best, "another order of ranks")
    gain = None
    if row.gain is not None and row.low is not None and row.high is not None:
        gain = (row.gain, row.low, row.high)
    return _Line(row.change, where, row.best.objective_s, row.status, gain, row.reason)


def _where(found: Alternative, order: str) -> str:
    from p2smt.report.tipping_points import matrix_text

    return order if found.matrix is None else matrix_text(found.matrix)


def solve_data(rows: Sequence[SolvedChange]) -> Iterator[WhatIfRow]:
    """The same as data."""
    from p2smt.report.tipping_points import matrix_text

    for row in rows:
        best, matrix = row.best, None if row.best is None else row.best.matrix
        yield WhatIfRow(
            change=row.change,
            status=row.status,
            best=None if matrix is None else matrix_text(matrix),
            iteration_s=None if best is None else best.objective_s,
            range_s=_range(row.within),
            gain=row.gain,
            gain_range=None if row.low is None or row.high is None else [row.low, row.high],
            reason=row.reason or None,
        )

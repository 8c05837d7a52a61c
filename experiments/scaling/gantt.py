"""Draws the cubes of a search by worker, from its journal.  Needs the ``plots`` extra.

python -m experiments.scaling.gantt JOURNAL FIGURE.svg

Which worker closed which cube when, and where workers lost time: a journal has the moment at which
the coordinator wrote a closure and the seconds that its worker took; a cube so seems to begin as
much too late as its messages took.  A cube that was split has a bar for the time before, unless its
journal is one of before that was on record.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from experiments.testbed.script import ended
from p2smt.errors import BackendError, InputError
from p2smt.parallel_search.journal.journal_text import read_journal
from p2smt.parallel_search.journal.record import Continuation, JournalText, SplitRecord
from p2smt.parallel_search.subproblem import Closure, Member, Subproblem, SubproblemVerdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


CubeSpan = tuple[float, float]
"""From one second to another, since the search began."""


@dataclass(frozen=True, slots=True)
class CubeBar:
    """A cube on its worker, open since ``opened_s``; ``verdict`` None: it was split.

    ``stale_s``: from then on an incumbent was on record that excluded the cube; None: never.
    """

    worker: str
    start_s: float
    end_s: float
    verdict: SubproblemVerdict | None
    opened_s: float = 0.0
    stale_s: float | None = None


@dataclass(frozen=True, slots=True)
class LostTime:
    """Seconds that a worker worked, and those that it lost.

    queueing_s: without a cube, though one that a worker got later was open.  stale_s: on cubes
    that an incumbent on record excluded; part of ``busy_s``.  idling_s: no cube was open for it.
    """

    worker: str
    busy_s: float
    queueing_s: float
    stale_s: float
    idling_s: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """All bars by their ends, and the moments of splits; ``end_s`` is that of the last record."""

    bars: tuple[CubeBar, ...]
    splits_s: tuple[float, ...]
    end_s: float

    @property
    def workers(self) -> tuple[str, ...]:
        """In the order of their first cubes."""
        return tuple(dict.fromkeys(bar.worker for bar in sorted(self.bars, key=_begin)))

    def lost(self) -> tuple[LostTime, ...]:
        """What each worker lost, in the order of ``workers``."""
        return tuple(self._lost(worker) for worker in self.workers)

    def _lost(self, worker: str) -> LostTime:
        own = sorted((bar for bar in self.bars if bar.worker == worker), key=_begin)
        edges = [(0.0, 0.0), *((bar.start_s, bar.end_s) for bar in own), (self.end_s, self.end_s)]
        gaps = [(before[1], after[0]) for before, after in pairwise(edges) if after[0] > before[1]]
        waited = [(bar.opened_s, bar.start_s) for bar in self.bars]
        queueing_s = sum(_covered(gap, waited) for gap in gaps)
        stale_s = sum(bar.end_s - bar.stale_s for bar in own if bar.stale_s is not None)
        busy_s = sum(bar.end_s - bar.start_s for bar in own)
        free_s = sum(end - start for start, end in gaps)
        return LostTime(worker, busy_s, queueing_s, stale_s, free_s - queueing_s)


def timeline_of(journal: JournalText) -> Timeline:
    """The timeline of a journal; the runs of a search that was continued follow each other."""
    top = journal.header.top if journal.header else 1
    opened: dict[Subproblem, float] = {}
    bars, splits, members, cutoffs = [], [], set[Member](), list[tuple[float, int]]()
    run_s = now_s = 0.0
    for entry in journal.entries:
        if isinstance(entry.record, Continuation):
            run_s = now_s
        now_s = max(now_s, run_s + entry.at_s)
        match entry.record:
            case SplitRecord(cube, children) as split:
                splits.append(now_s)
                opened |= dict.fromkeys(children, now_s)
                if split.seconds > 0:
                    start_s = max(run_s, now_s - split.seconds)
                    since_s = max(run_s, opened.get(cube, 0.0))
                    bars.append(CubeBar(split.worker, start_s, now_s, None, since_s))
            case Member() as member:
                members.add(member)
                if len(members) >= top:
                    cutoffs.append((now_s, sorted(members)[top - 1].value))
            case Closure() as closed if closed.seconds > 0:
                start_s = max(run_s, now_s - closed.seconds)
                bar = CubeBar(closed.worker, start_s, now_s, closed.verdict)
                bar = replace(bar, opened_s=max(run_s, opened.get(closed.cube, 0.0)))
                bars.append(replace(bar, stale_s=_stale_from(bar, closed, cutoffs)))
            case _:
                pass
    return Timeline(tuple(bars), tuple(splits), now_s)


def _begin(bar: CubeBar) -> float:
    return bar.start_s


def _stale_from(
    bar: CubeBar, closed: Closure, cutoffs: Sequence[tuple[float, int]]
) -> float | None:
    """When the first incumbent came that excluded the cube, if that was before its end."""
    if closed.verdict is not SubproblemVerdict.BOUNDED or closed.bound is None:
        return None
    for at_s, value in cutoffs:
        if value <= closed.bound:
            return max(at_s, bar.start_s) if at_s < bar.end_s else None
    return None


def _covered(gap: CubeSpan, spans: Iterable[CubeSpan]) -> float:
    """Seconds of a gap in which at least one of the spans holds."""
    found, reached = 0.0, gap[0]
    for start, end in sorted(_within(gap, spans)):
        found += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return found


def _within(gap: CubeSpan, spans: Iterable[CubeSpan]) -> Iterator[CubeSpan]:
    for start, end in spans:
        cut = max(start, gap[0]), min(end, gap[1])
        if cut[0] < cut[1]:
            yield cut


COLOURS = {
    SubproblemVerdict.SOLVED: "#0072B2",
    SubproblemVerdict.LISTED: "#0072B2",
    SubproblemVerdict.EMPTY: "#56B4E9",
    SubproblemVerdict.BOUNDED: "#E69F00",
    SubproblemVerdict.UNKNOWN: "#999999",
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
    names[COLOURS[SubproblemVerdict.SOLVED]] = "solved or listed"
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


def main(arguments: Sequence[str]) -> None:
    """Draw a journal, and say what each worker lost.

    Raises:
        InputError: the arguments are not two, or the journal is none.
    """
    if len(arguments) != 2:
        raise InputError(f"{len(arguments)} arguments", "two are expected: a journal, a figure")
    journal, figure = arguments
    timeline = timeline_of(read_journal(journal))
    draw_gantt(timeline).savefig(figure)
    sys.stdout.write("worker: busy; lost to queueing, stale incumbents, idling (s)\n")
    for lost in timeline.lost():
        parts = (lost.busy_s, lost.queueing_s, lost.stale_s, lost.idling_s)
        sys.stdout.write(f"{lost.worker}: {'; '.join(f'{part:.2f}' for part in parts)}\n")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

"""Which worker closed which cube when, from a journal, and where workers lost time.

A journal has the moment at which the coordinator wrote a closure and the seconds that its worker
took; a cube so seems to begin as much too late as its messages took.  A cube that was split has a
bar for the time before, unless its journal is one of before that was on record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from p2smt.parallel_search.journal.record import Continuation, JournalText, SplitRecord
from p2smt.parallel_search.subproblem import Closure, Cube, CubeVerdict, Member

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
    verdict: CubeVerdict | None
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
    opened: dict[Cube, float] = {}
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
    if closed.verdict is not CubeVerdict.BOUNDED or closed.bound is None:
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

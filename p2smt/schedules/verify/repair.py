"""Repairs: change the type, an offset or a dependency of one step, and verify again.

Where one and the same fault was made at several steps, so are the changes.  Steps that the
violations name are tried first, then all that their data went through.  A repair is proposed
only if the whole schedule with it is verified valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING

from p2smt.schedules.model import Buffer, Span, StepRef
from p2smt.schedules.races.decide import DEFAULT_EFFORT
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from p2smt.schedules.model import Schedule, Step
    from p2smt.schedules.verify.report import Report

# Solver effort on one candidate.
_EACH = DEFAULT_EFFORT // 12


@dataclass(frozen=True, slots=True)
class Repair:
    """A change of one step, or equal changes of several, that make a schedule valid.

    step: the number of the first.  change: in words, what to change there.  further: the same of
    the others.  schedule, report: with all changes.
    """

    step: int
    change: str
    schedule: Schedule
    report: Report
    further: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RepairSearch:
    """What a search for a repair found, and whether it tried all its candidates."""

    repair: Repair | None
    tried: int
    complete: bool


def find_repair(schedule: Schedule, report: Report, time_limit_s: float = 60.0) -> RepairSearch:
    """The first change of one step that makes the schedule valid, or else equal ones of several.

    Where no step alone does, the change that leaves the fewest violations is made, and its equal
    at other steps for as long as each leaves fewer still; half of the time is kept for that.
    ``complete`` is false where the time limit came before the last candidate.
    """
    search = _Search(monotonic() + time_limit_s)
    single_until = monotonic() + time_limit_s / 2
    best: Repair | None = None
    for found in search.changed(schedule, report):
        if found.report.verdict is Verdict.VALID:
            return RepairSearch(found, search.tried, complete=True)
        best = _better(best, found, report)
        if best and monotonic() > single_until:
            search.cut = True
            break
    while best and (more := search.next_equal(best)):
        best = more
        if best.report.verdict is Verdict.VALID:
            return RepairSearch(best, search.tried, complete=True)
    return RepairSearch(None, search.tried, complete=not search.cut)


def _better(best: Repair | None, found: Repair, report: Report) -> Repair | None:
    """The one of two that leaves fewer violations, if it leaves fewer than there were."""
    least = best.report if best else report
    fewer = len(found.report.violations) < len(least.violations)
    return found if fewer and found.report.verdict is Verdict.INVALID else best


@dataclass(slots=True)
class _Search:
    """Candidates that are tried until a time: how many, and whether it came before the last."""

    end: float
    tried: int = 0
    cut: bool = False

    def changed(self, schedule: Schedule, report: Report, like: str = "") -> Iterator[Repair]:
        """The schedule with each change, or each that is ``like`` one."""
        for number, step, change in _candidates(schedule, report):
            if like and _kind(change) != like:
                continue
            if monotonic() > self.end:
                self.cut = True
                return
            self.tried += 1
            changed = _with(schedule, number, step)
            again = verify(changed, report.fifo_depth, effort=_EACH)
            yield Repair(number, change, changed, again)

    def next_equal(self, so_far: Repair) -> Repair | None:
        """The same with one equal change more that leaves fewer violations; None: there is none."""
        for found in self.changed(so_far.schedule, so_far.report, _kind(so_far.change)):
            valid = found.report.verdict is Verdict.VALID
            if valid or _better(None, found, so_far.report):
                further = (*so_far.further, (found.step, found.change))
                return replace(
                    so_far, schedule=found.schedule, report=found.report, further=further
                )
        return None


def _kind(change: str) -> str:
    """What a change has in common with its equals: its words, without places."""
    return re.sub(r"\d+", "", change)


def _candidates(schedule: Schedule, report: Report) -> Iterator[tuple[int, Step, str]]:
    """Changes in the order in which they are tried: where there is a race, dependencies first.

    But of steps that the first violation names, and then of those that the others do, all other
    changes come before the dependencies of the rest: who reads a wrong place races for it.
    """
    numbers = [*suspects(schedule, report)]
    if not report.races:
        yield from _changes(schedule, numbers, (_types, _dependencies, _offsets))
        return
    first = len({*report.violations[0].steps})
    named = len({*chain.from_iterable(violation.steps for violation in report.violations)})
    for some in (numbers[:first], numbers[first:named], numbers[named:]):
        yield from _changes(schedule, some, (_dependencies,))
        yield from _changes(schedule, some, (_types, _offsets))


_Change = Callable[["Schedule", "Step"], "Iterator[tuple[Step, str]]"]


def _changes(
    schedule: Schedule, numbers: Iterable[int], passes: Sequence[_Change]
) -> Iterator[tuple[int, Step, str]]:
    """The changes of these steps, step by step."""
    for number in numbers:
        for change_of in passes:
            for step, change in change_of(schedule, schedule.steps[number]):
                yield number, step, change


def suspects(schedule: Schedule, report: Report) -> Iterable[int]:
    """Steps to change, the likeliest first: those that violations name, those of the interleavings
    that show them, then all the others."""
    named = chain.from_iterable(violation.steps for violation in report.violations)
    shown = chain.from_iterable(violation.order for violation in report.violations)
    return dict.fromkeys(chain(named, shown, range(len(schedule.steps))))


def _with(schedule: Schedule, number: int, step: Step) -> Schedule:
    steps = schedule.steps
    return replace(schedule, steps=(*steps[:number], step, *steps[number + 1 :]))


def _types(_schedule: Schedule, step: Step) -> Iterator[tuple[Step, str]]:
    """Other step types that send and receive the same messages."""
    if step.receive and step.writes and step.reads:
        yield replace(step, kind=_plain(step), reads=()), "receive without reducing"
    elif step.receive and step.writes:
        reads = step.writes[:1]
        yield replace(step, kind=_reducing(step), reads=reads), "reduce what is received"
    elif step.receive and step.send and step.reads:
        yield replace(step, kind="rrcs", writes=step.reads[:1]), "store the sum too"
    elif step.reads and step.writes and not step.send:
        if len(step.reads) > 1:
            yield replace(step, kind="cpy", reads=step.reads[1:]), "copy instead of reducing"
        else:
            both = (step.writes[0], *step.reads)
            yield replace(step, kind="re", reads=both), "reduce instead of copying"
        yield _idle(step), "leave the data alone"


def _plain(step: Step) -> str:
    return "rcs" if step.send else "r"


def _reducing(step: Step) -> str:
    return "rrcs" if step.send else "rrc"


def _idle(step: Step) -> Step:
    return replace(step, kind="nop", count=0, reads=(), writes=())


def _dependencies(schedule: Schedule, step: Step) -> Iterator[tuple[Step, str]]:
    """One dependency more, on any step of another block of the rank; or one less."""
    for ref in step.unannounced:
        rest = tuple(r for r in step.unannounced if r != ref)
        what = (
            f"announce block {ref.block} step {ref.index}, for which it waits (hasdep=1, and "
            "before it no nop that waits for nothing)"
        )
        yield replace(step, unannounced=rest), what
    for other in schedule.steps:
        if other.rank == step.rank and other.block != step.block:
            ref = StepRef(other.block, other.index)
            if ref not in step.waits:
                changed = replace(step, waits=(*step.waits, ref))
                yield changed, f"wait for {other.where}"
    for ref in step.waits:
        rest = tuple(r for r in step.waits if r != ref)
        told = tuple(r for r in step.unannounced if r != ref)
        yield (
            replace(step, waits=rest, unannounced=told),
            f"do not wait for block {ref.block} step {ref.index}",
        )


def _offsets(schedule: Schedule, step: Step) -> Iterator[tuple[Step, str]]:
    """Another place for one of the spans: any offset in any buffer of its rank."""
    for k, span in enumerate(step.reads):
        for moved in _moved(schedule, span):
            reads = (*step.reads[:k], moved, *step.reads[k + 1 :])
            yield replace(step, reads=reads), f"read {moved} instead of {span}"
    for k, span in enumerate(step.writes):
        for moved in _moved(schedule, span):
            writes = (*step.writes[:k], moved, *step.writes[k + 1 :])
            reads = tuple(moved if read == span else read for read in step.reads)
            yield replace(step, reads=reads, writes=writes), f"write {moved} instead of {span}"


def _moved(schedule: Schedule, span: Span) -> Iterator[Span]:
    if not 0 <= span.rank < schedule.ranks:
        return
    buffers = sorted(Buffer, key=lambda buffer: buffer is not span.buffer)
    for buffer in buffers:
        for start in range(schedule.sizes[span.rank].of(buffer) - span.count + 1):
            if (buffer, start) != (span.buffer, span.start):
                yield replace(span, buffer=buffer, start=start)

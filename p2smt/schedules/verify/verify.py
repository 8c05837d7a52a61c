"""Is a schedule right in every interleaving?  The checks in their order, and the verdict.

1. Structure: bounds, counts, peers, references, matching.  If broken, nothing more can be said.
2. Progress: every step gets its turn, with connections of the given depth; where packets keep
   whole steps from it, chunk by chunk.
3. Order, chunk by chunk where there are packets: every pair of conflicting accesses is ordered by
   happens-before; then one run shows what every interleaving gives.
4. Where accesses are not ordered, the solver decides whether some interleaving is wrong.
5. Where only packets order them, whether what they do not publish makes anything wrong.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from p2smt.result import SearchLimits
from p2smt.schedules.index import index_of
from p2smt.schedules.model import DEFAULT_DEPTH
from p2smt.schedules.order.chunkwise import in_pieces
from p2smt.schedules.order.happens_before import edges_of, ordered_run
from p2smt.schedules.order.unordered_accesses import find_races
from p2smt.schedules.order.unpublished import find_unpublished
from p2smt.schedules.races.decide import DEFAULT_EFFORT, Outcome, decide
from p2smt.schedules.unused_messages import unused_messages, unused_warning
from p2smt.schedules.verify.competing import TooManyOutcomes
from p2smt.schedules.verify.deadlock import deadlock, longest_queue, smallest_depth
from p2smt.schedules.verify.explain import depends_on, explained
from p2smt.schedules.verify.progress import local_order, run
from p2smt.schedules.verify.race_violation import race_violation
from p2smt.schedules.verify.report import Report, Verdict, memory_rule_of
from p2smt.schedules.verify.stale_reads import RULE, stale_reads
from p2smt.schedules.verify.structure import broken_steps, unmatched
from p2smt.schedules.verify.turns import DEPENDS, turns_of, turns_of_pieces
from p2smt.schedules.verify.values import run_values, wrong_values
from p2smt.schedules.verify.whole_steps import of_whole_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from p2smt.schedules.index import Index
    from p2smt.schedules.model import Schedule
    from p2smt.schedules.order.chunkwise import Pieces
    from p2smt.schedules.order.happens_before import Edges
    from p2smt.schedules.order.unordered_accesses import Race
    from p2smt.schedules.verify.report import Violation
    from p2smt.schedules.verify.turns import Turns

# Violations of one check that are reported; more of the same help nobody.
_MOST = 100


@contextmanager
def rare_collections() -> Iterator[None]:
    """Lets Python's cycle collector rest: a large schedule is a million objects that all live to
    the end, and going through them again and again takes longer than the check itself."""
    before = gc.get_threshold()
    gc.set_threshold(1_000_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@rare_collections()
def verify(
    schedule: Schedule,
    fifo_depth: int = DEFAULT_DEPTH,
    time_limit_s: float | None = None,
    effort: int | None = DEFAULT_EFFORT,
) -> Report:
    """Checks a schedule for every interleaving.

    Args:
        fifo_depth: messages that a connection holds before its sender must wait.
        time_limit_s: wall seconds for trying and solving; None: as long as it takes.
        effort: what the solver may spend, in its own units, the same on every machine.  Either
            limit reached, the verdict is unknown and says which, never a proof.
    """
    limits = SearchLimits(time_limit_s=time_limit_s, effort=effort)
    index = index_of(schedule)
    broken = tuple(islice(broken_steps(index), _MOST))
    if not broken:
        broken = tuple(islice(unmatched(index), _MOST))
    if broken:
        return Report(Verdict.INVALID, broken, schedule.warnings, fifo_depth)
    try:
        return _turns(index, fifo_depth, limits)
    except TooManyOutcomes as error:
        return _unknown(schedule, fifo_depth, str(error))


def some_run(schedule: Schedule, fifo_depth: int = DEFAULT_DEPTH) -> tuple[int, ...]:
    """A run as step numbers, as far as it gets; empty if the structure is broken."""
    index = index_of(schedule)
    if next(broken_steps(index), None) is not None:
        return ()
    return tuple(run(index, local_order(index), fifo_depth).order)


def _unknown(schedule: Schedule, depth: int, reason: str) -> Report:
    return Report(Verdict.UNKNOWN, (), schedule.warnings, depth, reason=reason)


def _turns(whole: Index, depth: int, limits: SearchLimits) -> Report:
    """The checks of a schedule of sound structure.

    Raises:
        TooManyOutcomes: of competing waits, to try them all in time.
    """
    steps = turns_of(whole, depth, limits.time_limit_s)
    pieces = in_pieces(whole.schedule)
    if steps.finished:
        return _data(whole, pieces, steps, limits)
    tried = [steps]
    if not pieces.whole:
        tried = list(turns_of_pieces(whole, pieces, depth, limits.time_limit_s))
    strict, last = tried[0], tried[-1]
    if strict.finished:
        return _data(whole, pieces, strict, limits)
    if last.finished:
        return _unknown(whole.schedule, depth, DEPENDS)
    least = smallest_depth(strict.index, strict.local, longest_queue(whole))
    found = (deadlock(whole, steps.progress),)
    return Report(Verdict.INVALID, found, whole.schedule.warnings, depth, least)


@dataclass(frozen=True, slots=True)
class _Found:
    """A run with connections of this depth, the races along it, and the smallest depth."""

    order: tuple[int, ...]
    races: tuple[Race, ...]
    depth: int
    smallest: int | None


def _data(whole: Index, pieces: Pieces, turns: Turns, limits: SearchLimits) -> Report:
    """The checks of a schedule in which every step gets its turn, or every piece."""
    depth, run_of_steps = turns.depth, turns.index is whole
    index = index_of(pieces.schedule) if run_of_steps and not pieces.whole else turns.index
    steps = tuple(turns.progress.order)
    order = pieces.run(steps) if run_of_steps else steps
    edges, warnings = edges_of(index), list(whole.schedule.warnings)
    races = find_races(index, edges, order)
    if races:
        edges = edges_of(index, depth)
        still = find_races(index, edges, order)
        if not still:
            warnings.append(
                f"right only while a connection holds at most {depth} messages: full connections "
                f"order the accesses to {_cells(races)} chunks"
            )
        races = still
    found = _Found(order, tuple(races), depth, smallest_depth(turns.index, turns.local, depth))
    violations = _wrong(index, found)
    report = Report(
        Verdict.INVALID if violations else Verdict.VALID,
        violations,
        tuple(warnings),
        depth,
        found.smallest,
        races=_cells(races),
        memory_rule=memory_rule_of(whole.schedule),
    )
    if races:
        touched = bool(violations) and depends_on(
            index, order, violations[0], {race.cell for race in races}
        )
        report = _decided(index, found, edges, limits, report, () if touched else violations)
    if report.verdict is not Verdict.INVALID:
        report = _published(index, found, edges, report)
    shown = tuple(of_whole_steps(pieces, violation) for violation in report.violations)
    report = replace(report, violations=shown)
    return _noting_unused(whole, steps, races, report) if run_of_steps else report


def _noting_unused(
    index: Index, order: tuple[int, ...], races: Sequence[Race], report: Report
) -> Report:
    """The report, and if the schedule is valid the messages that carry what no output needs."""
    if report.verdict is not Verdict.VALID:
        return report
    unused = unused_messages(index, order, {race.cell for race in races})
    more = (unused_warning(index.schedule, unused),) if unused else ()
    return replace(report, unused=unused, warnings=(*report.warnings, *more))


def _published(index: Index, found: _Found, edges: Edges, report: Report) -> Report:
    """The report after a look at what packets order without publishing it."""
    questions = find_unpublished(index, edges, found.order, found.races)
    if not questions:
        return report
    stale = stale_reads(index, edges.nodes, found.order, questions)
    cells = {race.cell for race in found.races} | {question.cell for question in questions}
    report = replace(report, races=len(cells))
    if stale.violation is not None:
        return replace(report, verdict=Verdict.INVALID, violations=(stale.violation,), reason="")
    if report.verdict is Verdict.UNKNOWN or not (stale.matter or found.races):
        return replace(report, harmless=report.verdict is Verdict.VALID)
    cell = index.memory.name(questions[0].cell)
    reason = (
        f"{len(cells)} chunks, such as {cell}, are accessed where {RULE}; that does no harm in one "
        "run, which does not say that it does none in another"
    )
    return replace(report, verdict=Verdict.UNKNOWN, harmless=False, reason=reason)


def _wrong(index: Index, found: _Found) -> tuple[Violation, ...]:
    """Chunks that are wrong at the end of the run; of every interleaving, if there is no race."""
    shown = found.order if found.races else ()
    violations = tuple(islice(wrong_values(run_values(index, found.order), shown), _MOST))
    return explained(index, found.order, violations) if violations else ()


def _decided(
    index: Index,
    found: _Found,
    edges: Edges,
    limits: SearchLimits,
    report: Report,
    before: tuple[Violation, ...],
) -> Report:
    """The report on a schedule with races, after the solver looked for a run that is wrong.

    before: violations that come first: no chunk of a race has to do with them.
    """
    ordered = ordered_run(index, edges, found.order)
    decision = decide(index.schedule, ordered, found.races, limits, found.depth)
    match decision.verdict:
        case Outcome.HARMLESS:
            return replace(report, harmless=True)
        case Outcome.WRONG if not decision.order or not decision.by_race:  # no race's doing
            return report
        case Outcome.WRONG:
            broken = race_violation(index, edges.nodes, found.races, found.order, decision)
            after = () if before else report.violations
            return replace(report, verdict=Verdict.INVALID, violations=(*before, broken, *after))
        case Outcome.UNKNOWN if report.violations:
            return report
        case Outcome.UNKNOWN:
            cell = index.memory.name(found.races[0].cell)
            reason = (
                f"{report.races} chunks, such as {cell}, are accessed in no certain order, and "
                f"{decision.reason}"
            )
            return replace(report, verdict=Verdict.UNKNOWN, reason=reason)


def _cells(races: Sequence[Race]) -> int:
    return len({race.cell for race in races})

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
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, islice, pairwise
from typing import TYPE_CHECKING

from p2smt.result import SearchLimits
from p2smt.schedules.index import index_of, unused_messages, unused_warning
from p2smt.schedules.model import DEFAULT_DEPTH
from p2smt.schedules.order.chunkwise import in_pieces
from p2smt.schedules.order.happens_before import edges_of, ordered_run
from p2smt.schedules.order.unordered_accesses import find_races, find_unpublished
from p2smt.schedules.races.decide import DEFAULT_EFFORT, Outcome, decide
from p2smt.schedules.races.replay import ItemKind
from p2smt.schedules.verify.contributions import (
    RULE,
    classify,
    run_values,
    stale_reads,
    wrong_values,
)
from p2smt.schedules.verify.deadlock import (
    LocalOrder,
    TooManyOutcomes,
    contested,
    local_order,
    run,
    stuck_run,
)
from p2smt.schedules.verify.report import Kind, Report, Verdict, Violation, memory_rule_of
from p2smt.schedules.verify.structure import broken_steps, unmatched
from p2smt.schedules.verify.why_wrong import ShownFlow, depends_on, explained

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.schedules.index import Index
    from p2smt.schedules.model import Schedule
    from p2smt.schedules.order.chunkwise import Pieces
    from p2smt.schedules.order.happens_before import Edges, Nodes
    from p2smt.schedules.order.unordered_accesses import Race
    from p2smt.schedules.races.decide import Decision
    from p2smt.schedules.races.replay import OrderItem
    from p2smt.schedules.verify.deadlock import LocalOrder, Progress
    from p2smt.schedules.verify.report import Violation


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


# Deadlock: the steps that never get their turn, who waits for whom, and the depth that helps.


# Links of a chain of waiting steps that a message shows.
_SHOWN = 8


def run_or_stick(
    index: Index, local: LocalOrder, depth: int | None, time_limit_s: float | None
) -> Progress:
    """A run; one that does not finish, if any interleaving does not.

    Raises:
        TooManyOutcomes: of competing waits, to try them all in time.
    """
    progress = run(index, local, depth)
    if progress.finished and contested(index):
        return stuck_run(index, local, depth, time_limit_s) or progress
    return progress


def smallest_depth(index: Index, local: LocalOrder, most: int) -> int | None:
    """The smallest connection depth, up to ``most``, with which every step gets its turn.

    Without competing waits more room never blocks anyone, so it can be found by bisection; most
    schedules need 1 or 2.  With them more room may let the wrong one win: none is named.
    """
    if contested(index):
        return None
    for depth in (1, 2):
        if depth <= most and run(index, local, depth).finished:
            return depth
    low, high = 3, most + 1
    while low < high:
        middle = (low + high) // 2
        if run(index, local, middle).finished:
            high = middle
        else:
            low = middle + 1
    return low if low <= most else None


def longest_queue(index: Index) -> int:
    """Messages on the busiest connection: a depth that never blocks."""
    return max([1, *map(len, index.sends.values())])


def deadlock(index: Index, progress: Progress) -> Violation:
    """The violation that a stuck run shows: a chain of steps that wait for each other."""
    chain, closed = _chain(index, progress)
    steps = index.schedule.steps
    parts = [f"{steps[a]} waits for {why}" for a, why in chain[:_SHOWN]]
    if len(chain) > _SHOWN:
        parts.append(f"and {len(chain) - _SHOWN} more")
    undone = len(steps) - len(progress.order)
    start = (
        f"{len(chain)} steps wait for each other in a circle" if closed else "a step is never done"
    )
    depth = f" with connections of depth {progress.depth}" if progress.depth is not None else ""
    text = f"{start}{depth}, {undone} steps are never done: {'; '.join(parts)}"
    numbers = tuple(step for step, _ in chain)
    return Violation(
        Kind.DEADLOCK, text, numbers, steps[numbers[0]].rank, order=tuple(progress.order)
    )


def _chain(index: Index, progress: Progress) -> tuple[list[tuple[int, str]], bool]:
    """Steps each waiting for the next; True if the last waits for the first."""
    done = set(progress.order)
    step = next(iter(progress.waiting()), min(set(range(len(progress.missing))) - done))
    chain: list[tuple[int, str]] = []
    place: dict[int, int] = {}
    while step not in place:
        place[step] = len(chain)
        blocker, why = _blocker(index, progress, step, done)
        chain.append((step, why))
        if blocker is None:
            return chain, False
        step = blocker
    return chain[place[step] :], True


def _blocker(index: Index, progress: Progress, step: int, done: set[int]) -> tuple[int | None, str]:
    """A step that must be done before this one can be, and in words what it is needed for."""
    steps = index.schedule.steps
    earlier = next((e for e in index.before(step) if e not in done), None)
    if earlier is not None:
        return earlier, f"{steps[earlier]} before it"
    if step in progress.arrived:
        absent = [m for m in progress.local.meeting[step] if m not in progress.arrived]
        return absent[0], f"{steps[absent[0]]} at barrier {steps[step].barrier}"
    this, lack = steps[step], progress.lacks(step)
    if lack == this.receive and this.receive is not None:
        return _first(index.sends[this.receive], done), f"a message from rank {this.receive.source}"
    if this.send is not None and lack == (this.send, "room"):
        held = _first(index.receives[this.send], done)
        return held, f"room on the connection {this.send}"
    if isinstance(lack, str):
        return _first(index.posts.get(lack, ()), done), lack
    return _packet_writer(index, lack, done), "a packet"


def _first(numbers: Sequence[int], done: set[int]) -> int | None:
    return next((n for n in numbers if n not in done), None)


def _packet_writer(index: Index, cell: object, done: set[int]) -> int | None:
    for number, step in enumerate(index.schedule.steps):
        for span in step.writes:
            if span.packet and cell in index.memory.cells(span) and number not in done:
                return number
    return None


# A race that does harm, in words: who clashes with whom, and the interleaving that shows it.


# Steps of the way from a race to the output that are named.
_WAY = 5


def race_violation(
    index: Index, nodes: Nodes, races: Sequence[Race], usual: Sequence[int], decision: Decision
) -> Violation:
    """The violation that a decision shows; the clashing steps are its culprits.

    usual: a run that is right.
    """
    goal = next(g for g in index.schedule.contract.goals if (g.rank, g.chunk) == decision.goal)
    kind, what = classify(goal, dict(decision.got), untouched=False)
    flow = ShownFlow(index, nodes)
    flow.run((*decision.order, *decision.rest), (goal.rank, goal.chunk))
    ways = flow.way_to(index.memory.output_cell(goal.rank, goal.chunk))
    race = _culprit(races, usual, decision, ways)
    clash = (
        f"{nodes.name(index, race.first)} and {nodes.name(index, race.second)} access "
        f"{index.memory.name(race.cell)} in no certain order"
    )
    first = _first_of_race(flow, race)
    so = "so" if first is None else f"where {nodes.name(index, first)} comes first,"
    text = f"{clash}; {so} o[{goal.chunk}] of rank {goal.rank} {what} ({kind.value}) in some runs"
    steps = tuple(dict.fromkeys(n for n in (race.second, race.first) if nodes.is_step(n)))
    entries = list(_entries(index, nodes, decision))
    return Violation(
        Kind.RACE,
        text,
        steps,
        goal.rank,
        goal.chunk,
        order=tuple(step for step, _ in entries),
        parts=tuple(part for _, part in entries),
        details=tuple(_details(index, race, ways, shown=bool(entries))),
        shortest=decision.minimal,
    )


def _first_of_race(flow: ShownFlow, race: Race) -> int | None:
    """Of two steps that clash, the one whose accesses of the cell all come first, if there is."""
    order = [node for node, cell in flow.accesses if cell == race.cell]
    nodes = [node for node in order if node in (race.first, race.second)]
    if len(set(nodes)) < 2 or nodes != sorted(nodes, key=nodes.index):
        return None
    return nodes[0]


def _details(
    index: Index, race: Race, ways: Mapping[int, tuple[int, ...]], *, shown: bool
) -> Iterator[str]:
    """How what is wrong gets from the cell of the race to the output."""
    if not shown:
        yield "it goes wrong before any step needs to be done"
    steps = [str(index.schedule.steps[number]) for number in reversed(ways.get(race.cell, ()))]
    if steps:
        more = [f"{len(steps) - _WAY} more"] if len(steps) > _WAY else []
        way = ", ".join([*steps[:_WAY], *more])
        yield f"from {index.memory.name(race.cell)} it gets there by way of {way}"


def _culprit(
    races: Sequence[Race],
    usual: Sequence[int],
    decision: Decision,
    ways: Mapping[int, tuple[int, ...]],
) -> Race:
    """A race that did not go as in the usual run, on a cell that the wrong data came through: of
    several, the one nearest to the end."""
    before = {node: k for k, node in enumerate(usual)}
    shown = {item.step: k for k, item in enumerate(decision.order)}
    now: dict[int, int] = {}
    for k, item in enumerate((*decision.order, *decision.rest)):
        now.setdefault(item.step, k)

    def weight(race: Race) -> tuple[bool, bool, int]:
        early, late = sorted((race.first, race.second), key=lambda n: before.get(n, -1))
        nearest = max(shown.get(early, -1), shown.get(late, -1))
        turned = now.get(early, -1) > now.get(late, -1)
        return turned and race.cell in ways, turned, nearest

    return max(races, key=weight)


def _entries(index: Index, nodes: Nodes, decision: Decision) -> Iterator[tuple[int, str]]:
    """Steps in order, each once unless its reads and writes are apart."""
    groups = [
        (step, list(items))
        for step, items in groupby(decision.order, key=lambda item: item.step)
        if nodes.is_step(step)
    ]
    for step, items in groups:
        whole = len(items) == 1 and items[0].kind is ItemKind.STEP
        yield step, "" if whole else ", ".join(_part(index, item) for item in items)


def _part(index: Index, item: OrderItem) -> str:
    step = index.schedule.steps[item.step]
    if item.kind is ItemKind.STEP:
        return "the rest of it"
    reads = item.kind is ItemKind.READ
    span = (step.reads if reads else step.writes)[item.operand]
    cell = index.memory.cells(span)[item.position]
    return f"{'reads' if reads else 'writes'} {index.memory.name(cell)}"


# Does every step get its turn: whole, or chunk by chunk where packets let it? A whole step waits
# for all of its packets before it writes any, which is more than its chunks do: if whole steps get
# their turn, so do the chunks.  If they do not, the chunks are tried *in sequence*: those of a step
# one after the other, and all of them before the next step.  A thread handles its elements in that
# order and waits for no more than that, so if this ends, every run does.  If not even chunks that
# wait for nothing but their own packets get their turn, nothing does.  In between it depends on how
# many elements a thread handles, which a schedule does not say.


DEPENDS = (
    "whole steps wait for each other, and their chunks, which wait for their own packets only, do "
    "not: whether every run ends depends on how many chunks a thread handles, and in which order"
)


@dataclass(frozen=True, slots=True)
class Turns:
    """A run as far as it gets; of steps, or of pieces in some order inside the ranks."""

    index: Index
    local: LocalOrder
    progress: Progress
    depth: int

    @property
    def finished(self) -> bool:
        """Whether everything got its turn."""
        return self.progress.finished


def turns_of(
    index: Index, depth: int, time_limit_s: float | None, local: LocalOrder | None = None
) -> Turns:
    """A run; one that does not finish, if any interleaving does not.

    local: the order inside ranks, if it is not that of the schedule.

    Raises:
        TooManyOutcomes: of competing waits, to try them all in time.
    """
    local = local or local_order(index)
    return Turns(index, local, run_or_stick(index, local, depth, time_limit_s), depth)


def in_sequence(whole: Index, pieces: Pieces, index: Index) -> LocalOrder:
    """The order inside ranks, with the pieces of a step in sequence and before the next step.

    index: that of the pieces.
    """
    parts: dict[int, list[int]] = defaultdict(list)
    for number, origin in enumerate(pieces.origin):
        parts[origin].append(number)
    order = local_order(index)
    after, before = [list(later) for later in order.after], list(order.before)
    for step, own in parts.items():
        earlier = [(parts[e][-1], own[0]) for e in whole.before(step)]
        for a, b in (*earlier, *pairwise(own)):
            after[a].append(b)
            before[b] += 1
    return LocalOrder(after, before, order.meeting)


def turns_of_pieces(
    whole: Index, pieces: Pieces, depth: int, time_limit_s: float | None
) -> Sequence[Turns]:
    """Runs of the pieces: in sequence; and if that does not finish, in no more order than theirs.

    Raises:
        TooManyOutcomes: as above.
    """
    index = index_of(pieces.schedule)
    strict = turns_of(index, depth, time_limit_s, in_sequence(whole, pieces, index))
    return [strict] if strict.finished else [strict, turns_of(index, depth, time_limit_s)]


# What was found about a schedule in pieces, told of its whole steps.


def of_whole_steps(pieces: Pieces, violation: Violation) -> Violation:
    """The violation with numbers of whole steps; which chunks of a step is said as its part.

    A shortest order of pieces need not be a shortest one of steps, so that is not claimed.
    """
    if pieces.whole:
        return violation
    entries = list(_whole_entries(pieces, violation))
    return replace(
        violation,
        steps=tuple(dict.fromkeys(pieces.origin[number] for number in violation.steps)),
        order=tuple(number for number, _ in entries),
        parts=tuple(part for _, part in entries),
        shortest=None if violation.shortest is None else False,
    )


def _whole_entries(pieces: Pieces, violation: Violation) -> Iterator[tuple[int, str]]:
    """The interleaving in whole steps; beginnings and ends of steps do nothing that shows."""
    parts = violation.parts or ("",) * len(violation.order)
    for number, part in zip(violation.order, parts, strict=True):
        chunks = pieces.chunks[number]
        if chunks is None or part:
            yield pieces.origin[number], part
        elif chunks:
            last = f"..{chunks[-1]}" if len(chunks) > 1 else ""
            yield pieces.origin[number], f"chunk{'s' * bool(last)} {chunks[0]}{last} of it"

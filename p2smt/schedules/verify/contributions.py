"""What every chunk holds after a run, as exact multisets of contributions, and what is wrong."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.collectives.contract import Contribution
from p2smt.schedules.model import Buffer, Span
from p2smt.schedules.multisets import Multisets, Part
from p2smt.schedules.verify.report import Kind, Violation, times

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.collectives.contract import Goal
    from p2smt.schedules.index import Index
    from p2smt.schedules.multisets import Multisets
    from p2smt.schedules.order.happens_before import Nodes
    from p2smt.schedules.order.unordered_accesses import OrderQuestion


@dataclass(slots=True)
class DataState:
    """Memory and messages under way; values by number, -1 for what was never written.

    instead: what single reads see whatever is there, by node (as in order.happens_before) and cell.
    """

    index: Index
    table: Multisets = field(default_factory=Multisets)
    cells: list[int] = field(default_factory=list)
    messages: dict[object, deque[list[int]]] = field(default_factory=dict)
    instead: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        memory = self.index.memory
        self.cells = [-1] * memory.total
        for rank, chunks in enumerate(self.index.schedule.contract.starts):
            for chunk, given in enumerate(chunks):
                if given is not None:
                    self.cells[memory.input_cell(rank, chunk)] = self.table.single(given)
        self.messages = {connection: deque() for connection in self.index.sends}

    def read(self, cell: int, node: int = -1) -> int:
        """What a cell holds; one never written holds its own name as undefined data."""
        if self.instead and (node, cell) in self.instead:
            return self.instead[node, cell]
        if self.cells[cell] < 0:
            return self.table.single(self.index.memory.name(cell))
        return self.cells[cell]

    def do(self, number: int) -> None:
        """Performs a step as a whole."""
        step, cells = self.index.schedule.steps[number], self.index.memory.cells
        value = self.messages[step.receive].popleft() if step.receive else None
        for span in step.reads:
            more = [self.read(cell, number) for cell in cells(span)]
            if value is not None:
                more = [self.table.add(a, b) for a, b in zip(value, more, strict=True)]
            value = more
        value = value or []
        for span in step.writes:
            place = cells(span)
            self.cells[place.start : place.stop] = value
        if step.send:
            self.messages[step.send].append(value)


def run_values(index: Index, order: Sequence[int]) -> DataState:
    """Memory after the steps in this order, each as a whole."""
    state = DataState(index)
    for number in order:
        state.do(number)
    return state


def wrong_goals(state: DataState) -> Iterator[tuple[Goal, Mapping[Part, int]]]:
    """Goals that are not met, with what is there instead."""
    wanted: dict[int, int] = {}  # by identity: goals of one chunk share their parts
    schedule = state.index.schedule
    for goal in schedule.contract.goals:
        if id(goal.parts) not in wanted:
            wanted[id(goal.parts)] = state.table.number(Counter[Part](goal.parts), {})
        end = len(schedule.steps) + schedule.ranks + goal.rank
        got = state.read(state.index.memory.output_cell(goal.rank, goal.chunk), end)
        if got != wanted[id(goal.parts)]:
            yield goal, state.table.known[got].parts


def wrong_values(state: DataState, order: tuple[int, ...] = ()) -> Iterator[Violation]:
    """One violation for every goal that a run does not meet; ``order`` is kept with each."""
    for goal, got in wrong_goals(state):
        kind, what = classify(goal, got, _untouched(state, goal))
        text = f"o[{goal.chunk}] of rank {goal.rank} {what}"
        yield Violation(kind, text, (), goal.rank, goal.chunk, order)


def _untouched(state: DataState, goal: Goal) -> bool:
    """Whether no step of the schedule writes the chunk of a goal."""
    memory = state.index.memory
    cell = memory.output_cell(goal.rank, goal.chunk)
    spans = (span for step in state.index.schedule.steps for span in step.writes)
    return not any(span.rank == goal.rank and cell in memory.cells(span) for span in spans)


def classify(goal: Goal, got: Mapping[Part, int], untouched: bool) -> tuple[Kind, str]:
    """The kind of violation, and in words what the chunk holds instead of its goal."""
    wanted: Counter[Part] = Counter(goal.parts)
    undefined = [part for part in got if isinstance(part, str)]
    extra = {part: n for part, n in got.items() if n > wanted[part] and part not in undefined}
    missing = [part for part in wanted if got.get(part, 0) < wanted[part]]
    if untouched and undefined:
        return Kind.MISSING, f"is never written; it lacks {_names(missing)}"
    if undefined == [str(Span(goal.rank, Buffer.OUTPUT, goal.chunk, 1))]:
        return Kind.UNINITIALISED, "is read before anything was written there"
    if undefined:
        return (
            Kind.UNINITIALISED,
            f"contains {undefined[0]}, read before anything was written there",
        )
    if untouched:
        return Kind.STALE, f"still holds what was there at the start; it lacks {_names(missing)}"
    return _sums(wanted, extra, missing)


def _sums(
    wanted: Mapping[Part, int], extra: Mapping[Part, int], missing: list[Part]
) -> tuple[Kind, str]:
    doubled = [part for part in extra if wanted[part]]
    lacking = f", and lacks {_names(missing)}" if missing else ""
    if doubled:
        return Kind.DOUBLED, f"contains {_names(doubled, extra)}{lacking}"
    if extra:
        return Kind.FOREIGN, f"contains {_names(list(extra))}, which is not part of it{lacking}"
    return Kind.MISSING, f"lacks {_names(missing)}"


def _names(parts: list[Part], counts: Mapping[Part, int] | None = None, most: int = 4) -> str:
    shown = sorted(parts, key=lambda p: p if isinstance(p, Contribution) else (-1, -1))[:most]
    words = [f"{part} {times(counts[part])}" if counts else str(part) for part in shown]
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(words) + more


# Harm done by accesses that packets order, but do not publish: what they may see instead.
# A read may still see what was there before; what was overwritten may come back; a read may already
# see what overwrites it.  Each is tried along one run.  If that makes an output chunk wrong, it is
# a violation.  If no output chunk depends on any of these reads, they do no harm, whatever they
# see.


SeenRead = tuple[int, int]
"""(node, cell)."""

RULE = "packets alone are between them, and publish their own words only"


@dataclass(frozen=True, slots=True)
class StaleReads:
    """What was found.

    violation: a run in which a chunk is wrong.  matter: whether a goal depends on any such read.
    """

    violation: Violation | None
    matter: bool


@dataclass(slots=True)
class _History:
    """Accesses of each cell along a run: (node, whether it writes, value after it)."""

    index: Index
    nodes: Nodes
    table: Multisets
    cells: dict[int, list[tuple[int, bool, int]]] = field(default_factory=lambda: defaultdict(list))

    def reads(self, question: OrderQuestion) -> Iterator[tuple[SeenRead, int]]:
        """What may see something else, and what."""
        cell, past = question.cell, self.cells[question.cell]
        first = self._place(question.earlier, cell, writes=not question.overwrites)
        if question.overwrites:
            last = self._place(question.later, cell, writes=True)
            yield (question.earlier, cell), past[last][2]
            return
        for place in range(first + 1, len(past)):
            node, writes, _ = past[place]
            if node == question.later and not writes:
                yield (node, cell), past[first - 1][2]
            if node == question.later and writes:
                yield from self._after(cell, place, past[first][2])

    def _after(self, cell: int, place: int, value: int) -> Iterator[tuple[SeenRead, int]]:
        """Reads of what was written at a place, which may see another value."""
        for node, writes, _ in self.cells[cell][place + 1 :]:
            if writes:
                return
            yield (node, cell), value

    def _place(self, node: int, cell: int, *, writes: bool) -> int:
        past = self.cells[cell]
        return next(k for k, (by, wrote, _) in enumerate(past) if (by, wrote) == (node, writes))


def _history(index: Index, nodes: Nodes, order: Sequence[int], cells: set[int]) -> _History:
    state = DataState(index)
    history = _History(index, nodes, state.table)
    for cell in cells:
        history.cells[cell].append((-1, True, state.read(cell)))
    memory = index.memory
    for number in order:
        step = index.schedule.steps[number]
        before = [cell for span in step.reads for cell in memory.cells(span) if cell in cells]
        for cell in dict.fromkeys(before):
            history.cells[cell].append((number, False, state.read(cell)))
        state.do(number)
        after = [cell for span in step.writes for cell in memory.cells(span) if cell in cells]
        for cell in dict.fromkeys(after):
            history.cells[cell].append((number, True, state.read(cell)))
    for goal in index.schedule.contract.goals:
        cell = memory.output_cell(goal.rank, goal.chunk)
        if cell in cells:
            history.cells[cell].append((nodes.end(goal.rank), False, state.read(cell)))
    return history


def stale_reads(
    index: Index, nodes: Nodes, order: Sequence[int], questions: Sequence[OrderQuestion]
) -> StaleReads:
    """What accesses that are ordered but not published can do to the result of a run."""
    history = _history(index, nodes, order, {question.cell for question in questions})
    everything: dict[SeenRead, int] = {}
    for question in questions:
        instead = dict(history.reads(question))
        found = _violation(index, nodes, order, history.table, question, instead)
        if found is not None:
            return StaleReads(found, matter=True)
        everything |= instead
    anything = history.table.single("whatever is there")
    state = _run(index, order, history.table, dict.fromkeys(everything, anything))
    return StaleReads(None, any("whatever is there" in got for _, got in wrong_goals(state)))


def _run(
    index: Index, order: Sequence[int], table: Multisets, instead: Mapping[SeenRead, int]
) -> DataState:
    state = DataState(index, table, instead=instead)
    for number in order:
        state.do(number)
    return state


def _violation(
    index: Index,
    nodes: Nodes,
    order: Sequence[int],
    table: Multisets,
    question: OrderQuestion,
    instead: Mapping[SeenRead, int],
) -> Violation | None:
    """The first output chunk that is wrong where some reads see something else."""
    wrong = next(wrong_goals(_run(index, order, table, instead)), None)
    if wrong is None:
        return None
    goal, got = wrong
    kind, what = classify(goal, got, untouched=False)
    name = index.memory.name(question.cell)
    earlier, later = nodes.name(index, question.earlier), nodes.name(index, question.later)
    did = "reads" if question.overwrites else "writes"
    text = (
        f"{later} accesses {name} after {earlier} {did} it, but {RULE}; so o[{goal.chunk}] of rank "
        f"{goal.rank} {what} ({kind.value}) in some runs"
    )
    steps = tuple(n for n in (question.later, question.earlier) if nodes.is_step(n))
    return Violation(Kind.RACE, text, steps, goal.rank, goal.chunk, order=tuple(order))

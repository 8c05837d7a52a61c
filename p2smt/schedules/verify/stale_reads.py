"""Harm done by accesses that packets order, but do not publish: what they may see instead.

A read may still see what was there before; what was overwritten may come back; a read may already
see what overwrites it.  Each is tried along one run.  If that makes an output chunk wrong, it is a
violation.  If no output chunk depends on any of these reads, they do no harm, whatever they see.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.schedules.verify.report import Kind, Violation
from p2smt.schedules.verify.values import DataState, classify, wrong_goals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.schedules.index import Index
    from p2smt.schedules.multisets import Multisets
    from p2smt.schedules.order.happens_before import Nodes
    from p2smt.schedules.order.unordered_accesses import OrderQuestion

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

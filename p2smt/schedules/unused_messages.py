"""Messages that carry data no output needs.

Backwards along a run: of what a rank holds at the end only the chunks of the goals are needed; a
step needs of what it reads and receives the positions of which a store or a message is needed; a
store that is needed ends the need for what was there before.  A message is one that a connection
carries, or what a step reads from or writes to one span of another rank.

Where accesses are ordered, every run gives the same answer.  Chunks whose accesses are in no
certain order count as needed throughout, so that what is found is unused in every interleaving.
That nobody needs its data does not say that a message can be left out: it may order steps.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from p2smt.schedules.index import Index
    from p2smt.schedules.model import Connection, Schedule, Span, Step


def unused_messages(
    index: Index, order: Sequence[int], racy: Iterable[int] = ()
) -> tuple[int, ...]:
    """The steps that send a message no output needs (or fetch it), once for each such message.

    order: a run of all steps.  racy: the cells whose accesses are not all ordered.
    """
    needs = _Needs(index, frozenset(racy))
    found: list[int] = []
    steps = index.schedule.steps
    for number in reversed(order):
        if unused := needs.undo(steps[number]):
            found += [number] * unused
    return tuple(sorted(found))


def unused_warning(schedule: Schedule, found: Sequence[int]) -> str:
    """How many there are, and the first two."""
    count, steps = len(found), list(dict.fromkeys(found))
    what = "1 message carries" if count == 1 else f"{count} messages carry"
    shown = " and ".join(str(schedule.steps[number]) for number in steps[:2])
    such = "" if count == 1 else "such as "
    return f"{what} data that no output needs: {such}that of {shown}"


class _Needs:
    """What is needed after the steps that were not undone yet; a chunk is a byte, 0 or 1."""

    def __init__(self, index: Index, racy: frozenset[int]) -> None:
        memory = index.memory
        self.cells = bytearray(memory.total)
        self.racy = racy
        self.firsts = {
            (rank, buffer): memory.cell(rank, buffer, 0)
            for rank in range(index.schedule.ranks)
            for buffer in Buffer
        }
        self.messages: dict[Connection, deque[int]] = {name: deque() for name in index.sends}
        for goal in index.schedule.contract.goals:
            self.cells[memory.output_cell(goal.rank, goal.chunk)] = 1
        for cell in racy:
            self.cells[cell] = 1

    def undo(self, step: Step) -> int:
        """Takes a step back; how many of its messages nobody needed.

        A number stands for the chunks of a step, with a byte for each.
        """
        needed, unused, rank = 0, 0, step.rank
        if step.send:
            needed = self.messages[step.send].popleft()
            unused += not needed
        for span in step.writes:
            used = self._of(span)
            needed |= used
            unused += not used and span.rank != rank
        for span in step.writes:
            self._forget(span)
        if step.receive:
            self.messages[step.receive].append(needed)
        for span in step.reads:
            if needed:
                self._need(span, needed)
            elif span.rank != rank:
                unused += 1
        return unused

    def _of(self, span: Span) -> int:
        first, count = self.firsts[span.rank, span.buffer] + span.start, span.count
        if count == 1:
            return self.cells[first]
        return int.from_bytes(self.cells[first : first + count])

    def _need(self, span: Span, chunks: int) -> None:
        first, count = self.firsts[span.rank, span.buffer] + span.start, span.count
        if count == 1:
            self.cells[first] = 1
            return
        known = int.from_bytes(self.cells[first : first + count])
        self.cells[first : first + count] = (known | chunks).to_bytes(count)

    def _forget(self, span: Span) -> None:
        first, count = self.firsts[span.rank, span.buffer] + span.start, span.count
        if count == 1:
            self.cells[first] = 0
        else:
            self.cells[first : first + count] = bytes(count)
        if self.racy:
            for cell in self.racy.intersection(range(first, first + count)):
                self.cells[cell] = 1

"""Look-up tables of a schedule: steps by block, by connection, by counter, by barrier."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.schedules.memory_cells import Memory, memory_of
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from p2smt.schedules.model import Connection, Schedule, Span, Step, StepRef


@dataclass(frozen=True, slots=True)
class Index:
    """Steps are named by their number, the position in ``schedule.steps``.

    blocks: (rank, block) -> its steps in order.
    sends, receives: connection -> the steps at its two ends, in order of their blocks.
    posts, awaits: counter -> the steps that raise it and that take from it.
    barriers: instances, each the steps that meet.
    loose: blocks with steps that are not simply in program order.
    starting: what counters hold at the start, if not 0.
    known: by step, what comes before it, once somebody has asked.
    """

    schedule: Schedule
    memory: Memory
    blocks: Mapping[tuple[int, int], Sequence[int]]
    sends: Mapping[Connection, Sequence[int]]
    receives: Mapping[Connection, Sequence[int]]
    posts: Mapping[str, Sequence[int]]
    awaits: Mapping[str, Sequence[int]]
    barriers: Sequence[Sequence[int]]
    loose: frozenset[tuple[int, int]]
    starting: Mapping[str, int]
    known: list[Sequence[int]] = field(default_factory=list)

    def number(self, rank: int, ref: StepRef) -> int | None:
        """The step that a reference names, if there is one."""
        block = self.blocks.get((rank, ref.block), ())
        return block[ref.index] if 0 <= ref.index < len(block) else None

    def before(self, step: int) -> Sequence[int]:
        """Steps of the same rank that must be complete before a step; unknown ones left out."""
        if not self.known:
            self.known.extend(map(self._before, self.schedule.steps))
        return self.known[step]

    def _before(self, this: Step) -> tuple[int, ...]:
        found: list[int | None] = []
        if this.after is not None:
            found += [self.number(this.rank, ref) for ref in this.after]
        elif this.index:
            found += self.blocks[this.rank, this.block][this.index - 1 : this.index]
        found += [self.number(this.rank, ref) for ref in this.waits]
        return tuple(dict.fromkeys(number for number in found if number is not None))

    def follows(self, earlier: int, later: int) -> bool:
        """Whether a step surely comes after another of its block, by the order inside the rank.

        One that takes twice from the same counter follows itself.
        """
        if earlier == later:
            return True
        this = self.schedule.steps[later]
        if (this.rank, this.block) not in self.loose:
            return earlier < later
        seen, todo = {later}, [later]
        while todo:
            for before in self.before(todo.pop()):
                if before == earlier:
                    return True
                if before not in seen:
                    seen.add(before)
                    todo.append(before)
        return False

    def initial(self, counter: str) -> int:
        """What a counter holds at the start."""
        return self.starting.get(counter, 0)


def index_of(schedule: Schedule) -> Index:
    """The tables of a schedule."""
    blocks: dict[tuple[int, int], list[int]] = defaultdict(list)
    sends: dict[Connection, list[int]] = defaultdict(list)
    receives: dict[Connection, list[int]] = defaultdict(list)
    posts: dict[str, list[int]] = defaultdict(list)
    awaits: dict[str, list[int]] = defaultdict(list)
    for number, step in enumerate(schedule.steps):
        blocks[step.rank, step.block].append(number)
        if step.send:
            sends[step.send].append(number)
        if step.receive:
            receives[step.receive].append(number)
        for counter in step.posts:
            posts[counter].append(number)
        for counter in step.awaits:
            awaits[counter].append(number)
    barriers = _barriers(schedule, blocks)
    memory = memory_of(schedule)
    loose = frozenset((s.rank, s.block) for s in schedule.steps if s.after is not None)
    return Index(
        schedule,
        memory,
        blocks,
        sends,
        receives,
        posts,
        awaits,
        barriers,
        loose,
        dict(schedule.initial),
    )


def _barriers(
    schedule: Schedule, blocks: Mapping[tuple[int, int], Sequence[int]]
) -> list[Sequence[int]]:
    """The k-th steps with the same barrier name in the blocks of a rank meet."""
    meetings: dict[tuple[int, str, int], list[int]] = defaultdict(list)
    for (rank, _), numbers in blocks.items():
        seen: dict[str, int] = defaultdict(int)
        for number in numbers:
            name = schedule.steps[number].barrier
            if name is not None:
                meetings[rank, name, seen[name]].append(number)
                seen[name] += 1
    return list(meetings.values())


# Messages that carry data no output needs.
# Backwards along a run: of what a rank holds at the end only the chunks of the goals are needed; a
# step needs of what it reads and receives the positions of which a store or a message is needed; a
# store that is needed ends the need for what was there before.  A message is one that a connection
# carries, or what a step reads from or writes to one span of another rank.
#
# Where accesses are ordered, every run gives the same answer.  Chunks whose accesses are in no
# certain order count as needed throughout, so that what is found is unused in every interleaving.
# That nobody needs its data does not say that a message can be left out: it may order steps.


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

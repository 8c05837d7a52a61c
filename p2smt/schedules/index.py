"""Look-up tables of a schedule: steps by block, by connection, by counter, by barrier."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.schedules.memory import Memory, memory_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from p2smt.schedules.model import Connection, Schedule, StepRef


@dataclass(frozen=True, slots=True)
class Index:
    """Steps are named by their number, the position in ``schedule.steps``.

    blocks: (rank, block) -> its steps in order.
    sends, receives: connection -> the steps at its two ends, in order of their blocks.
    posts, awaits: counter -> the steps that raise it and that take from it.
    barriers: instances, each the steps that meet.
    loose: blocks with steps that are not simply in program order.
    starting: what counters hold at the start, if not 0.
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

    def number(self, rank: int, ref: StepRef) -> int | None:
        """The step that a reference names, if there is one."""
        block = self.blocks.get((rank, ref.block), ())
        return block[ref.index] if 0 <= ref.index < len(block) else None

    def before(self, step: int) -> list[int]:
        """Steps of the same rank that must be complete before a step; unknown ones left out."""
        this = self.schedule.steps[step]
        if this.after is None:
            previous = self.blocks[this.rank, this.block][this.index - 1 : this.index]
            found: list[int | None] = list(previous) if this.index else []
        else:
            found = [self.number(this.rank, ref) for ref in this.after]
        found += [self.number(this.rank, ref) for ref in this.waits]
        return list(dict.fromkeys(number for number in found if number is not None))

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

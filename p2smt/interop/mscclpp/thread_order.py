"""Actions of the threads of a block to steps, with precisely the order that the kernel gives.

Between two synchronisations of a block (a *segment*) each thread goes its own way.  So within a
segment

- data actions of one lane are in order, for the same thread handles the same element of each.
  Where two of them meet in memory at different positions, different threads do: then all data
  actions of the segment are cut into positions, and only equal positions are in order;
- data actions of different lanes, and data actions and single threads, are in no order;
- what the same single thread does is in order, so are what it pushes and what it does itself;
- on one channel the proxy completes transfers and signals in the order of their pushes; pushes
  of different threads in one segment, and of different blocks, are in no order;
- a flush comes after the transfers pushed before it on its channel.

A synchronisation comes after everything of its segment but what the proxy does.  Steps of the
proxy are background steps of blocks of their own, one for every port channel of the rank.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

from p2smt.interop.mscclpp.actions import Data, Push, Single, Sync
from p2smt.schedules.model import Buffer, FilePlace, Step, StepRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from p2smt.interop.mscclpp.actions import Action
    from p2smt.interop.mscclpp.execution_plan import Channel
    from p2smt.schedules.model import Span

MAX_PAIRS = 4096
PACKETS = "packet"
"""The lane whose operations wait element by element."""


@dataclass(slots=True)
class RankSteps:
    """Steps of a rank while they are made; ``proxy`` has a list for every port channel."""

    rank: int
    blocks: int
    in_place: bool
    proxy: dict[Channel, list[Step]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def all_steps(self) -> Iterator[Step]:
        """All steps, block by block, the proxy's last."""
        yield from self.steps
        for done in self.proxy.values():
            yield from done

    def add_block(self, number: int, actions: Iterable[Action]) -> None:
        """Add the steps of a block."""
        block = _Block(self, number)
        segment: list[Data | Single | Push] = []
        for action in actions:
            if isinstance(action, Sync):
                block.segment(segment)
                block.sync(action)
                segment = []
            else:
                segment.append(action)
        block.segment(segment)


@dataclass(slots=True)
class _Block:
    """A block while its steps are made.

    base: the last synchronisation.  ends: steps since then that no other one follows.
    threads: the last step of each single thread since then; lanes: of each lane and position.
    pushed: per channel, pushes that no other one follows, each with its segment and thread.
    """

    rank: RankSteps
    number: int
    size: int = 0
    segments: int = 0
    base: tuple[StepRef, ...] = ()
    ends: dict[StepRef, None] = field(default_factory=dict)
    threads: dict[int, StepRef] = field(default_factory=dict)
    lanes: dict[tuple[str, int], StepRef] = field(default_factory=dict)
    pushed: dict[Channel, list[tuple[StepRef, int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def sync(self, action: Sync) -> None:
        """A synchronisation, and the begin of the next segment."""
        after = tuple(self.ends) or self.base
        step = Step(
            *(self.rank.rank, self.number, self.size, action.name),
            awaits=action.never,
            barrier=action.barrier,
            line=action.line,
            place=FilePlace(self.number, action.path),
        )
        self.base = (self._add(step, after),)
        self.ends, self.threads, self.lanes = dict.fromkeys(self.base), {}, {}
        self.segments += 1

    def segment(self, actions: Sequence[Data | Single | Push]) -> None:
        """Everything between two synchronisations."""
        data = [action for action in actions if isinstance(action, Data)]
        cut = _must_cut(data, in_place=self.rank.in_place)
        for action in actions:
            match action:
                case Data():
                    self._data(action, cut)
                case Single():
                    self._single(action)
                case Push():
                    self._push(action)

    def _data(self, action: Data, cut: bool) -> None:
        parts = range(action.count) if cut else (None,)
        for position in parts:
            key = (action.lane, position or 0)
            before = self.lanes.get(key)
            after = (before,) if before else self.base
            part = action if position is None else _position(action, position)
            step = Step(
                *(self.rank.rank, self.number, self.size, part.name, part.count),
                reads=part.reads,
                writes=part.writes,
                lane=part.lane if part.lane == PACKETS else None,
                line=part.line,
                place=FilePlace(self.number, part.path),
            )
            self.lanes[key] = self._add(step, after)

    def _single(self, action: Single) -> None:
        after = self._thread(action.thread)
        if action.flushes:
            after += self._pushed(action.flushes, action.thread)
        step = Step(
            *(self.rank.rank, self.number, self.size, action.name),
            posts=action.posts,
            awaits=action.awaits,
            relaxed=action.relaxed,
            line=action.line,
            place=FilePlace(self.number, action.path),
        )
        self.threads[action.thread] = self._add(step, after)

    def _push(self, action: Push) -> None:
        channel, before = action.channel, self._pushed(action.channel, action.thread)
        done = self.rank.proxy.setdefault(channel, [])
        block = self.rank.blocks + list(self.rank.proxy).index(channel)
        step = Step(self.rank.rank, block, len(done), action.name, action.count)
        step = replace(step, reads=action.reads, writes=action.writes, posts=action.posts)
        after = (*self._thread(action.thread), *before)
        place = FilePlace(self.number, action.path)
        step = replace(step, after=after, background=True, line=action.line, place=place)
        done.append(step)
        waiting = [push for push in self.pushed[channel] if push[0] not in before]
        ref = StepRef(block, step.index)
        self.pushed[channel] = [*waiting, (ref, self.segments, action.thread)]

    def _thread(self, thread: int) -> tuple[StepRef, ...]:
        before = self.threads.get(thread)
        return (before,) if before else self.base

    def _pushed(self, channel: Channel, thread: int) -> tuple[StepRef, ...]:
        """Pushes on a channel that surely came before one that this thread makes now."""
        return tuple(
            ref
            for ref, segment, by in self.pushed[channel]
            if segment < self.segments or by == thread
        )

    def _add(self, step: Step, after: tuple[StepRef, ...]) -> StepRef:
        """Append a step; ``after`` is left out where program order says the same."""
        plain = (StepRef(self.number, self.size - 1),) if self.size else ()
        self.rank.steps.append(step if after == plain else replace(step, after=after))
        ref = StepRef(self.number, self.size)
        for earlier in after:
            self.ends.pop(earlier, None)
        self.ends[ref] = None
        self.size += 1
        return ref


def _position(action: Data, position: int) -> Data:
    """One position of a data action."""
    return replace(
        action,
        count=1,
        reads=tuple(replace(s, start=s.start + position, count=1) for s in action.reads),
        writes=tuple(replace(s, start=s.start + position, count=1) for s in action.writes),
    )


def _must_cut(actions: Sequence[Data], *, in_place: bool) -> bool:
    """Whether two actions of one lane meet at different positions."""
    if all(action.count == 1 for action in actions) or len(actions) < 2:
        return False
    if len(actions) ** 2 > MAX_PAIRS:
        return True
    return any(
        one.lane == two.lane and meet_apart(one, two, in_place=in_place)
        for one, two in combinations(actions, 2)
    )


def meet_apart(one: Data | Step, two: Data | Step, *, in_place: bool) -> bool:
    """Whether they meet in memory at different positions, one of them writing."""
    if max(one.count, two.count) == 1:
        return False
    return _meet(one.writes, two, in_place) or _meet(two.writes, one, in_place)


def _meet(writes: Sequence[Span], other: Data | Step, in_place: bool) -> bool:
    """Whether positions differ where they meet; in place, that of input and output may."""
    return any(
        _apart(write, span)
        if write.buffer is span.buffer
        else in_place and Buffer.SCRATCH not in (write.buffer, span.buffer)
        for write in writes
        for span in (*other.reads, *other.writes)
        if write.rank == span.rank
    )


def _apart(one: Span, two: Span) -> bool:
    overlap = one.start < two.start + two.count and two.start < one.start + one.count
    return overlap and one.start != two.start

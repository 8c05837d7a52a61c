"""A schedule whose steps on packets are taken apart: chunk k of a packet orders only chunk k.

A step that handles several chunks by packets is not one event: each of its chunks waits for its own
packets, and is there for others with its own.  Its order is that of its *pieces*, runs of chunks
that no span of the schedule tells apart.  A step becomes a beginning (what it waits for), its
pieces in no order among each other, and an end (what it signals), which stands for it where others
come after it.  Steps of one lane are in order piece by piece.

Sound for the order of data.  For progress see :mod:`p2smt.schedules.verify.verify`: a thread may
handle several chunks, one after the other.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from p2smt.schedules.memory_cells import memory_of
from p2smt.schedules.model import StepRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from p2smt.schedules.memory_cells import Memory
    from p2smt.schedules.model import Schedule, Span, Step

StepPlace = tuple[int, int, int]
"""(rank, block, index) of a step."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A schedule in pieces.

    origin: for each of its steps, the number of the step that it is a piece of.
    chunks: for each, which chunks of that step; None: all of it; empty: its beginning or its end.
    """

    schedule: Schedule
    origin: tuple[int, ...]
    chunks: tuple[range | None, ...]

    @property
    def whole(self) -> bool:
        """Whether no step was taken apart."""
        return all(chunks is None for chunks in self.chunks)

    def run(self, order: Iterable[int]) -> tuple[int, ...]:
        """A run of the whole steps as one of the pieces."""
        parts: dict[int, list[int]] = defaultdict(list)
        for number, origin in enumerate(self.origin):
            parts[origin].append(number)
        return tuple(part for number in order for part in parts[number])


def in_pieces(schedule: Schedule) -> Pieces:
    """The schedule with its steps on packets in pieces; structurally sound."""
    if not any(step.count > 1 and _has_packets(step) for step in schedule.steps):
        count = len(schedule.steps)
        return Pieces(schedule, tuple(range(count)), (None,) * count)
    chains = _chains(schedule)
    cuts = _cuts(schedule, chains)
    apart = {
        number: (_ranges(schedule.steps[number].count, cut), before)
        for chain, cut in zip(chains, cuts, strict=True)
        if cut
        for before, number in zip((None, *chain), chain, strict=False)
    }
    return _taken_apart(schedule, apart)


def _has_packets(step: Step) -> bool:
    """Whether a step accesses packets, and neither messages nor a barrier."""
    if step.send or step.receive or step.barrier is not None:
        return False
    return any(span.packet for span in (*step.reads, *step.writes))


def _chains(schedule: Schedule) -> list[list[int]]:
    """Steps on packets, each with those of its lane that follow it directly."""
    numbers = {(s.rank, s.block, s.index): n for n, s in enumerate(schedule.steps)}
    chain_of: dict[int, list[int]] = {}
    for number, step in enumerate(schedule.steps):
        if _has_packets(step):
            before = _in_lane(schedule, numbers, step)
            chain = chain_of.get(-1 if before is None else before, [])
            follows = before is not None and chain[-1:] == [before]
            chain_of[number] = chain if follows else []
            chain_of[number].append(number)
    return list({id(chain): chain for chain in chain_of.values()}.values())


def _in_lane(schedule: Schedule, numbers: Mapping[StepPlace, int], step: Step) -> int | None:
    """The step of the same lane that this one directly follows, and nothing else."""
    before = (StepRef(step.block, step.index - 1),) if step.after is None else step.after
    if step.lane is None or step.waits or step.awaits or len(before) != 1:
        return None
    number = numbers.get((step.rank, before[0].block, before[0].index))
    if number is None or before[0].block != step.block:
        return None
    other = schedule.steps[number]
    return number if other.lane == step.lane and not other.posts else None


def _cuts(schedule: Schedule, chains: Sequence[Sequence[int]]) -> list[set[int]]:
    """For each chain the positions at which its steps are cut: wherever a span of the schedule
    begins or ends, and wherever that cuts another step on packets."""
    memory = memory_of(schedule)
    steps = [[schedule.steps[number] for number in chain] for chain in chains]
    bounds: set[int] = set()
    for step in schedule.steps:
        for span in (*step.reads, *step.writes):
            cells = memory.cells(span)
            bounds |= {cells.start, cells.stop}
    cuts: list[set[int]] = [{step.count for step in chain} for chain in steps]
    for cut, chain in zip(cuts, steps, strict=True):
        cut.discard(max(step.count for step in chain))
    known = -1
    while len(bounds) > known:
        known, ordered = len(bounds), sorted(bounds)
        for cut, chain in zip(cuts, steps, strict=True):
            for start, count in _spans(memory, chain):
                inside = slice(bisect_right(ordered, start), bisect_left(ordered, start + count))
                cut.update(bound - start for bound in ordered[inside])
            for start, count in _spans(memory, chain):
                bounds.update(start + place for place in cut if place < count)
    return cuts


def _spans(memory: Memory, chain: Sequence[Step]) -> Iterator[tuple[int, int]]:
    """First cell and count of every span."""
    for step in chain:
        for span in (*step.reads, *step.writes):
            yield memory.cells(span).start, span.count


def _ranges(count: int, cut: set[int]) -> list[range]:
    places = [0, *sorted(place for place in cut if place < count), count]
    return [range(a, b) for a, b in pairwise(places)]


Apart = tuple[list[range], int | None]
"""The pieces of a step, and the step before it in its lane."""


@dataclass(slots=True)
class _Renumbering:
    """Steps while they are numbered anew.

    ends: old place -> the new step that stands for it.  begins, parts: of steps in pieces: where
    they begin, and the piece of their chain that handles a position last.
    """

    schedule: Schedule
    apart: Mapping[int, Apart]
    sizes: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    ends: dict[StepPlace, StepRef] = field(default_factory=dict)
    begins: dict[int, StepRef] = field(default_factory=dict)
    parts: dict[int, dict[int, StepRef]] = field(default_factory=dict)

    def number(self) -> None:
        """The new place of every step and piece."""
        for number, step in enumerate(self.schedule.steps):
            ranges, before = self.apart.get(number, ([], None))
            if ranges:
                self.begins[number] = self._next(step)
                earlier = {} if before is None else self.parts[before]
                self.parts[number] = earlier | {r.start: self._next(step) for r in ranges}
            self.ends[step.rank, step.block, step.index] = self._next(step)

    def _next(self, step: Step) -> StepRef:
        where = step.rank, step.block
        self.sizes[where] += 1
        return StepRef(step.block, self.sizes[where] - 1)

    def renamed(self, step: Step, refs: tuple[StepRef, ...]) -> tuple[StepRef, ...]:
        """References to old steps as references to what stands for them."""
        return tuple(self.ends[step.rank, ref.block, ref.index] for ref in refs)

    def made(self) -> Iterator[tuple[int, range | None, Step]]:
        """All new steps, each with the number of the old one and its part of it."""
        for number, step in enumerate(self.schedule.steps):
            after = None if step.after is None else self.renamed(step, step.after)
            end = self.ends[step.rank, step.block, step.index]
            new = replace(step, index=end.index, waits=self.renamed(step, step.waits), after=after)
            new = replace(new, place=step.in_file)
            if number in self.apart:
                for part, piece in self._pieces(number, new):
                    yield number, part, piece
            else:
                yield number, None, new

    def _pieces(self, number: int, step: Step) -> Iterator[tuple[range, Step]]:
        ranges, before = self.apart[number]
        begin, nothing = self.begins[number], range(0)
        bare = replace(step, reads=(), writes=(), count=0, waits=(), awaits=(), posts=())
        first = step.after if before is None else (self.begins[before],)
        waiting = replace(bare, waits=step.waits, awaits=step.awaits)
        yield nothing, replace(waiting, index=begin.index, after=first)
        done: list[StepRef] = []
        for part in ranges:
            ref = self.parts[number][part.start]
            earlier = None if before is None else self.parts[before].get(part.start)
            after = (begin,) if earlier is None else (begin, earlier)
            reads, writes = (_cut(spans, part) for spans in (step.reads, step.writes))
            moved = replace(bare, reads=reads, writes=writes, count=len(part))
            yield part, replace(moved, index=ref.index, after=after)
            done.append(ref)
        if before is not None:
            old = self.schedule.steps[before]
            done.append(self.ends[old.rank, old.block, old.index])
        yield nothing, replace(bare, after=tuple(done), posts=step.posts)


def _cut(spans: Sequence[Span], part: range) -> tuple[Span, ...]:
    return tuple(replace(span, start=span.start + part.start, count=len(part)) for span in spans)


def _taken_apart(schedule: Schedule, apart: Mapping[int, Apart]) -> Pieces:
    steps_anew = _Renumbering(schedule, apart)
    steps_anew.number()
    made = list(steps_anew.made())
    origin, chunks, steps = (tuple(column) for column in zip(*made, strict=True))
    return Pieces(replace(schedule, steps=steps), origin, chunks)

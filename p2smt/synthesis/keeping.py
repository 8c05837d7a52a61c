"""Where a rank keeps the values of a chunk, and how it makes the sums that it sends.

A value is the rank's own input of the chunk or what a message brought; a use is a message that it
sends, or its result.  Values that every later use takes together are added up at once, in place;
so a schedule whose ranks each keep one sum of a chunk needs no memory of its own.  Others are kept
apart until no use tells them apart.  A use of several that are still apart is made in the place of
one that has no other use, or in a place of its own.

A place is ``OWN`` (the input), ``FINAL`` (where the result must be), or a plane of scratch: 0, ..
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from p2smt.problems.schedule import Arrival

OWN, FINAL = -2, -1

Part = Arrival | None
"""A value by name; None: the own input."""


@dataclass(frozen=True, slots=True)
class ChunkRoom:
    """What a rank has of a chunk before anything comes.

    final: whether a result is asked for.  shared: its place is that of the input.
    clobbers: whether the input may be overwritten.
    """

    own: bool
    final: bool
    shared: bool
    clobbers: bool


@dataclass(frozen=True, slots=True)
class ValueUse:
    """A sum made before the sends of step ``time``; after the last step it is the result."""

    time: int
    parts: frozenset[Part]


@dataclass(frozen=True, slots=True)
class LocalMove:
    """One place is copied to another, or added to it, before the sends of step ``time``."""

    time: int
    source: int
    target: int
    adds: bool


@dataclass(frozen=True, slots=True)
class KeptChunk:
    """How a rank deals with a chunk.

    moves: in their order.  sums: where each use finds its sum.  landed: where each arrival goes,
    and whether it is added to what is there.
    """

    moves: tuple[LocalMove, ...]
    sums: dict[ValueUse, int]
    landed: dict[Arrival, tuple[int, bool]]


def kept(
    room: ChunkRoom, arrivals: Sequence[Arrival], uses: Sequence[ValueUse], end: int
) -> KeptChunk:
    """Where everything goes; ``end``: the number of steps.  Every arrival has a use after it."""
    if not room.own and len(arrivals) == 1:
        place = FINAL if room.final else 0
        return KeptChunk((), dict.fromkeys(uses, place), {arrivals[0]: (place, False)})
    came: dict[int, list[Arrival]] = defaultdict(list)
    for arrival in sorted(arrivals):
        came[arrival.step].append(arrival)
    keeper = _Keeper(room, tuple(dict.fromkeys(uses)), end)
    keeper.begin([arrival for step in sorted(came) for arrival in came[step]])
    for time in sorted({use.time for use in uses} | set(came)):
        keeper.serve(time)
        for arrival in came.get(time, ()):
            keeper.land(arrival)
    return KeptChunk(tuple(keeper.moves), keeper.sums, keeper.landed)


@dataclass(eq=False, slots=True)
class _Held:
    """Values that were added up, the uses that they still have, and where the sum is."""

    parts: frozenset[Part]
    rest: frozenset[int]
    place: int


@dataclass(slots=True)
class _Keeper:
    """Goes through the steps; used only while a chunk's places are found."""

    room: ChunkRoom
    uses: tuple[ValueUse, ...]
    end: int
    held: list[_Held] = field(default_factory=list)
    waiting: list[Arrival] = field(default_factory=list)
    moves: list[LocalMove] = field(default_factory=list)
    sums: dict[ValueUse, int] = field(default_factory=dict)
    landed: dict[Arrival, tuple[int, bool]] = field(default_factory=dict)

    def begin(self, arrivals: list[Arrival]) -> None:
        """The own input is there, the arrivals are to come."""
        self.waiting = arrivals
        rest = self._uses_of(None)
        if self.room.own and rest:
            place = FINAL if self.room.shared else OWN
            self.held.append(_Held(frozenset((None,)), rest, place))

    def serve(self, time: int) -> None:
        """Makes the sums of the uses at a time; what has no other use is forgotten."""
        due = [n for n, use in enumerate(self.uses) if use.time == time]
        if not due:
            return
        self._add_up_what_stays_together(time)
        made: list[int] = []
        for number in due:
            self.sums[self.uses[number]] = self._sum(number, made)
        if time == self.end:
            self._bring_home(self.uses[due[0]])
        for held in self.held:
            held.rest -= frozenset(due)
        self.held = [held for held in self.held if held.rest]

    def land(self, arrival: Arrival) -> None:
        """Adds an arrival to what has the same uses, or finds a place for it."""
        self.waiting.remove(arrival)
        rest, part = self._uses_of(arrival), frozenset((arrival,))
        for held in self.held:
            if held.rest == rest and self._writable(held):
                held.parts |= part
                self.landed[arrival] = held.place, True
                return
        place = self._place(rest, arrival.step)
        self.held.append(_Held(part, rest, place))
        self.landed[arrival] = place, False

    def _add_up_what_stays_together(self, time: int) -> None:
        groups: dict[frozenset[int], list[_Held]] = defaultdict(list)
        for held in self.held:
            groups[held.rest].append(held)
        for group in groups.values():
            if len(group) > 1:
                target = min(
                    group, key=lambda held: (not self._writable(held), held.place != FINAL)
                )
                for other in group:
                    if other is not target:
                        self._move(time, other.place, target.place, adds=True)
                        target.parts |= other.parts
                        self.held.remove(other)

    def _sum(self, number: int, made: list[int]) -> int:
        """Where the sum of a use is; ``made``: places of sums that are only for this time."""
        use = self.uses[number]
        members = [held for held in self.held if held.parts <= use.parts]
        if len(members) == 1:
            return members[0].place
        spare = [held for held in members if held.rest == {number} and self._writable(held)]
        if spare:
            place = spare[0].place
        else:
            place = self._place(frozenset((number,)), use.time, made)
            made.append(place)
            self._move(use.time, members[0].place, place, adds=False)
        for held in members:
            if held is not (spare or members)[0]:
                self._move(use.time, held.place, place, adds=True)
        return place

    def _bring_home(self, result: ValueUse) -> None:
        """The result to where it must be."""
        place = self.sums[result]
        if place != FINAL:
            self._move(self.end, place, FINAL, adds=False)

    def _move(self, time: int, source: int, target: int, *, adds: bool) -> None:
        self.moves.append(LocalMove(time, source, target, adds))

    def _uses_of(self, part: Part) -> frozenset[int]:
        return frozenset(n for n, use in enumerate(self.uses) if part in use.parts)

    def _writable(self, held: _Held) -> bool:
        return held.place != OWN or self.room.clobbers

    def _place(self, rest: frozenset[int], now: int, made: Iterable[int] = ()) -> int:
        """A free place for what has these uses, from the arrivals of step ``now`` on."""
        taken = {held.place for held in self.held} | set(made)
        last = max(self.uses[n].time for n in rest)
        if self.room.final and FINAL not in taken and self._final_is_free(now, last):
            return FINAL
        room = self.room
        if room.own and room.clobbers and not room.shared and OWN not in taken:
            return OWN
        return next(plane for plane in range(len(taken) + 1) if plane not in taken)

    def _final_is_free(self, now: int, last: int) -> bool:
        """Whether what stays until ``last`` is of the result, or gone before what comes for it."""
        if last == self.end:
            return True
        return not any(
            now <= other.step < last
            and self.end in {self.uses[n].time for n in self._uses_of(other)}
            for other in self.waiting
        )

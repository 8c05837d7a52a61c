"""What a device holds, each such content numbered once, and what a collective makes of a group's.

A content is a state matrix as one Python number (bit ``row * devices + c``: that row holds the
contribution of device c) with the device's count of non-empty rows on the *real* factors.  What
a collective does to a group depends on its members' contents alone, so it is worked out once for
each tuple of them.  This file states the effects a second time, on purpose: the checker
(``p2smt.programs.semantics``) shares no code with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from p2smt.collectives.demand import Chunks, Demand, Givers
from p2smt.errors import TooLarge

MAX_BITS = 1 << 32
"""Of all matrices of a table: half a GiB."""
Members = tuple[int, ...]
"""Contents of several devices, by number: those of a group's members, or a state."""


class Meeting(Enum):
    """What two members of a group can do together: the preconditions exclude each other.

    Reducing members have the same rows and no contribution in common, gathering ones have no row
    in common, and of a broadcast the first has all that the other has.
    """

    NONE = "none"
    REDUCE = "reduce"
    GATHER = "gather"
    BROADCAST = "broadcast"


@dataclass(frozen=True, slots=True)
class DeviceContent:
    """What a device holds: its matrix, the bit set of its non-empty rows, and their number.

    ``count`` is that number on the real factors.  ``whole``: each of its rows has all
    contributions.  ``done``: a device may end with it.
    """

    matrix: int
    rows: int
    size: int
    count: int
    whole: bool
    done: bool


@dataclass(slots=True)
class GroupEffect:
    """What a group makes together by ``meeting``: the content ``total``, and who has what of it.

    ``spread``: everyone has it.  ``rooted``: the first alone.  ``runs``: each member has its run of
    the rows (:meth:`DeviceContents.scattered`).  ``parts`` is the number of members by the sizes
    that count.
    """

    meeting: Meeting
    total: int
    parts: int
    spread: Members
    rooted: Members
    runs: Members | None = None


class DeviceContents:
    """The contents of one state space by number, and the effects on groups of them.

    Args:
        demand: start and goal.
        devices: how many rows and contributors a matrix has.

    Raises, wherever a content is new:
        TooLarge: all matrices together have more than MAX_BITS bits.
    """

    def __init__(self, demand: Demand, devices: int) -> None:
        self.demand, self.devices = demand, devices
        self.known: list[DeviceContent] = []
        self._row = (1 << devices) - 1
        self._most = MAX_BITS // devices**2
        self._ids: dict[tuple[int, int], int] = {}
        self._complete: dict[int, int] = {}
        self._splits: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
        self._meetings: dict[tuple[int, int], Meeting] = {}
        self._effects: dict[int, dict[Members, GroupEffect | None]] = defaultdict(dict)
        self._hopes: dict[Members, bool] = {}
        self.empty = self.number(0, 0, 0)

    def number(self, matrix: int, rows: int, count: int) -> int:
        """The number of a content; ``rows`` are the non-empty rows of its matrix."""
        key = matrix, count
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = len(self.known)
            if found > self._most:
                raise TooLarge(
                    f"states of {self.devices} devices",
                    f"have more than {self._most} different contents, {MAX_BITS >> 23} MiB",
                    "ask for a shorter length, or forbid a form",
                )
            size, whole = rows.bit_count(), bool(rows) and matrix == self.complete(rows)
            last = 1 if self.demand.goal.chunks is Chunks.ONE_EACH else self.devices
            self.known.append(
                DeviceContent(matrix, rows, size, count, whole, whole and size == last)
            )
        return found

    def complete(self, rows: int) -> int:
        """The matrix of these rows with all contributions."""
        if rows not in self._complete:
            every = range(self.devices)
            filled = (self._row << r * self.devices for r in every if rows >> r & 1)
            self._complete[rows] = sum(filled)
        return self._complete[rows]

    def start(self, rows: int, one: int) -> Members:
        """Every device's content at first: ``rows`` real rows, or ``one`` of a device's own."""
        k, held = self.devices, self.demand.start
        alone = held.chunks is Chunks.OWN
        found = []
        for d in range(k):
            filled = 1 << d if alone else self._row
            matrix = self.complete(filled)
            if held.givers is not Givers.EVERY:
                matrix &= sum(1 << r * k + d for r in range(k))
            found.append(self.number(matrix, filled, one if alone else rows))
        return tuple(found)

    def is_goal(self, state: Members) -> bool:
        """All ones, or one complete row on each device, another on each."""
        held, known = 0, self.known
        if not known[state[0]].done:
            return False
        for number in set(state):
            if not known[number].done:
                return False
            held |= known[number].rows
        return held == self._row

    def may_be_last(self, state: Sequence[int]) -> bool:
        """False only if no single step leads from a state to the goal.

        ``state`` is one, or the part of it that the first device's group has in some step.  The
        first device is the first member of its group in any step.  To one row each leads a
        reduce-scatter alone, since the others leave a device with none or two with the same: its
        members have one number of rows, and the other devices are done.  To all ones leads a
        broadcast (the first device is done), an all-reduce (its members have all rows, the other
        devices are done) or an all-gather (its members' rows are complete, the others are done).
        """
        known, first = self.known, self.known[state[0]]
        others = [known[number] for number in set(state)]
        if self.demand.goal.chunks is Chunks.ONE_EACH:
            split = first.size if first.size > 1 else 0
            return all(other.done or other.size == split for other in others)
        if first.done:
            return True
        whole = all_rows = True
        for other in others:
            whole = whole and other.whole
            all_rows = all_rows and other.size == self.devices
        return whole or all_rows

    def hopeful(self, members: Members, left: int) -> bool:
        """False only if the goal is out of reach in so many steps, seen from the first group."""
        if left > 1:
            return True
        if left == 0:
            return self.known[members[0]].done and self.known[members[-1]].done
        found = self._hopes.get(members)
        if found is None:
            found = self._hopes[members] = self.may_be_last(members)
        return found

    def meeting(self, one: int, other: int) -> Meeting:
        """What a group's first member and another one can do together."""
        key = one, other
        found = self._meetings.get(key)
        if found is None:
            found = self._meetings[key] = _meeting(self.known[one], self.known[other])
        return found

    def effect(self, members: Members, parts: int) -> GroupEffect | None:
        """What members make together, in the one way that they can; None if they cannot.

        ``parts`` is the number of members by the sizes that count.
        """
        known = self._effects[parts]
        try:
            return known[members]
        except KeyError:
            found = known[members] = self._effect(members, parts)
            return found

    def _effect(self, members: Members, parts: int) -> GroupEffect | None:
        meeting = self.meeting(members[0], members[1])
        total = self._total(meeting, members, parts)
        if total is None:
            return None
        rooted = (total,) + (self.empty,) * (len(members) - 1)
        return GroupEffect(meeting, total, parts, (total,) * len(members), rooted)

    def _total(self, meeting: Meeting, members: Members, parts: int) -> int | None:
        match meeting:
            case Meeting.REDUCE:
                return self._sum(members)
            case Meeting.GATHER:
                return self._gather(members, parts)
            case Meeting.BROADCAST:
                first, *others = members
                shown = all(self.meeting(first, other) is meeting for other in others)
                return first if shown else None
            case Meeting.NONE:
                return None

    def _sum(self, members: Members) -> int | None:
        """C1: the same rows, at least one, of disjoint contributions."""
        first, union = self.known[members[0]], 0
        if not first.rows:
            return None
        for number in members:
            content = self.known[number]
            same = content.rows == first.rows and content.count == first.count
            if not same or content.matrix & union:
                return None
            union |= content.matrix
        return self.number(union, first.rows, first.count)

    def _gather(self, members: Members, parts: int) -> int | None:
        """C3: as many rows each, at least one, none in common."""
        first, union, rows = self.known[members[0]], 0, 0
        for number in members:
            content = self.known[number]
            same = content.size == first.size and content.count == first.count
            if not content.rows or not same or content.rows & rows:
                return None
            union |= content.matrix
            rows |= content.rows
        return self.number(union, rows, first.count * parts)

    def scattered(self, effect: GroupEffect) -> Members | None:
        """C2: member i keeps the i-th run of a sum's rows; None where they do not divide."""
        if effect.runs is None:
            total, members = self.known[effect.total], len(effect.spread)
            if total.size % members or total.count % effect.parts:
                return None
            count = total.count // effect.parts
            effect.runs = tuple(
                self.number(total.matrix & mask, rows, count)
                for rows, mask in self._split(total.rows, members)
            )
        return effect.runs

    def _split(self, rows: int, members: int) -> tuple[tuple[int, int], ...]:
        """The runs of these rows in equal parts, and the bits of each in a matrix."""
        key = rows, members
        if key not in self._splits:
            held = [1 << r for r in range(self.devices) if rows >> r & 1]
            each = len(held) // members
            runs = [sum(held[at : at + each]) for at in range(0, len(held), each)]
            self._splits[key] = tuple((run, self.complete(run)) for run in runs)
        return self._splits[key]


def _meeting(one: DeviceContent, other: DeviceContent) -> Meeting:
    if one.matrix & other.matrix == other.matrix != one.matrix:
        return Meeting.BROADCAST
    if not one.rows or not other.rows or one.count != other.count:
        return Meeting.NONE
    if one.rows == other.rows:
        return Meeting.NONE if one.matrix & other.matrix else Meeting.REDUCE
    apart = one.size == other.size and not one.rows & other.rows
    return Meeting.GATHER if apart else Meeting.NONE

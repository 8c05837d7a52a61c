"""Breadth-first search of the states that instructions reach, for ``reachable.py``.

Model factors say on which devices the states live; ``sizes`` and ``rows`` are those by
which rows are counted: the real ones, or symbolic ones.  A state is the tuple of its devices'
contents, by number.

Three things make a step cheap, and none of them loses a program.

* The first device, position 0, is the first member of a group of every grouping, and that group's
  second member follows from ``inner`` alone.  What these two can do together is all that a grouping
  with that ``inner`` has to be tried for.
* A group of a grouping from ``outer`` contains groups of the one from ``outer + 1``, and what lets
  members reduce or gather holds of any two of them: where the smaller groups cannot, the larger
  ones cannot either.
* A state with one step left is dropped if no single step leads from it to the goal
  (:meth:`DeviceContents.may_be_last`), as soon as the first group shows it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from operator import attrgetter, itemgetter

from p2smt.collectives.demand import Chunks, Demand, Givers
from p2smt.collectives.names import Collective
from p2smt.errors import OutOfTimeError, TooLarge
from p2smt.problems.placement import InstructionSet
from p2smt.programs.program import Grouping, local_groups
from p2smt.result import StopWatch

# What a device holds, each such content numbered once, and what a collective makes of a group's.
# A content is a state matrix as one Python number (bit ``row * devices + c``: that row holds the
# contribution of device c) with the device's count of non-empty rows on the *real* factors.  What
# a collective does to a group depends on its members' contents alone, so it is worked out once for
# each tuple of them.  This file states the effects a second time, on purpose: the checker
# (``p2smt.programs.semantics``) shares no code with it.


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


MAX_NODES = 400_000
MAX_HELD = 1 << 25
"""Devices of all states together: each takes 8 bytes or more."""
GOAL = 0
OFTEN = 64
"""States between two looks at the watch."""

_After = Callable[[GroupEffect], Members | None]
_Taken = dict[Meeting, list[tuple[int, _After]]]


@dataclass(frozen=True, slots=True)
class StateSpace:
    """What a table is built from: model factors, and the sizes that count as real."""

    demand: Demand
    model: tuple[int, ...]
    sizes: tuple[int, ...]
    rows: int
    max_length: int
    instructions: InstructionSet
    forbidden: frozenset[int]


@dataclass(frozen=True, slots=True)
class RawArc:
    """An arc with the row counts of its groups, before they are turned into a payload."""

    instruction: int
    counts: tuple[int, ...]
    target: int


@dataclass(frozen=True, slots=True)
class RawTable:
    """Arcs on the way to the goal by source, in instruction order; how many states were met."""

    start: int
    arcs: dict[int, list[RawArc]]
    explored: int


@dataclass(frozen=True, slots=True)
class _Form:
    """A grouping on the model: its groups' members, and what picks their contents from a state.

    ``order`` puts the contents of all groups, one after the other, into device order; None where
    some devices are in no group.  ``parts`` is the size of a group by the sizes that count.
    ``taken`` are the instructions that members who meet so can take, with what these leave.
    """

    members: tuple[Members, ...]
    groups: tuple[Callable[[Members], Members], ...]
    order: Callable[[Sequence[int]], Members] | None
    parts: int
    taken: _Taken

    @staticmethod
    def of(space: StateSpace, grouping: Grouping, taken: _Taken) -> _Form:
        """The form of a grouping."""
        members = tuple(map(tuple, local_groups(space.model, grouping).tolist()))
        places = {device: at for at, device in enumerate(chain.from_iterable(members))}
        every = len(places) == math.prod(space.model)
        return _Form(
            members,
            tuple(itemgetter(*group) for group in members),
            itemgetter(*(places[device] for device in sorted(places))) if every else None,
            math.prod(space.sizes[grouping.outer : grouping.inner]),
            taken,
        )

    def after(self, state: Members, results: Sequence[Members]) -> Members:
        """The state with these contents of each group."""
        if self.order is not None:
            return self.order(tuple(chain.from_iterable(results)))
        changed = list(state)
        for group, contents in zip(self.members, results, strict=True):
            for device, content in zip(group, contents, strict=True):
                changed[device] = content
        return tuple(changed)


def _taken(numbers: Sequence[tuple[int, Collective]], contents: DeviceContents) -> _Taken:
    """Instructions by what members do together, with what they leave of its effect."""
    known: dict[Collective, tuple[Meeting, _After]] = {
        Collective.ALL_REDUCE: (Meeting.REDUCE, attrgetter("spread")),
        Collective.REDUCE_SCATTER: (Meeting.REDUCE, contents.scattered),
        Collective.ALL_GATHER: (Meeting.GATHER, attrgetter("spread")),
        Collective.REDUCE: (Meeting.REDUCE, attrgetter("rooted")),
        Collective.BROADCAST: (Meeting.BROADCAST, attrgetter("spread")),
    }
    found: _Taken = {meeting: [] for meeting in Meeting}
    for number, collective in numbers:
        meeting, after = known[collective]
        found[meeting].append((number, after))
    return found


class StateExplorer:
    """Breadth-first construction of a raw table."""

    def __init__(self, space: StateSpace, watch: StopWatch) -> None:
        self.space, self.watch = space, watch
        self.contents = DeviceContents(space.demand, math.prod(space.model))
        self.states: list[Members] = [(), ()]  # node 0 is the goal, node 1 the start
        self.index: dict[Members, int] = {}
        self.arcs: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.forms = _forms(space, self.contents)

    def build(self) -> RawTable:
        """Expand every depth below the length limit.

        Raises:
            OutOfTimeError: the watch expired.
            TooLarge: more than MAX_NODES states were reached.
        """
        space = self.space
        start = self.contents.start(space.rows, space.rows // math.prod(space.sizes))
        self.states[1] = start
        self.index[start] = 1
        layer = [1]
        for left in reversed(range(space.max_length)):
            layer = self._expand(layer, left)
        return RawTable(1, self._counted(), len(self.states) - 1)

    def _expand(self, layer: list[int], left: int) -> list[int]:
        """Apply every instruction to every node, ``left`` steps before the last; the new nodes."""
        new = len(self.states)
        for at, node in enumerate(layer):
            if at % OFTEN == 0 and self.watch.expired():
                raise OutOfTimeError
            state, steps = self.states[node], self.arcs[node]
            for number, form, results in self._steps(state, left):
                after = form.after(state, results)
                if self.contents.is_goal(after):
                    steps.append((number, GOAL))
                elif left > 1 or (left == 1 and self.contents.may_be_last(after)):
                    steps.append((number, self._node(after)))
        return list(range(new, len(self.states)))

    def _node(self, state: Members) -> int:
        node = self.index.get(state)
        if node is None:
            node = self.index[state] = len(self.states)
            self.states.append(state)
            most = min(MAX_NODES, MAX_HELD // len(state))
            if node > most:
                raise TooLarge(
                    f"programs of length {self.space.max_length} over {list(self.space.sizes)}",
                    f"reach more than {most} states",
                    "ask for a shorter length, or forbid a form",
                )
        return node

    def _steps(self, state: Members, left: int) -> Iterator[tuple[int, _Form, list[Members]]]:
        """Every instruction that a state allows, with the contents after it by group.

        Left out are those after which the first group shows that the goal is too far.
        """
        for second, chains in self.forms:
            meeting = self.contents.meeting(state[0], state[second])
            if meeting is not Meeting.NONE:
                for forms in chains:
                    yield from self._chain(state, forms, meeting, left)

    def _chain(
        self, state: Members, forms: Sequence[_Form], meeting: Meeting, left: int
    ) -> Iterator[tuple[int, _Form, list[Members]]]:
        """The steps of one chain of groupings, up to the first that cannot reduce or gather."""
        contents, pairwise = self.contents, meeting is not Meeting.BROADCAST
        for form in forms:
            first = contents.effect(form.groups[0](state), form.parts)
            if first is None:
                if pairwise:
                    return
                continue
            taken = [
                (number, after, result)
                for number, after in form.taken[meeting]
                if (result := after(first)) is not None and contents.hopeful(result, left)
            ]
            others = self._others(state, form, meeting) if taken else []
            if others is None:
                if pairwise:
                    return
                continue
            for number, after, result in taken:
                results = [result, *(r for e in others if (r := after(e)) is not None)]
                if len(results) == len(form.groups):
                    yield number, form, results

    def _others(self, state: Members, form: _Form, meeting: Meeting) -> list[GroupEffect] | None:
        """What the groups but the first make; None: some group cannot."""
        effects = []
        for group in form.groups[1:]:
            effect = self.contents.effect(group(state), form.parts)
            if effect is None or effect.meeting is not meeting:
                return None
            effects.append(effect)
        return effects

    def _counted(self) -> dict[int, list[RawArc]]:
        """The arcs on the way to the goal, in instruction order, with the rows of their groups."""
        kept = on_the_way(self.arcs)
        forms = _by_number(self.forms)
        known = self.contents.known
        found: dict[int, list[RawArc]] = {}
        for node in sorted(kept - {GOAL}):
            state, found[node] = self.states[node], []
            for number, target in sorted(self.arcs[node]):
                if target in kept:
                    form, times = forms[number]
                    rows = {known[state[group[0]]].count * times for group in form.members}
                    found[node].append(RawArc(number, tuple(sorted(rows)), target))
        return found


def on_the_way(arcs: Mapping[int, Sequence[tuple[int, int]]]) -> set[int]:
    """The nodes from which the goal is reached, and the goal."""
    back = defaultdict(list)
    for node, steps in arcs.items():
        for _, target in steps:
            back[target].append(node)
    kept, frontier = {GOAL}, [GOAL]
    for node in frontier:
        for source in back[node]:
            if source not in kept:
                kept.add(source)
                frontier.append(source)
    return kept


def _forms(
    space: StateSpace, contents: DeviceContents
) -> list[tuple[int, tuple[list[_Form], ...]]]:
    """By inner end: the second member of the first device's group, and two chains of groupings.

    A chain begins with the innermost ``outer``; one has no masters, the other masters alone.
    """
    numbers: dict[Grouping, list[tuple[int, Collective]]] = defaultdict(list)
    for number, (collective, grouping) in enumerate(space.instructions.items):
        if number not in space.forbidden and isinstance(collective, Collective):
            numbers[grouping].append((number, collective))
    ordered = sorted(numbers, key=lambda grouping: -grouping.outer)
    found = []
    for inner in sorted({grouping.inner for grouping in numbers}):
        chains = tuple(
            [
                _Form.of(space, grouping, _taken(numbers[grouping], contents))
                for grouping in ordered
                if (grouping.inner, grouping.master) == (inner, master)
            ]
            for master in (False, True)
        )
        found.append((math.prod(space.model[inner:]), chains))
    return found


def _by_number(
    forms: Sequence[tuple[int, tuple[list[_Form], ...]]],
) -> dict[int, tuple[_Form, int]]:
    """The form of each instruction, and how many times a member's rows its payload has."""
    return {
        number: (form, form.parts if meeting is Meeting.GATHER else 1)
        for _, chains in forms
        for form in chain.from_iterable(chains)
        for meeting, taken in form.taken.items()
        for number, _ in taken
    }

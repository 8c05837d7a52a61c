"""Breadth-first search of the states that instructions reach, for ``reachable.py``.

Model factors say on which devices the states live; ``sizes`` and ``rows`` are those by
which rows are counted: the real ones, or symbolic ones.  A state is the tuple of its devices'
contents, by number (``reachable_contents.py``).

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
from itertools import chain
from operator import attrgetter, itemgetter

from p2smt.collectives.demand import Demand
from p2smt.collectives.names import Collective
from p2smt.encodings.program.reachable_contents import DeviceContents, GroupEffect, Meeting, Members
from p2smt.errors import OutOfTimeError, TooLarge
from p2smt.problems.program import InstructionSet
from p2smt.programs.program import Grouping, local_groups
from p2smt.result import StopWatch

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
        if number not in space.forbidden:
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

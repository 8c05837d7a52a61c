"""Every program of a request over so many levels, for all sizes at once, by breadth-first search.

Each word of instructions ends in one of three ways: a step that no sizes allow, the goal, or an
open arc, a step that the reasoning does not settle (``open_arcs.py``).  Where the first and the
last row alone cannot reach the goal in the steps that are left, a word is given up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from experiments.small_model.diagrams import Node
from experiments.small_model.equality_types import Formula, Where
from experiments.small_model.row_classes import State, Steps
from experiments.small_model.symbolic_state import Broken, Undecided
from p2smt.collectives.names import Collective, RequestKind

Word = tuple[int, ...]
GOAL = None
_LOOK_AHEAD = 2
"""With so many steps left, the first and last row are asked whether they can reach the goal."""


@dataclass(frozen=True, slots=True)
class Arc:
    """A step that all sizes allow, and the state after it (None: the goal)."""

    instruction: int
    target: State | None


@dataclass(frozen=True, slots=True)
class OpenArc:
    """A step that the reasoning does not settle, and why."""

    state: State
    instruction: int
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """All that a search found: useful and useless arcs of each state, and the open ones."""

    steps: Steps
    length: int
    arcs: Mapping[State, tuple[Arc, ...]]
    open_arcs: tuple[OpenArc, ...]
    depth: int
    """How many steps lead to the last new state."""
    finished: bool
    """Whether all steps of all states were looked at and settled, whatever steps were left after
    them: longer words lead to no others."""

    def counts(self) -> dict[int, int]:
        """The number of programs by length, those through open arcs left out."""
        found: Counter[int] = Counter()
        paths = {self.steps.beginning: 1}
        for length in range(1, self.length + 1):
            after: Counter[State] = Counter()
            for state, many in paths.items():
                for arc in self.arcs.get(state, ()):
                    if arc.target is GOAL:
                        found[length] += many
                    else:
                        after[arc.target] += many
            paths = dict(after)
        return dict(found)

    def programs(self) -> Iterator[Word]:
        """All programs, those through open arcs left out, by instruction numbers."""
        words: list[tuple[State, Word]] = [(self.steps.beginning, ())]
        for _ in range(self.length):
            after: list[tuple[State, Word]] = []
            for state, word in words:
                for arc in self.arcs.get(state, ()):
                    longer = (*word, arc.instruction)
                    if arc.target is GOAL:
                        yield longer
                    else:
                        after.append((arc.target, longer))
            words = after


class CornerSearch:
    """Whether the first and the last row can reach the goal, whatever the sizes."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self._alive: dict[tuple[Node, int], bool] = {}
        self._possible: dict[Node, tuple[int, ...]] = {}

    def alive(self, corners: Node, left: int) -> bool:
        """False: on no sizes do at most so many steps lead both rows to the goal."""
        key = (corners, left)
        if key not in self._alive:
            self._alive[key] = self._found(corners, left)
        return self._alive[key]

    def _found(self, corners: Node, left: int) -> bool:
        try:
            if self.steps.corners_done(corners):
                return True
            return left > 0 and any(self._continued(corners, left))
        except Undecided:
            return True

    def _continued(self, corners: Node, left: int) -> Iterator[bool]:
        last = self._last(corners) if left == 1 else frozenset(Collective)
        for instruction in self.possible(corners):
            if self.steps.instructions[instruction][0] in last:
                after = self.steps.corner_step(corners, instruction)
                if after is not None and after != corners:
                    yield self.alive(after, left - 1)

    def possible(self, corners: Node) -> tuple[int, ...]:
        """The instructions that the first device and one neighbour do not refuse on all sizes.

        The device whose only non-zero digit is at the last level of a slice is in the first
        device's group, whatever the first level of the slice and whoever else takes part.
        """
        if corners not in self._possible:
            allowed = {
                inner: self._allowed(corners, inner) for inner in range(1, self.steps.levels + 1)
            }
            self._possible[corners] = tuple(
                number
                for number, (collective, grouping) in enumerate(self.steps.instructions)
                if collective in allowed[grouping.inner]
            )
        return self._possible[corners]

    def _allowed(self, corners: Node, inner: int) -> frozenset[Collective]:
        try:
            rows = self.steps.rows(corners)
        except Undecided:
            return frozenset(Collective)
        where = tuple(
            Where.NEXT if level == inner - 1 else Where.FIRST for level in range(self.steps.levels)
        )

        def refused(formula: Formula, *relations: Node) -> bool:
            return self.steps.broken(formula, relations, where) is Broken.EVERYWHERE

        found = set(Collective)
        if refused(_BOTH_HOLD_ROW, rows, rows):
            found.remove(Collective.ALL_GATHER)
        if refused(_NOT_FROM_FIRST, corners, corners):
            found.remove(Collective.BROADCAST)
        if (
            refused(_ONE_LACKS_ROW, rows, rows)
            or refused(_OTHER_LACKS_ROW, rows, rows)
            or refused(_TWICE, corners, corners)
        ):
            found -= {Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.REDUCE}
        return frozenset(found)

    def _last(self, corners: Node) -> frozenset[Collective]:
        """The collectives that one step before the goal may be."""
        steps = self.steps
        if steps.request is RequestKind.REDUCE_SCATTER:
            return frozenset({Collective.REDUCE_SCATTER})
        found, rows = set(), steps.rows(corners)
        first = (Where.FIRST,) * steps.levels
        wanted = steps.corner_rows
        if steps.broken(_FIRST_LACKS, (wanted, corners), first) is not Broken.EVERYWHERE:
            found.add(Collective.BROADCAST)
        if steps.broken(_ROW_LACKS, (wanted, rows)) is not Broken.EVERYWHERE:
            found.add(Collective.ALL_REDUCE)
        if steps.broken(_ROW_IN_PART, (rows, corners)) is not Broken.EVERYWHERE:
            found.add(Collective.ALL_GATHER)
        return frozenset(found)


_BOTH_HOLD_ROW = Formula(("du", "eu"), (), "")
_NOT_FROM_FIRST = Formula(("euc",), ("duc",), "")
_ONE_LACKS_ROW = Formula(("du",), ("eu",), "")
_OTHER_LACKS_ROW = Formula(("eu",), ("du",), "")
_TWICE = Formula(("duc", "euc"), (), "")
_FIRST_LACKS = Formula(("duc",), ("duc",), "")
_ROW_LACKS = Formula(("duc",), ("du",), "")
_ROW_IN_PART = Formula(("du",), ("duc",), "")


@dataclass(slots=True)
class _Search:
    steps: Steps
    length: int
    corners: CornerSearch
    arcs: dict[State, tuple[Arc, ...]] = field(default_factory=dict)
    open_arcs: list[OpenArc] = field(default_factory=list)
    given_up: int = 0

    def layer(self, states: list[State], left: int, seen: set[State]) -> list[State]:
        """The arcs of some states, with so many steps left after them; the states that are new."""
        new = []
        for state in states:
            self.arcs[state] = tuple(self._arcs(state, left))
            for arc in self.arcs[state]:
                if arc.target is not GOAL and arc.target not in seen:
                    seen.add(arc.target)
                    new.append(arc.target)
        return new

    def _arcs(self, state: State, left: int) -> Iterator[Arc]:
        for instruction in self.corners.possible(state.corners):
            try:
                after = self.steps.next(state, instruction)
                if after is None or not self._worth(after, left):
                    continue
                yield Arc(instruction, GOAL if self.steps.done(after) else after)
            except Undecided as reason:
                if corners_go_on(self.corners, state, instruction, left):
                    self.open_arcs.append(OpenArc(state, instruction, str(reason)))
                else:
                    self.given_up += 1

    def _worth(self, state: State, left: int) -> bool:
        return left > _LOOK_AHEAD or self.corners.alive(state.corners, left)


def corners_go_on(corners: CornerSearch, state: State, instruction: int, left: int) -> bool:
    """Whether the first and last row allow a step, and the goal at most ``left`` steps after it."""
    try:
        after = corners.steps.corner_step(state.corners, instruction)
    except Undecided:
        return True
    return after is not None and corners.alive(after, left)


def search(levels: int, request: RequestKind, length: int) -> Found:
    """All programs of at most so many instructions over so many levels, for all sizes."""
    steps = Steps(levels, request)
    work = _Search(steps, length, CornerSearch(steps))
    states, seen, depth = [steps.beginning], {steps.beginning}, 0
    for step in range(length):
        if not states:
            break
        depth = step
        states = work.layer(states, length - step - 1, seen)
    open_arcs = tuple(work.open_arcs)
    all_seen = not states and length - depth - 1 > _LOOK_AHEAD and not work.given_up
    return Found(steps, length, work.arcs, open_arcs, depth, finished=all_seen and not open_arcs)

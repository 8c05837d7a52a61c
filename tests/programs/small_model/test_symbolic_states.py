"""States of all sizes at once (experiments/small_model) against state matrices on given sizes.

Pairs of a symbolic and a concrete state, by every word of instructions, dead ends included: where
the reasoning settles a step it settles it as the semantics do, and rows held alike are as many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from experiments.small_model.diagrams import EMPTY, Node
from experiments.small_model.equality_types import Formula, Where, number_of, type_of
from experiments.small_model.row_classes import Span, State, Steps
from experiments.small_model.search import CornerSearch
from experiments.small_model.symbolic_state import Hierarchies, Undecided, kept
from p2smt.collectives.names import Collective, RequestKind
from tests.programs.small_model.systems import DEAD, System, contents, system

REDUCE, SCATTER, GATHER = (
    RequestKind.ALL_REDUCE,
    RequestKind.REDUCE_SCATTER,
    RequestKind.ALL_GATHER,
)
Bits = npt.NDArray[np.bool_]
SIZES = ((2, 2), (3, 2), (2, 3), (4, 5), (2, 2, 2), (3, 2, 2), (2, 3, 2), (2, 2, 3), (4, 2, 3))
MORE = ((3, 3, 3), (2, 2, 2, 2), (2, 3, 2, 2), (3, 2, 2, 3))


@dataclass
class Sizes:
    """Relations of a store on given sizes."""

    steps: Steps
    factors: tuple[int, ...]
    known: dict[tuple[Node, int], Bits] = field(default_factory=dict)

    def array(self, node: Node, level: int = 0) -> Bits:
        """[device, row, contribution] of the levels from this one on."""
        if (node, level) not in self.known:
            self.known[node, level] = self._array(node, level)
        return self.known[node, level]

    def _array(self, node: Node, level: int) -> Bits:
        below = int(np.prod(self.factors[level:], dtype=int))
        if node == EMPTY or level == len(self.factors):
            return np.full((below,) * 3, node != EMPTY)
        n = self.factors[level]
        rest = below // n
        found = np.zeros((n, rest, n, rest, n, rest), dtype=bool)
        for d, u, c in product(range(n), repeat=3):
            child = self.steps.diagrams.children[node][number_of(type_of((d, u, c)))]
            found[d, :, u, :, c, :] = self.array(child, level + 1)
        return found.reshape((below,) * 3)

    def devices(self, span: Span) -> list[int]:
        """The devices of a class, by their last digit that is not zero."""
        every = enumerate(product(*map(range, self.factors)))
        last = {n: max((i for i, x in enumerate(d) if x), default=0) for n, d in every}
        return [n for n, level in last.items() if span.begin <= level < span.end]


def alike(state: State, sizes: Sizes, real: Bits) -> bool:
    """Whether in each class as many rows are held in each way."""
    for span in state.spans:
        devices = sizes.devices(span)
        ours, theirs = (
            Counter(row.tobytes() for row in one[devices].transpose(1, 0, 2))
            for one in (sizes.array(span.content), real)
        )
        if ours != theirs:
            return False
    return True


@cache
def reachable(one: System, at: int, left: int) -> bool:
    """Whether at most so many steps lead to the goal."""
    if one.goal(at) or left == 0:
        return one.goal(at)
    after = (one.step(at, i) for i in range(len(one.steps)))
    return any(to != DEAD and reachable(one, to, left - 1) for to in after)


@dataclass
class Pairs:
    """A walk through pairs of a symbolic and a concrete state."""

    steps: Steps
    concrete: System
    length: int
    judged: int = 0
    undecided: int = 0
    given_up: int = 0

    def __post_init__(self) -> None:
        self.corners = CornerSearch(self.steps)
        self.sizes = Sizes(self.steps, self.concrete.factors)

    def wrong(self) -> Iterator[str]:
        """What the symbolic state says and the concrete one does not."""
        layer = {(self.steps.beginning, 0)}
        seen = set(layer)
        for step in range(self.length):
            found: set[tuple[State, int]] = set()
            for state, at in layer:
                yield from self._wrong(state, at, self.length - step - 1, found)
            layer = found - seen
            seen |= found

    def _wrong(
        self, state: State, at: int, left: int, found: set[tuple[State, int]]
    ) -> Iterator[str]:
        possible = set(self.corners.possible(state.corners))
        for i in range(len(self.steps.instructions)):
            to = self.concrete.step(at, i)
            if to != DEAD and i not in possible:
                yield f"{i} is possible"
            try:
                after = self.steps.next(state, i)
                done = after is not None and self.steps.done(after)
            except Undecided:
                self.undecided += 1
                continue
            self.judged += 1
            if (after is None) != (to == DEAD):
                yield f"{i} is {'not ' * (to == DEAD)}allowed"
            elif after is not None:
                yield from self._differ(after, to, done, left)
                if not done:
                    found.add((after, to))

    def _differ(self, after: State, to: int, done: bool, left: int) -> Iterator[str]:
        if done != self.concrete.goal(to):
            yield "the goal differs"
        real = contents(self.concrete, to)
        if not alike(after, self.sizes, real):
            yield "rows differ"
        ends = [0, -1]
        if (self.sizes.array(after.corners)[:, ends] != real[:, ends]).any():
            yield "the first or the last row differs"
        if not self.corners.alive(after.corners, left):
            self.given_up += 1
            if reachable(self.concrete, to, left):
                yield "a word was given up that leads to the goal"


def walk(factors: tuple[int, ...], kind: RequestKind, length: int) -> tuple[Pairs, list[str]]:
    pairs = Pairs(Steps(len(factors), kind), system(kind, factors), length)
    return pairs, list(pairs.wrong())


@pytest.mark.parametrize("kind", [REDUCE, SCATTER, GATHER])
@pytest.mark.parametrize(
    ("factors", "length"),
    [
        ((4, 5), 6),
        ((3, 2, 2), 3),
        *(pytest.param(factors, 6, marks=pytest.mark.exhaustive) for factors in SIZES),
        *(pytest.param(factors, 4, marks=pytest.mark.evidence) for factors in MORE),
    ],
)
def test_symbolic_states_are_those_of_the_semantics(
    factors: tuple[int, ...], kind: RequestKind, length: int
) -> None:
    pairs, wrong = walk(factors, kind, length)
    assert wrong == []
    assert pairs.judged > 20 * pairs.undecided
    assert pairs.given_up


def first_row_for_the_last(self: Hierarchies, corners: Node, instruction: int) -> Node | None:
    """The last row goes to the first member, as the first does."""
    new = self.after(corners, instruction) if kept(self.row_rules(corners, instruction)) else None
    if new and self.instructions[instruction][0] is Collective.REDUCE_SCATTER:
        where = self.where[instruction]
        keep = tuple(Where.FIRST if w is Where.VARIES else Where.ANY for w in where)
        union = self.find(Formula(("euc",), (), "duc"), (corners,), where)
        return self.diagrams.solve(Formula(("duc",), (), "duc"), keep, (union,))
    return new


@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (Steps, "corner_step", first_row_for_the_last),
        (Steps, "_like_rows", lambda *_: None),
        (Steps, "rows_alike", lambda *_: True),
        (Steps, "_complete_before", lambda *_: True),
        (CornerSearch, "alive", lambda *_: False),
        (CornerSearch, "possible", lambda *_: ()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_is_found(
    monkeypatch: pytest.MonkeyPatch, where: type, name: str, mutant: Callable[..., object]
) -> None:
    monkeypatch.setattr(where, name, mutant)
    wrong = Pairs(Steps(3, REDUCE), system(REDUCE, (2, 2, 2)), 4).wrong()
    assert next(wrong, None) is not None

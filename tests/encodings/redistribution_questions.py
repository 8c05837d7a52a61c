"""Small questions about redistributions with prices made up at random, and their answers."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from p2smt.problems.redistribution import (
    ExactMove,
    Move,
    MoveRow,
    Moves,
    RedistributionProblem,
)
from p2smt.resharding.endpoints import Ends
from p2smt.resharding.layered import places_of
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.steps import ArrayStep, MemoryLimit, StepKind, leads
from p2smt.resharding.types import ElementType, Mesh, SubAxis
from tests.oracles.redistributions import all_states, best_cost

MOVES = {
    StepKind.SLICE: Move.SLICE,
    StepKind.ALL_GATHER: Move.GATHER,
    StepKind.ALL_TO_ALL: Move.ALL_TO_ALL,
    StepKind.PERMUTE: Move.PERMUTE,
    StepKind.REDUCE_SCATTER: Move.REDUCE_SCATTER,
    StepKind.ALL_REDUCE: Move.ALL_REDUCE,
}
ANY_SIZE = MemoryLimit(2**40)
Columns = tuple[Move, tuple[int, ...], tuple[int, ...], bool, bool]
"""Kind, moved digits by class, sharding ones by size, order of devices, pack buffer."""


def frame_of(sizes: Iterable[int], shape: tuple[int, ...], orders: int = 1) -> Frame:
    """A frame with an axis for each digit; a second order of devices is the reverse."""
    mesh = Mesh.of([(f"a{q}", size) for q, size in enumerate(sizes)])
    digits = tuple(SubAxis(q, 1, size) for q, size in enumerate(sizes))
    devices = (mesh.devices, tuple(reversed(mesh.devices)))[:orders]
    return Frame(mesh, digits, devices, shape, ElementType.I8)


@dataclass(frozen=True)
class Asked:
    """A question with made-up ticks: ``ticks`` by the columns of a row; what is absent is barred.

    ``dearer`` are exact costs by step.  ``packs``: rows tell a gather with a buffer from another.
    """

    frame: Frame
    source: ArrayState
    target: ArrayState
    classes: tuple[int, ...]
    ticks: dict[Columns, int]
    max_steps: int
    dearer: dict[ArrayStep, int]
    packs: bool = False

    def columns(self, step: ArrayStep) -> Columns:
        """The columns of the row that a step has."""
        move = MOVES[step.kind]
        if step.before.order != step.after.order:
            move = Move.TURN
        moved = [self.classes[q] for q in step.moved]
        sizes = [self.frame.sizes[q] for q in step.before.sharding]
        counted = tuple(moved.count(name) for name in sorted(set(self.classes)))
        sharding = tuple(sizes.count(size) for size in sorted(set(self.frame.sizes)))
        return move, counted, sharding, bool(step.before.order), self._packed(step)

    def _packed(self, step: ArrayStep) -> bool:
        if not self.packs or step.kind not in (StepKind.ALL_GATHER, StepKind.REDUCE_SCATTER):
            return False
        if step.kind is StepKind.ALL_GATHER:
            return not leads(self.frame, step.before, step.lost)
        return not leads(self.frame, step.after, step.gained)

    def price(self, step: ArrayStep) -> float:
        """Ticks of a step; infinite if it is barred."""
        found = self.ticks.get(self.columns(step), float("inf"))
        return max(found, self.dearer.get(step, 0))

    def least(self) -> int | None:
        """The least cost by brute force, None if there is no answer."""
        ends = Ends(self.frame, self.source, self.target)
        found = best_cost(ends, self.price, ANY_SIZE, self.max_steps)
        return None if found is None or found == float("inf") else int(found)

    def problem(self) -> RedistributionProblem:
        """The problem that the solvers get."""
        count = len(self.frame.sizes)
        rows = tuple(
            MoveRow(*columns, first=True, later=True, price=t) for columns, t in self.ticks.items()
        )
        return RedistributionProblem(
            self.frame.sizes,
            self.classes,
            self.frame.shape,
            places_of(self.source, count),
            places_of(self.target, count),
            self.max_steps,
            rows,
            exact=tuple(self._exact(step, ticks) for step, ticks in self.dearer.items()),
            turns=self.source.order != self.target.order,
            packs=self.packs,
        )

    def _exact(self, step: ArrayStep, ticks: int) -> ExactMove:
        count = len(self.frame.sizes)
        before, after = places_of(step.before, count), places_of(step.after, count)
        move, _, _, turned, _ = self.columns(step)
        return ExactMove(move, turned, before, after, ticks)

    def cost(self, steps: tuple[ArrayStep, ...]) -> float:
        """Ticks of steps."""
        return sum(map(self.price, steps))


def random_question(seed: int, *, packs: bool = False, digits: int = 3) -> Asked:
    """A question whose every price is drawn; slices cost nothing, as everywhere."""
    draw = random.Random(seed)
    sizes = tuple(draw.choice((2, 2, 3)) for _ in range(draw.randint(2, digits)))
    shape = draw.choice(((12, 12), (6, 36), (36,), (1, 36), (2, 12)))
    frame = frame_of(sizes, shape, draw.choice((1, 1, 1, 2)))
    classes = tuple(range(len(sizes)))
    if draw.random() < 0.5:
        classes = tuple(sorted(set(sizes)).index(size) for size in sizes)
    states = all_states(frame, draw.choice(((), (0,), (0, 1))))
    source = draw.choice([s for s in states if s.order == 0])
    last = len(frame.orders) - 1
    target = draw.choice(
        [s for s in states if s.order == last and set(s.partial) <= set(source.partial)]
    )
    ticks = drawn_ticks(draw, frame, classes, packs)
    return Asked(frame, source, target, classes, ticks, draw.randint(1, 3), {}, packs)


def drawn_ticks(
    draw: random.Random, frame: Frame, classes: tuple[int, ...], packs: bool
) -> dict[Columns, int]:
    """Ticks for all columns; a buffer is never cheaper."""
    counts = [range(classes.count(name) + 1) for name in sorted(set(classes))]
    held = [range(frame.sizes.count(size) + 1) for size in sorted(set(frame.sizes))]
    found: dict[Columns, int] = {}
    for move in Move:
        for moved, sharding, turned in product(product(*counts), product(*held), (False, True)):
            ticks = 0 if move is Move.SLICE else draw.randint(1, 30)
            for packed in (False, True):
                pack = packs and move in (Move.GATHER, Move.REDUCE_SCATTER)
                if move is not Move.NOTHING and (pack or not packed):
                    found[move, moved, sharding, turned, packed] = ticks + 7 * packed
    return found


def is_answer(asked: Asked, moves: Moves, steps: tuple[ArrayStep, ...]) -> bool:
    """Whether the steps keep their rules and lead from source to target."""
    state = asked.source
    for step in steps:
        step.check(asked.frame)
        if step.before != state:
            return False
        state = step.after
    return state == asked.target and len(moves) == len(steps) <= asked.max_steps

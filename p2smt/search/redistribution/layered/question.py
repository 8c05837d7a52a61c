"""A redistribution in at most so many steps as a problem for the solvers, and its answer as steps.

Seconds become whole ticks, rounded down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from p2smt.arrays.state import ArrayState
from p2smt.arrays.steps import KINDS, ArrayStep, StepKind
from p2smt.problems.redistribution import (
    PARTIAL,
    REPLICATED,
    Border,
    ExactMove,
    Move,
    MoveRow,
    Moves,
    Places,
    RedistributionProblem,
)
from p2smt.search.redistribution.layered.outlook import outlook_of
from p2smt.search.redistribution.layered.rows import RowTable

RESOLUTION = 2**20
"""The cheapest step takes so many ticks."""

_KINDS: Mapping[Move, StepKind] = {
    Move.SLICE: StepKind.SLICE,
    Move.GATHER: StepKind.ALL_GATHER,
    Move.ALL_TO_ALL: StepKind.ALL_TO_ALL,
    Move.PERMUTE: StepKind.PERMUTE,
    Move.REDUCE_SCATTER: StepKind.REDUCE_SCATTER,
    Move.ALL_REDUCE: StepKind.ALL_REDUCE,
    Move.TURN: StepKind.PERMUTE,
}


class LayeredQuestion:
    """One question: ``problem`` to begin with, and the seconds of a tick."""

    def __init__(self, table: RowTable, max_steps: int) -> None:
        self.table, self.ends = table, table.ends
        rows = table.rows()
        least = min((row.seconds for row in rows if row.seconds > 0), default=1.0)
        self.tick_s = least / RESOLUTION
        frame = self.ends.frame
        problem = RedistributionProblem(
            frame.sizes,
            table.classes,
            frame.shape,
            places_of(self.ends.source, len(frame.digits)),
            places_of(self.ends.target, len(frame.digits)),
            max_steps,
            tuple(
                MoveRow(
                    row.move,
                    row.moved,
                    row.sharding,
                    row.turned,
                    row.packed,
                    row.first,
                    row.later,
                    self.ticks(row.seconds),
                )
                for row in rows
            ),
            borders=tuple(
                Border(
                    one.digits, one.turned, tuple((n, of, self.ticks(s)) for n, of, s in one.costs)
                )
                for one in table.borders()
            ),
            turns=self.ends.source.order != self.ends.target.order,
            merges=table.prices.one_permute_suffices,
            packs=table.memory.of_steps,
        )
        self.problem = replace(problem, outlook=outlook_of(problem))

    def ticks(self, seconds: float) -> int:
        """Whole ticks, rounded down."""
        return int(seconds / self.tick_s)

    def steps(self, moves: Moves) -> tuple[ArrayStep, ...]:
        """The steps of an answer."""
        found: list[ArrayStep] = []
        state = self.ends.source
        for move, places in moves:
            order = self.ends.target.order if move is Move.TURN else state.order
            after = state_at(places, len(self.ends.frame.shape), order)
            found.append(KINDS[_KINDS[move]](state, after))
            state = after
        return tuple(found)

    def exact(self, step: ArrayStep, seconds: float) -> ExactMove:
        """What a step costs, for the solver."""
        digits = len(self.ends.frame.digits)
        turned = step.before.order != self.ends.source.order
        return ExactMove(
            self.move(step),
            turned,
            places_of(step.before, digits),
            places_of(step.after, digits),
            self.ticks(seconds),
        )

    def move(self, step: ArrayStep) -> Move:
        """The kind of a step."""
        if step.before.order != step.after.order:
            return Move.TURN
        return next(move for move, kind in _KINDS.items() if kind is step.kind)


def places_of(state: ArrayState, digits: int) -> Places:
    """A state as places."""
    found = [REPLICATED] * digits
    for dim, held in enumerate(state.dims):
        for place, digit in enumerate(held):
            found[digit] = (dim, place)
    for digit in state.partial:
        found[digit] = PARTIAL
    return tuple(found)


def state_at(places: Sequence[tuple[int, int]], dims: int, order: int) -> ArrayState:
    """Places as a state."""
    lists: list[list[tuple[int, int]]] = [[] for _ in range(dims)]
    for digit, (dim, place) in enumerate(places):
        if dim >= 0:
            lists[dim].append((place, digit))
    partial = tuple(digit for digit, place in enumerate(places) if place == PARTIAL)
    held = tuple(tuple(digit for _, digit in sorted(one)) for one in lists)
    return ArrayState(held, partial, order)

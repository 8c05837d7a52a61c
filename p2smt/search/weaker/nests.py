"""The cheapest nest: levels are scattered, joined and gathered, in any blocks and any order.

A *nest* takes each level once from untouched to scattered (a reduce-scatter over a block of
neighbouring levels), or to done (an all-reduce over one), and the scattered ones to done (an
all-gather); blocks of gathers need not be those of scatters.  For a reduce-scatter request scatters
are enough, an all-gather starts scattered.  All of them are valid programs: what a device holds is
the part that is left by the scattered levels, summed over the done and the scattered ones.

What a step works on depends on which levels are scattered, and on nothing else.  So the cheapest
nest of at most so many steps is a shortest path through 3^levels states, in as many layers as
steps, at exact prices, whatever the library takes for each size.  Restrictions are obeyed: an
instruction may be forbidden, and steps across a level are counted in the state.

No other program is looked at: a nest is an answer where nothing better is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.loads.routing import FloatArray
from p2smt.cost.pipeline import chunk_counts
from p2smt.errors import TooLarge
from p2smt.parallelism.placement import IntArray
from p2smt.problems.program import Indices, ProgramProblem, StepLimit
from p2smt.programs.program import Grouping
from p2smt.search.programs import Priced, Task, price
from p2smt.search.programs_pipelined import SoughtProgram

Cost = Callable[[int, int], float]
"""Seconds of an instruction, by its index, with so many rows."""

_UNTOUCHED, _SCATTERED, _DONE = range(3)
_MOVES = {
    Collective.REDUCE_SCATTER: (_UNTOUCHED, _SCATTERED),
    Collective.ALL_REDUCE: (_UNTOUCHED, _DONE),
    Collective.ALL_GATHER: (_SCATTERED, _DONE),
}
_ENDS = {
    RequestKind.ALL_REDUCE: (_UNTOUCHED, _DONE),
    RequestKind.REDUCE_SCATTER: (_UNTOUCHED, _SCATTERED),
    RequestKind.ALL_GATHER: (_SCATTERED, _DONE),
}


def priced_nest(sought: SoughtProgram) -> Priced | None:
    """The cheapest nest on a scene, checked and re-costed; None: the restrictions allow none.

    In several chunks it is the one whose steps take least for one chunk, in the best number of
    chunks.  Where so long a program cannot be checked on so many devices, a shorter one.
    """
    found = [
        one
        for chunks in chunk_counts(sought.pipeline, sought.task.max_length)
        if (one := _in_chunks(sought, chunks)) is not None
    ]
    return min(found, key=lambda one: one.seconds, default=None)


def _in_chunks(sought: SoughtProgram, chunks: int) -> Priced | None:
    task, scene, items = sought.task, sought.scene, sought.task.items_on(sought.scene)

    def seconds(number: int, rows: int) -> float:
        payload = sought.payload_bytes * rows / task.hierarchy.size / chunks
        return scene.step_time(*items[number], payload).seconds

    for length in range(task.max_length, 0, -1):
        shorter: Task = replace(task, max_length=length)
        found = best_nest(shorter.problem(), seconds)
        if found is None:
            return None
        program = task.program(shorter.problem(), found[0])
        several = chunks if len(program) > 1 else 1
        try:
            return price(task, program, scene, sought.payload_bytes, several)
        except TooLarge:
            continue
    return None


def best_nest(problem: ProgramProblem, cost: Cost) -> tuple[Indices, float] | None:
    """The cheapest nest that the problem allows, the shortest of equal ones, and its seconds.

    None: the restrictions allow none.
    """
    ends = next(ends for kind, ends in _ENDS.items() if demand_of(kind) == problem.demand)
    return _Search(_Space(problem), cost).best(*ends)


@dataclass(frozen=True, slots=True)
class _Move:
    """An instruction as a step from states to states, ``by`` further in their numbers.

    ``sources`` are the states in which it can be taken, ``rows`` the payload in each.
    """

    instruction: int
    sources: IntArray
    by: int
    rows: IntArray


@dataclass(frozen=True)
class _Space:
    """States of all levels, one digit of base 3 each, times counts of limited steps."""

    problem: ProgramProblem

    @cached_property
    def _limits(self) -> tuple[StepLimit, ...]:
        """Those that a program of the greatest length could break."""
        length = self.problem.max_length
        return tuple(limit for limit in self.problem.limits if limit.at_most < length)

    @cached_property
    def _radices(self) -> tuple[int, ...]:
        return (*(3 for _ in self.problem.factors), *(one.at_most + 1 for one in self._limits))

    @cached_property
    def _strides(self) -> tuple[int, ...]:
        return tuple(math.prod(self._radices[i + 1 :]) for i in range(len(self._radices)))

    @property
    def size(self) -> int:
        """How many states there are."""
        return math.prod(self._radices)

    @cached_property
    def _digits(self) -> IntArray:
        every = np.arange(self.size)
        pairs = zip(self._strides, self._radices, strict=True)
        return np.stack([every // stride % radix for stride, radix in pairs])

    @cached_property
    def _rows(self) -> IntArray:
        """Rows that a device holds in each state."""
        levels = len(self.problem.factors)
        factors = np.array(self.problem.factors)[:, None]
        split = np.where(self._digits[:levels] == _SCATTERED, factors, 1)
        return np.asarray(self.problem.rows // split.prod(axis=0))

    def all_in(self, stage: int) -> IntArray:
        """States that have every level in a stage, those of fewer counted steps first."""
        levels = len(self.problem.factors)
        return np.flatnonzero((self._digits[:levels] == stage).all(axis=0))

    def moves(self) -> Iterator[_Move]:
        """Every step of every nest."""
        for number, (collective, grouping) in enumerate(self.problem.instructions.items):
            allowed = number not in self.problem.forbidden and not grouping.master
            if collective in _MOVES and allowed:
                yield self._move(number, collective, grouping)

    def _move(self, number: int, collective: Collective, grouping: Grouping) -> _Move:
        before, after = _MOVES[collective]
        levels, block = len(self.problem.factors), slice(grouping.outer, grouping.inner)
        can = (self._digits[block] == before).all(axis=0)
        by = (after - before) * sum(self._strides[block])
        for n, limit in enumerate(self._limits, start=levels):
            if number in limit.instructions:
                can &= self._digits[n] < self._radices[n] - 1
                by += self._strides[n]
        sources = np.flatnonzero(can)
        gathers = collective is Collective.ALL_GATHER
        return _Move(number, sources, by, self._rows[sources + by if gathers else sources])


@dataclass(frozen=True)
class _Search:
    """The shortest path through a space."""

    space: _Space
    cost: Cost

    def best(self, start: int, goal: int) -> tuple[Indices, float] | None:
        """The path from where every level is in one stage to where it is in another."""
        moves = [(move, self._seconds(move)) for move in self.space.moves()]
        goals, length = self.space.all_in(goal), self.space.problem.max_length
        reached = np.full(self.space.size, math.inf)
        reached[self.space.all_in(start)[0]] = 0.0
        layers: list[IntArray] = []
        found: tuple[float, int, int] | None = None
        for steps in range(1, length + 1):
            reached, chosen = _layer(reached, moves)
            layers.append(chosen)
            at = int(goals[reached[goals].argmin()])
            if reached[at] < (math.inf if found is None else found[0]):
                found = float(reached[at]), steps, at
        if found is None:
            return None
        seconds, steps, at = found
        return _path(layers[:steps], [move for move, _ in moves], at), seconds

    def _seconds(self, move: _Move) -> FloatArray:
        rows, where = np.unique(move.rows, return_inverse=True)
        return np.array([self.cost(move.instruction, int(n)) for n in rows])[where]


def _layer(
    reached: FloatArray, moves: list[tuple[_Move, FloatArray]]
) -> tuple[FloatArray, IntArray]:
    """One step more: the least seconds of each state, and the last move there."""
    after, chosen = np.full(len(reached), math.inf), np.full(len(reached), -1)
    for number, (move, seconds) in enumerate(moves):
        targets, total = move.sources + move.by, reached[move.sources] + seconds
        better = total < after[targets]
        after[targets[better]] = total[better]
        chosen[targets[better]] = number
    return after, chosen


def _path(layers: list[IntArray], moves: list[_Move], at: int) -> Indices:
    """The instructions of the path that ends in a state, backwards through the layers."""
    found: list[int] = []
    for chosen in reversed(layers):
        move = moves[chosen[at]]
        found.append(move.instruction)
        at -= move.by
    return tuple(reversed(found))

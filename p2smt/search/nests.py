"""The cheapest nest: levels are scattered, joined and gathered, in any blocks and any order.

A *nest* takes each level once from untouched to scattered (a reduce-scatter over a block of
neighbouring levels), or to done (an all-reduce over one), and the scattered ones to done (an
all-gather); blocks of gathers need not be those of scatters.  For a reduce-scatter request scatters
are enough, an all-gather starts scattered.  All of them are valid programs: what a device holds is
the part that is left by the scattered levels, summed over the done and the scattered ones.

What a step works on depends on which levels are scattered, and on nothing else.  So the cheapest
nest of at most so many steps is a shortest path through at most 3^levels states, in as many layers
as steps, at exact prices, whatever the library takes for each size.  Restrictions are obeyed: an
instruction may be forbidden, and steps across a level are counted in the state, if their limit can
bind.

No other program is looked at: a nest is an answer where nothing better is known.  It is also sought
where the time is over, so the search has a bound of its own, on states and on work, which no clock
moves.  Beyond it the cheapest of the known programs
(:mod:`p2smt.search.warm_start`) is taken, all of which are nests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Collective, ProgramOperation, RequestKind
from p2smt.cost.step_time import chunk_counts
from p2smt.errors import TooLarge
from p2smt.parallelism.placement import BoolArray, FloatArray, IntArray
from p2smt.problems.placement import Indices, ProgramProblem, StepLimit
from p2smt.search.program_synthesis import Priced, price
from p2smt.search.programs_pipelined import SoughtProgram
from p2smt.search.warm_start import Rows, known_payloads

MAX_STATES = 2**18
"""Most states of a search: eight levels without limits on steps have 6561."""
MAX_VISITS = 2**26
"""Most steps between states that are looked at, in all layers and for all numbers of chunks."""

Cost = Callable[[int, int], float]
"""Seconds of an instruction, by its index, with so many rows."""
_NO_STEPS = np.empty((3, 0), dtype=np.int64)
_Nest = tuple[Indices, float]

_UNTOUCHED, _SCATTERED, _DONE = range(3)
_MOVES: dict[ProgramOperation, tuple[int, int]] = {
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
    counts = chunk_counts(sought.pipeline, sought.task.max_length)
    nests = _nests(sought.task.problem(), len(counts))
    found = [one for chunks in counts if (one := _in_chunks(sought, nests, chunks)) is not None]
    return min(found, key=lambda one: one.seconds, default=None)


def _in_chunks(sought: SoughtProgram, nests: _Paths | _Known, chunks: int) -> Priced | None:
    task, scene, items = sought.task, sought.scene, sought.task.items_on(sought.scene)

    def seconds(number: int, rows: int) -> float:
        payload = sought.payload_bytes * rows / task.hierarchy.size / chunks
        return scene.step_time(*items[number], payload).seconds

    problem, left = task.problem(), nests.best_of_each_length(seconds)
    while left:
        indices, _ = _least(left)
        several = chunks if len(indices) > 1 else 1
        try:
            program = task.program(problem, indices)
            return price(task, program, scene, sought.payload_bytes, several)
        except TooLarge:
            left = [one for one in left if len(one[0]) < len(indices)]
    return None


def _least(nests: Sequence[_Nest]) -> _Nest:
    """The cheapest, the shortest of equal ones."""
    return min(nests, key=lambda one: (one[1], len(one[0])))


def _nests(problem: ProgramProblem, times: int) -> _Paths | _Known:
    """What is searched so many times, with other costs: all nests, or those that are known."""
    return _paths(_Space(problem), times) or _Known(tuple(known_payloads(problem)))


@dataclass(frozen=True, slots=True)
class _Known:
    """Known programs with the payload of each step."""

    programs: tuple[tuple[Indices, Rows], ...]

    def best_of_each_length(self, cost: Cost) -> list[_Nest]:
        """The cheapest with its seconds, of each number of steps that there is."""
        priced, best = cache(cost), dict[int, _Nest]()
        for program, rows in self.programs:
            seconds = sum(map(priced, program, rows))
            if len(program) not in best or seconds < best[len(program)][1]:
                best[len(program)] = program, seconds
        return list(best.values())


@dataclass(frozen=True, slots=True)
class _Move:
    """An instruction as a step between states, ``by`` further in their numbers.

    It takes the levels of a block out of the stage ``before``, and counts for these limits.
    """

    instruction: int
    block: slice
    before: int
    by: int
    limits: tuple[int, ...]


@dataclass(frozen=True)
class _Space:
    """States of all levels, one digit of base 3 each, and above them counts of limited steps.

    There are at most 8 levels, so as many limits that bind, each below 16: 64 bits hold a number.
    """

    problem: ProgramProblem

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The stages of every level at the start and at the goal."""
        demand = self.problem.demand
        return next(ends for kind, ends in _ENDS.items() if demand_of(kind) == demand)

    @cached_property
    def _usable(self) -> frozenset[int]:
        """The steps of nests that are not forbidden: none leaves the way from start to goal."""
        start, goal = self.ends
        return frozenset(
            number
            for number, (collective, grouping) in enumerate(self.problem.instructions.items)
            if collective in _MOVES and not grouping.master
            if start <= _MOVES[collective][0] and _MOVES[collective][1] <= goal
            if number not in self.problem.forbidden
        )

    @cached_property
    def _limited(self) -> tuple[StepLimit, ...]:
        """The limits, on the steps of nests alone."""
        limits = self.problem.limits
        return tuple(StepLimit(one.instructions & self._usable, one.at_most) for one in limits)

    @cached_property
    def length(self) -> int:
        """Most steps of a nest: a limit on all of them is one on the length."""
        whole = (one.at_most for one in self._limited if one.instructions == self._usable)
        return min((self.problem.max_length, *whole))

    @cached_property
    def limits(self) -> tuple[StepLimit, ...]:
        """The limits that nests could break, and that no other one implies."""
        open_ = [one for one in dict.fromkeys(self._limited) if one.at_most < self._most(one)]
        return tuple(one for one in open_ if not any(_implies(other, one) for other in open_))

    def _most(self, limit: StepLimit) -> int:
        """Most of these steps in a nest: each takes its outermost level a stage on, or two."""
        start, goal = self.ends
        items = self.problem.instructions.items
        outermost = {items[number][1].outer for number in limit.instructions}
        return min(self.length, len(outermost) * (goal - start))

    @cached_property
    def _level_strides(self) -> tuple[int, ...]:
        levels = len(self.problem.factors)
        return tuple(3 ** (levels - 1 - j) for j in range(levels))

    @cached_property
    def _count_strides(self) -> tuple[int, ...]:
        radices, above = [one.at_most + 1 for one in self.limits], 3 ** len(self.problem.factors)
        return tuple(above * math.prod(radices[n + 1 :]) for n in range(len(radices)))

    @property
    def start(self) -> int:
        """The state in which nothing was done."""
        return self.ends[0] * sum(self._level_strides)

    def at_goal(self, states: IntArray) -> IntArray:
        """Places of those that have every level at the goal, fewer counted steps first."""
        every = self.ends[1] * sum(self._level_strides)
        return np.flatnonzero(states % 3 ** len(self.problem.factors) == every)

    @cached_property
    def moves(self) -> tuple[_Move, ...]:
        """Every step of every nest."""
        return tuple(self._move(number) for number in sorted(self._usable))

    def _move(self, number: int) -> _Move:
        collective, grouping = self.problem.instructions.items[number]
        before, after = _MOVES[collective]
        block = slice(grouping.outer, grouping.inner)
        counted = [n for n, one in enumerate(self.limits) if number in one.instructions]
        by = (after - before) * sum(self._level_strides[block])
        by += sum(self._count_strides[n] for n in counted)
        return _Move(number, block, before, by, tuple(counted))

    def _stages(self, states: IntArray) -> IntArray:
        """Of each level (a row) in each state."""
        return np.stack([states // stride % 3 for stride in self._level_strides])

    def steps(self, states: IntArray) -> IntArray:
        """Every step from these states, a column each: from, to, and the place of its move."""
        stages, found = self._stages(states), [_NO_STEPS]
        at = [stages == stage for stage in (_UNTOUCHED, _SCATTERED)]
        free = [
            states // stride % (one.at_most + 1) < one.at_most
            for stride, one in zip(self._count_strides, self.limits, strict=True)
        ]
        for place, one in enumerate(self.moves):
            can = [*at[one.before][one.block], *(free[n] for n in one.limits)]
            sources = states[np.logical_and.reduce(can)]
            found.append(np.stack([sources, sources + one.by, np.full_like(sources, place)]))
        return np.concatenate(found, axis=1)

    def rows(self, states: IntArray) -> IntArray:
        """Rows that a device holds in each state."""
        factors = np.array(self.problem.factors)[:, None]
        split = np.where(self._stages(states) == _SCATTERED, factors, 1)
        return np.asarray(self.problem.rows // split.prod(axis=0))


def _implies(one: StepLimit, other: StepLimit) -> bool:
    """Whether what obeys one limit obeys the other, which is not the same."""
    within = one.instructions >= other.instructions and one.at_most <= other.at_most
    return within and one != other


def _distinct(numbers: IntArray) -> IntArray:
    """Each number (from 0 on) once, ascending: a sort takes a fraction of numpy's hash table."""
    ascending = np.sort(numbers)
    return ascending[np.diff(ascending, prepend=-1) > 0]


def _among(numbers: IntArray, ascending: IntArray) -> BoolArray:
    """Which of the numbers are among others, of which there is at least one."""
    places = np.searchsorted(ascending, numbers)
    return np.asarray(ascending[np.minimum(places, len(ascending) - 1)] == numbers)


def _reachable(space: _Space) -> tuple[IntArray, IntArray] | None:
    """The states in reach, ascending, and the steps between them; None: too many."""
    frontier = known = np.array([space.start], dtype=np.int64)
    found = [_NO_STEPS]
    for _ in range(space.length):
        found.append(space.steps(frontier))
        reached = _distinct(found[-1][1])
        frontier = reached[~_among(reached, known)]
        known = np.sort(np.concatenate([known, frontier]))
        if len(known) > MAX_STATES:
            return None
    return known, np.concatenate(found, axis=1)


def _paths(space: _Space, times: int) -> _Paths | None:
    """All nests, to be searched so many times; None: that is too much work."""
    reached = _reachable(space)
    if reached is None or reached[1].shape[1] * space.length * times > MAX_VISITS:
        return None
    states, (before, after, moves) = reached
    into = np.searchsorted(states, after)
    order = np.argsort(into * len(space.moves) + moves)
    sources, targets, moves = np.searchsorted(states, before[order]), into[order], moves[order]
    prices, keys = _priced(space, space.rows(states), sources, targets, moves)
    start, goals = int(np.searchsorted(states, space.start)), space.at_goal(states)
    return _Paths(space.length, len(states), start, goals, sources, targets, prices, keys)


def _priced(
    space: _Space, rows: IntArray, sources: IntArray, targets: IntArray, moves: IntArray
) -> tuple[tuple[tuple[int, int], ...], IntArray]:
    """(Instruction, rows) of all steps, each once, and the place of each step's among them."""
    gathers = np.array([one.before == _SCATTERED for one in space.moves], dtype=bool)[moves]
    sizes, which = np.unique(rows, return_inverse=True)
    pairs = moves * len(sizes) + which[np.where(gathers, targets, sources)]
    used = np.zeros(len(space.moves) * len(sizes), dtype=bool)
    used[pairs] = True
    every = np.flatnonzero(used)
    instructions = [space.moves[n].instruction for n in every // len(sizes)]
    prices = tuple(zip(instructions, sizes[every % len(sizes)].tolist(), strict=True))
    return prices, (np.cumsum(used) - 1)[pairs]


@dataclass(frozen=True)
class _Paths:
    """All nests: paths of at most ``length`` steps from a start to goals, by places of states.

    Steps lie by their ``targets``, then in the order of instructions; ``keys`` are places in
    ``prices``, whose entries are (instruction, rows).
    """

    length: int
    states: int
    start: int
    goals: IntArray
    sources: IntArray
    targets: IntArray
    prices: tuple[tuple[int, int], ...]
    keys: IntArray

    def best_of_each_length(self, cost: Cost) -> list[_Nest]:
        """The cheapest with its seconds, of each number of steps that there is."""
        if not len(self.goals):
            return []
        seconds = np.array([cost(*one) for one in self.prices])[self.keys]
        layers, found = [np.full(self.states, math.inf)], list[_Nest]()
        layers[0][self.start] = 0.0
        for _ in range(self.length):
            layers.append(self._layer(layers[-1], seconds))
            at = int(self.goals[layers[-1][self.goals].argmin()])
            if layers[-1][at] < math.inf:
                found.append((self._path(layers, seconds, at), float(layers[-1][at])))
        return found

    @cached_property
    def _firsts(self) -> IntArray:
        """The first step to each state that one leads to."""
        return np.flatnonzero(np.diff(self.targets, prepend=-1))

    def _layer(self, reached: FloatArray, seconds: FloatArray) -> FloatArray:
        """One step more: the least seconds of each state."""
        after = np.full(self.states, math.inf)
        totals = reached[self.sources] + seconds
        after[self.targets[self._firsts]] = np.minimum.reduceat(totals, self._firsts)
        return after

    def _path(self, layers: Sequence[FloatArray], seconds: FloatArray, at: int) -> Indices:
        """The instructions of the path that ends in a state, backwards through the layers."""
        found: list[int] = []
        for before in reversed(layers[:-1]):
            first, end = np.searchsorted(self.targets, (at, at + 1))
            into = slice(int(first), int(end))
            least = (before[self.sources[into]] + seconds[into]).argmin()
            step = int(first + least)
            found.append(self.prices[self.keys[step]][0])
            at = int(self.sources[step])
        return tuple(reversed(found))

"""Programs that are priced before a solver is asked: the least of them bounds the optimum.

Levels are cut into blocks, and each block but the outermost is either *split* (a reduce-scatter
before what happens further out, an all-gather after it) or *joined* by an all-reduce.  They are
valid programs, so the cheapest bounds the optimum from above, whatever runs, and stands in where
the time ends before there is an answer.  That is all that is used of them.

Of an all-to-all they are all-to-alls over the blocks, outermost first; others cost the same.

They are often best, not always.  In the settings of experiments/crossings (rings over switches)
one of them always is on two levels, and on three where calls cost nothing.  On some of three levels
with a cost per call, on four within five instructions, and over links of other kinds, there are
numbers for which an all-reduce is cheapest by a program that is not among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import chain, combinations, pairwise, product

import numpy as np

from p2smt.collectives.demand import Chunks, Demand, demand_of
from p2smt.collectives.names import Collective, ProgramOperation, RequestKind
from p2smt.parallelism.placement import IntArray
from p2smt.problems.placement import Indices, ProgramProblem
from p2smt.programs.program import Grouping, local_groups

Cost = Callable[[int, int], float | None]
"""What an instruction, by its index, costs with so many rows; None: it cannot be used."""

_Item = tuple[ProgramOperation, Grouping]
_RS, _AG, _AR = Collective.REDUCE_SCATTER, Collective.ALL_GATHER, Collective.ALL_REDUCE


def known_programs(problem: ProgramProblem) -> tuple[Indices, ...]:
    """The programs of this family that the restrictions allow, each once."""
    numbers = {item: n for n, item in enumerate(problem.instructions.items)}
    found = (tuple(numbers[item] for item in items) for items in _family(problem))
    return tuple(dict.fromkeys(program for program in found if _allowed(problem, program)))


def _family(problem: ProgramProblem) -> Iterator[tuple[_Item, ...]]:
    depth, demand = len(problem.factors), problem.demand
    for cuts in chain.from_iterable(combinations(range(1, depth), n) for n in range(depth)):
        blocks = [Grouping(outer, inner) for outer, inner in pairwise((0, *cuts, depth))]
        if demand == demand_of(RequestKind.ALL_REDUCE):
            yield from _reductions(blocks)
        elif demand == demand_of(RequestKind.REDUCE_SCATTER):
            yield from (tuple((_RS, g) for g in order) for order in (blocks[::-1], blocks))
        elif demand == demand_of(RequestKind.ALL_GATHER):
            yield from (tuple((_AG, g) for g in order) for order in (blocks, blocks[::-1]))
        elif demand.has_exchanges:
            yield tuple((RequestKind.ALL_TO_ALL, g) for g in blocks)


def _reductions(blocks: list[Grouping]) -> Iterator[tuple[_Item, ...]]:
    """All-reduces over blocks, outermost first: each but the first is split or joined."""
    for split in product((True, False), repeat=len(blocks) - 1):
        before: list[_Item] = []
        after: list[_Item] = []
        for grouping, is_split in zip(blocks[:0:-1], split, strict=True):
            before.append((_RS if is_split else _AR, grouping))
            if is_split:
                after.insert(0, (_AG, grouping))
        yield (*before, (_AR, blocks[0]), *after)


def _allowed(problem: ProgramProblem, program: Indices) -> bool:
    used = (sum(i in limit.instructions for i in program) for limit in problem.limits)
    return (
        len(program) <= problem.max_length
        and problem.forbidden.isdisjoint(program)
        and program not in problem.excluded
        and all(n <= limit.at_most for n, limit in zip(used, problem.limits, strict=True))
    )


def known_payloads(problem: ProgramProblem) -> Iterator[tuple[Indices, Rows]]:
    """The known programs with the payload of each step in rows."""
    rows = RowCounts(problem.demand, problem.factors, problem.instructions.items)
    for program in known_programs(problem):
        payloads = rows.payloads(program)
        if payloads is not None:
            yield program, payloads


def least_known(problem: ProgramProblem, cost: Cost) -> tuple[Indices, float] | None:
    """The cheapest of the known programs with its cost; None: none is allowed."""
    priced, found = cache(cost), list[tuple[float, int, Indices]]()
    for program, payloads in known_payloads(problem):
        steps = [priced(i, n) for i, n in zip(program, payloads, strict=True)]
        total = sum(step for step in steps if step is not None)
        if None not in steps:
            found.append((total, len(program), program))
    return (min(found)[2], min(found)[0]) if found else None


def bounded(problem: ProgramProblem) -> ProgramProblem:
    """The problem with the cost of the cheapest known program as its bound.

    It has the same optima, ties and answer: programs within the slack of the optimum, which are
    ties, stay.  Without costs it is the problem itself.
    """
    costs = problem.costs
    known = None if costs is None else least_known(problem, lambda *key: costs.get(key))
    if known is None or problem.at_most is not None:
        return problem
    return replace(problem, at_most=int(known[1]) + problem.slack)


# Payloads of many valid programs on the real factors, without their states.
# What a step's payload is depends on the number of non-empty rows of its members alone, and
# those numbers obey simple rules as long as the program is valid (:mod:`p2smt.programs.semantics`
# says what valid is).  A device's number depends only on which of its coordinates are zero: groups
# treat all other values of a coordinate alike.  So 2^depth numbers stand for all devices, however
# many there are.


Rows = tuple[int, ...]
_Counts = IntArray


class RowCounts:
    """Row counts of programs given by instruction numbers, over one hierarchy.

    ``items`` are the instructions by number, ``factors`` the real ones.  What a step does to
    the counts is worked out once.
    """

    def __init__(
        self,
        demand: Demand,
        factors: Sequence[int],
        items: Sequence[tuple[ProgramOperation, Grouping]],
    ) -> None:
        self.demand, self.factors, self.items = demand, tuple(factors), items
        self._next: dict[tuple[bytes, int], tuple[int, _Counts] | None] = {}

    @cached_property
    def _start(self) -> _Counts:
        held = 1 if self.demand.start.chunks is Chunks.OWN else math.prod(self.factors)
        return np.full(2 ** len(self.factors), held, dtype=np.int64)

    def payloads(self, program: Sequence[int]) -> Rows | None:
        """Payload of each step in rows; None where a reduce-scatter would split rows unevenly."""
        counts, found = self._start, []
        for number in program:
            key = counts.tobytes(), number
            if key not in self._next:
                self._next[key] = self._step(counts, *self.items[number])
            outcome = self._next[key]
            if outcome is None:
                return None
            payload, counts = outcome
            found.append(payload)
        return tuple(found)

    def _step(
        self, counts: _Counts, collective: ProgramOperation, grouping: Grouping
    ) -> tuple[int, _Counts] | None:
        """Payload in rows, and the counts afterwards."""
        members = math.prod(self.factors[grouping.outer : grouping.inner])
        groups = local_groups((2,) * len(self.factors), grouping)
        held, after = counts[groups[:, 0]], counts.copy()
        match collective:
            case Collective.ALL_GATHER:
                held = held * members
            case Collective.REDUCE_SCATTER if (held % members).any():
                return None
        kept = held // members if collective is Collective.REDUCE_SCATTER else held
        after[groups] = kept[:, None]
        if collective is Collective.REDUCE:
            after[groups[:, 1:]] = 0
        return int(held.max()), after

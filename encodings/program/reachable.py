"""Explicit table of the reachable states of a reduction problem: no solver.

A node is what every device holds on the model factors, with each device's count of
non-empty rows on the real factors beside it: payloads and the divisibility of a
reduce-scatter come from the real sizes even where synthesis runs on small ones.

In the range of the small-model theorem one table serves all factors of a depth: row counts
are then kept symbolically, as exponents of one prime per factor, and filled in afterwards.  Of more
than five levels neighbouring ones are merged, in every way.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from itertools import combinations, pairwise
from math import prod
from typing import Generic, TypeVar

from p2smt.collectives.names import Collective
from p2smt.encodings.program.reachable_search import (
    GOAL,
    MAX_NODES,
    OFTEN,
    RawTable,
    StateExplorer,
    StateSpace,
)
from p2smt.errors import EncodingBug, OutOfTimeError, TooLarge
from p2smt.problems.placement import InstructionSet, ProgramProblem
from p2smt.programs.program import MODEL_DEPTH, Grouping, small_model_length
from p2smt.result import SearchLimits, StopWatch

T = TypeVar("T")
MAX_MODEL_DEVICES = 512
"""Most devices of a table on the real factors; its contents have a limit of their own."""
_PRIMES = (2, 3, 5, 7, 11)


@dataclass(frozen=True, slots=True)
class _Timed(Generic[T]):
    """What is asked with the watch that bounds the search, which is no part of its identity."""

    asked: T
    watch: StopWatch = field(compare=False)


@lru_cache(maxsize=16)
def _raw_table(timed: _Timed[StateSpace]) -> RawTable:
    return StateExplorer(timed.asked, timed.watch).build()


@lru_cache(maxsize=64)  # eight levels have 35 ways to keep five apart
def _table(timed: _Timed[StateSpace], factors: tuple[int, ...]) -> ReachableTable:
    """The table of a space whose row counts stand for those on these factors."""
    space, raw = timed.asked, _raw_table(timed)
    exact = space.rows == math.prod(space.sizes)
    real = _same if exact else _real_rows(space, factors)
    return pruned(raw.start, _filled(space, factors, raw, real), raw.explored)


@lru_cache(maxsize=16)
def _merged_table(timed: _Timed[ProgramProblem]) -> ReachableTable:
    """The table of a problem over many levels, from those over fewer."""
    apart = min(MODEL_DEPTH, timed.asked.max_length)
    return merged_table(timed.asked, apart, partial(build_table, watch=timed.watch), timed.watch)


def _same(count: int) -> int | None:
    return count


def _real_rows(space: StateSpace, factors: tuple[int, ...]) -> Callable[[int], int | None]:
    """The real rows for a symbolic row count; None if they are not whole."""

    @cache
    def real(count: int) -> int | None:
        if space.rows % count:
            raise EncodingBug("a row count that no division explains", str(space), count)
        divisor = 1
        for prime, factor in zip(space.sizes, factors, strict=True):
            left = space.rows // count
            while left % prime == 0:
                left //= prime
                divisor *= factor
        rows, rest = divmod(math.prod(factors), divisor)
        return rows if rest == 0 else None

    return real


def _space(problem: ProgramProblem, model: tuple[int, ...], symbolic: bool) -> StateSpace:
    """The state space on model factors, its rows counted by primes or as they are."""
    sizes = _PRIMES[: len(model)] if symbolic else model
    length, items = problem.max_length, problem.instructions
    # symbolic: each step may divide them once, and they are never the real ones
    rows = math.prod(sizes) ** (length + 1 if symbolic else 1)
    return StateSpace(problem.demand, model, sizes, rows, length, items, problem.forbidden)


def _filled(
    space: StateSpace,
    factors: tuple[int, ...],
    raw: RawTable,
    real: Callable[[int], int | None],
) -> dict[int, list[Arc]]:
    """Arcs with real payloads; steps that would split rows unevenly are dropped."""
    arcs: dict[int, list[Arc]] = {}
    for node, steps in raw.arcs.items():
        arcs[node] = []
        for step in steps:
            rows = [real(count) for count in step.counts]
            whole = [row for row in rows if row is not None]
            if len(whole) == len(rows) and _splits(space, factors, step.instruction, whole):
                arcs[node].append(Arc(step.instruction, max(whole), step.target))
    return arcs


def _splits(space: StateSpace, factors: tuple[int, ...], instruction: int, rows: list[int]) -> bool:
    collective, grouping = space.instructions.items[instruction]
    members = math.prod(factors[grouping.outer : grouping.inner])
    return collective is not Collective.REDUCE_SCATTER or all(row % members == 0 for row in rows)


def build_table(problem: ProgramProblem, watch: StopWatch | None = None) -> ReachableTable:
    """The table of a problem (costs, limits, excluded programs and bounds play no part).

    Raises:
        OutOfTimeError: the watch expired.
        TooLarge: the devices or the reachable states exceed the limits of this module.
    """
    if problem.demand.has_exchanges:
        return exchange_table(problem)
    if not problem.small_model:
        return exact_table(problem, watch)
    if len(problem.factors) > MODEL_DEPTH:
        watch = watch or StopWatch.start(SearchLimits())
        bare = replace(problem, limits=(), costs=None, excluded=frozenset(), at_most=None, slack=0)
        return _merged_table(_Timed(bare, watch))
    return _built(problem, problem.model_factors, True, watch)


def exact_table(problem: ProgramProblem, watch: StopWatch | None = None) -> ReachableTable:
    """The table on the real factors, which rests on no property of small ones.

    Raises:
        OutOfTimeError: the watch expired.
        TooLarge: the devices or the reachable states exceed the limits of this module.
    """
    if problem.rows > MAX_MODEL_DEVICES:
        depth = len(problem.factors)
        raise TooLarge(
            f"programs of length {problem.max_length} over factors {list(problem.factors)}",
            f"need a table on {problem.rows} devices, more than {MAX_MODEL_DEVICES}",
            f"no limit holds up to length {small_model_length(depth)} over {depth} factors",
        )
    return _built(problem, problem.factors, False, watch)


def _built(
    problem: ProgramProblem, model: tuple[int, ...], symbolic: bool, watch: StopWatch | None
) -> ReachableTable:
    if not model:
        return ReachableTable(GOAL, {}, {GOAL: 0}, 1)
    timed = _Timed(_space(problem, model, symbolic), watch or StopWatch.start(SearchLimits()))
    return _table(timed, problem.factors)


# The table of many levels, put together from those of few: no solver.
# A program that begins and ends no group between two neighbouring levels forms the same groups over
# a hierarchy with the two merged, on any factors.  And no valid program of m instructions was found
# that tells more than m levels apart (docs/small-model.md).  So the programs over many levels are
# those over each choice of fewer levels to keep apart.
#
# Most programs belong to several choices.  A node is therefore what one word leads to in all of
# them:
# a set of nodes, at most one of each table.  So each program is one path.


_Nodes = tuple[tuple[int, int], ...]
"""Tables by number, with a node of each."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The table over merged levels; ``instructions``: what each of its own is over all levels."""

    table: ReachableTable
    instructions: tuple[int, ...]


def merged_table(
    problem: ProgramProblem,
    levels: int,
    table_of: Callable[[ProgramProblem], ReachableTable],
    watch: StopWatch,
) -> ReachableTable:
    """The table over all levels from those over each choice of so many, which ``table_of`` makes.

    Raises:
        EncodingBug: two tables do not agree on a program.
        OutOfTimeError: the watch expired.
        TooLarge: more than MAX_NODES nodes.
    """
    parts = []
    for cuts in combinations(range(1, len(problem.factors)), levels - 1):
        merged, instructions = _merged(problem, (0, *cuts, len(problem.factors)))
        parts.append(_Part(table_of(merged), instructions))
        if watch.expired():
            raise OutOfTimeError
    explored = max(part.table.explored for part in parts)  # they are of the same states
    return pruned(1, _together(parts, problem.max_length, watch), explored)


def _merged(problem: ProgramProblem, cuts: Sequence[int]) -> tuple[ProgramProblem, tuple[int, ...]]:
    """The problem over the levels between cuts, and its instructions over all levels by number."""
    whole = {item: number for number, item in enumerate(problem.instructions.items)}
    items = InstructionSet.of(len(cuts) - 1)
    numbers = tuple(
        whole[collective, Grouping(cuts[g.outer], cuts[g.inner], g.master)]
        for collective, g in items.items
    )
    factors = tuple(prod(problem.factors[a:b]) for a, b in pairwise(cuts))
    forbidden = frozenset(n for n, number in enumerate(numbers) if number in problem.forbidden)
    return ProgramProblem(problem.demand, factors, problem.max_length, items, forbidden), numbers


def _together(parts: Sequence[_Part], length: int, watch: StopWatch) -> dict[int, list[Arc]]:
    """The arcs of all parts from node 1 on, for programs of so many steps."""
    start = tuple((at, part.table.start) for at, part in enumerate(parts))
    numbers: dict[_Nodes, int] = {start: 1}
    arcs: dict[int, list[Arc]] = {}
    layer = [start]
    for left in range(length, 0, -1):
        new: list[_Nodes] = []
        for at, nodes in enumerate(layer):
            if at % OFTEN == 0 and watch.expired():
                raise OutOfTimeError
            onward = arcs[numbers[nodes]] = []
            for (instruction, rows), targets in sorted(_onward(parts, nodes, left).items()):
                after = _joined(instruction, targets)
                if after and after not in numbers:
                    numbers[after] = len(numbers) + 1
                    new.append(after)
                onward.append(Arc(instruction, rows, numbers[after] if after else GOAL))
        layer = new
        if len(numbers) > MAX_NODES:
            text = f"programs of length {length} over {len(parts)} choices of levels"
            raise TooLarge(text, f"have more than {MAX_NODES} nodes", "ask for a shorter length")
    return arcs


def _onward(
    parts: Sequence[_Part], nodes: _Nodes, left: int
) -> Mapping[tuple[int, int], list[tuple[int, int]]]:
    """Where each step leads to, by instruction and rows."""
    found: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for at, node in nodes:
        for arc in parts[at].table.steps(node, left):
            found[parts[at].instructions[arc.instruction], arc.rows].append((at, arc.target))
    _agree(found)
    return found


def _agree(steps: Iterable[tuple[int, int]]) -> None:
    """Hold that an instruction has one payload, whichever table it is from."""
    known: dict[int, int] = {}
    for instruction, rows in steps:
        if known.setdefault(instruction, rows) != rows:
            text = "tables of merged levels do not agree on a payload"
            raise EncodingBug(text, instruction, [known[instruction], rows])


def _joined(instruction: int, targets: Sequence[tuple[int, int]]) -> _Nodes:
    """The node of these nodes; none where they are the goal, which is that of all or of none."""
    reached = {node == GOAL for _, node in targets}
    if len(reached) > 1:
        raise EncodingBug("tables of merged levels do not agree on the goal", instruction, targets)
    return () if True in reached else tuple(targets)


# What a table of reachable states is: nodes, and the steps between them on the way to the goal.


@dataclass(frozen=True, slots=True)
class Arc:
    """A step: ``instruction`` with a payload of ``rows`` real rows leads to node ``target``."""

    instruction: int
    rows: int
    target: int


@dataclass(frozen=True, slots=True)
class ReachableTable:
    """Nodes reachable within the length limit and from which the goal still is.

    ``arcs[node]`` are its steps in instruction order, ``need[node]`` the least number of
    steps to the goal, ``start`` the initial node.  Node 0 is the goal and has no arcs.
    ``explored`` counts all nodes seen.
    """

    start: int
    arcs: dict[int, tuple[Arc, ...]]
    need: dict[int, int]
    explored: int

    def steps(self, node: int, left: int) -> Iterator[Arc]:
        """Steps from ``node`` after which the goal can be reached in ``left - 1`` steps."""
        return (a for a in self.arcs.get(node, ()) if self.need[a.target] <= left - 1)


def pruned(start: int, arcs: Mapping[int, Sequence[Arc]], explored: int) -> ReachableTable:
    """Keep the nodes from which the goal can be reached."""
    back = defaultdict(set)
    for node, steps in arcs.items():
        for arc in steps:
            back[arc.target].add(node)
    need, frontier = {GOAL: 0}, [GOAL]
    for node in frontier:
        for source in sorted(back[node]):
            if source not in need:
                need[source] = need[node] + 1
                frontier.append(source)
    kept = {
        node: tuple(a for a in steps if a.target in need)
        for node, steps in arcs.items()
        if node in need
    }
    return ReachableTable(start, kept, need, explored)


# The table of an all-to-all.
# Where a block goes is told by its destination's digits, one for each level, and a step over some
# levels delivers these digits of all blocks at once.  So a state is the set of the levels that are
# delivered, whatever their sizes.  A step is possible if it delivers none of them a second time:
# all blocks that a rank holds have one digit there, and would all go to one member.


def exchange_table(problem: ProgramProblem) -> ReachableTable:
    """The table of an all-to-all; the payload of every step is the whole buffer."""
    depth = len(problem.factors)
    numbers: dict[int, int] = {2**depth - 1: GOAL}
    numbers.setdefault(0, len(numbers))
    arcs: dict[int, list[Arc]] = {}
    layer = [0] if depth else []
    for _ in range(problem.max_length):
        new: list[int] = []
        for delivered in layer:
            onward = arcs[numbers[delivered]] = []
            for instruction, after in _steps(problem, delivered):
                if after not in numbers:
                    numbers[after] = len(numbers)
                    new.append(after)
                onward.append(Arc(instruction, problem.rows, numbers[after]))
        layer = new
    return pruned(numbers[0], arcs, len(numbers))


def _steps(problem: ProgramProblem, delivered: int) -> Iterator[tuple[int, int]]:
    """The instructions that a state allows, each with the levels that are delivered after it."""
    for number, (_, grouping) in enumerate(problem.instructions.items):
        levels = sum(1 << level for level in range(grouping.outer, grouping.inner))
        if number not in problem.forbidden and not levels & delivered:
            yield number, delivered | levels

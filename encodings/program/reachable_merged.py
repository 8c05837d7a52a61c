"""The table of many levels, put together from those of few: no solver.

A program that begins and ends no group between two neighbouring levels forms the same groups over a
hierarchy with the two merged, on any factors.  And no valid program of m instructions was found
that tells more than m levels apart (docs/small-model.md).  So the programs over many levels are
those over each choice of fewer levels to keep apart.

Most programs belong to several choices.  A node is therefore what one word leads to in all of them:
a set of nodes, at most one of each table.  So each program is one path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import prod

from p2smt.encodings.program.reachable_search import GOAL, MAX_NODES, OFTEN
from p2smt.encodings.program.reachable_table import Arc, ReachableTable, pruned
from p2smt.errors import EncodingBug, OutOfTimeError, TooLarge
from p2smt.problems.program import InstructionSet, ProgramProblem
from p2smt.programs.program import Grouping
from p2smt.result import StopWatch

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

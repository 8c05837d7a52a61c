"""Layers of a table's arcs: the tuples that a program may take at each step.

A tuple is (source node, x, target node, cost, use per limit), where x is the instruction
number plus one and 0 stands for "stop" (see ``cpsat.py``).
"""

from __future__ import annotations

from p2smt.encodings.program.reachable_search import GOAL
from p2smt.encodings.program.reachable_table import Arc, ReachableTable
from p2smt.problems.program import ProgramProblem

LayerRow = tuple[int, ...]


def _row(problem: ProgramProblem, source: int, arc: Arc | None) -> LayerRow | None:
    """A tuple of C1 (arc None: stop), or None where the cost table does not allow the step."""
    if arc is None:
        return (source, 0, GOAL, 0, *(0 for _ in problem.limits))
    cost = 0
    if problem.costs is not None:
        if (arc.instruction, arc.rows) not in problem.costs:
            return None
        cost = problem.costs[arc.instruction, arc.rows]
    used = (int(arc.instruction in limit.instructions) for limit in problem.limits)
    return (source, arc.instruction + 1, arc.target, cost, *used)


def layers_of(problem: ProgramProblem, table: ReachableTable) -> list[list[LayerRow]]:
    """The tuples of C1 for each step: from reachable nodes, to nodes near enough to the goal."""
    layers, nodes = [], {table.start}
    for left in range(problem.max_length, 0, -1):
        rows = [_row(problem, n, arc) for n in sorted(nodes) for arc in table.steps(n, left)]
        rows += [_row(problem, GOAL, None)] if GOAL in nodes else []
        kept = [row for row in rows if row is not None]
        layers.append(kept)
        nodes = {row[2] for row in kept}
    return _merged(_within(layers, problem.at_most))


def _within(layers: list[list[LayerRow]], at_most: int | None) -> list[list[LayerRow]]:
    """The tuples that lie on a path to the goal, of cost ``at_most`` or less."""
    ahead: list[dict[int, int]] = [{GOAL: 0}]
    for rows in reversed(layers):
        best: dict[int, int] = {}
        for source, _, target, cost, *_ in rows:
            if target in ahead[0]:
                total = cost + ahead[0][target]
                best[source] = min(best.get(source, total), total)
        ahead.insert(0, best)
    behind = dict.fromkeys(ahead[0], 0)
    kept = []
    for rows, rest in zip(layers, ahead[1:], strict=True):
        layer = [
            row
            for row in rows
            if row[0] in behind
            and row[2] in rest
            and (at_most is None or behind[row[0]] + row[3] + rest[row[2]] <= at_most)
        ]
        after: dict[int, int] = {}
        for source, _, target, cost, *_ in layer:
            total = behind[source] + cost
            after[target] = min(after.get(target, total), total)
        kept.append(layer)
        behind = after
    return kept


def _merged(layers: list[list[LayerRow]]) -> list[list[LayerRow]]:
    """The tuples with nodes merged, and numbered anew, that the same tuples go on from.

    No word, cost or use is lost or gained, and a node stays a function of the words to it.
    """
    after, found = {GOAL: GOAL}, []
    for rows in reversed(layers):
        steps: dict[int, list[LayerRow]] = {}
        for source, x, target, *rest in rows:
            steps.setdefault(source, []).append((x, after[target], *rest))
        numbers: dict[tuple[LayerRow, ...], int] = {}
        after = {
            source: numbers.setdefault(tuple(sorted(onward)), len(numbers))
            for source, onward in steps.items()
        }
        found.append([(n, *step) for known, n in numbers.items() for step in known])
    return found[::-1]

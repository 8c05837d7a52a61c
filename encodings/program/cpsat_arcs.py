"""All programs at once: a model of its own, of literals alone, over the layers of ``cpsat.py``.

CP-SAT tells an answer from the last one by its decisions.  Over tables of integers an answer costs
it half a millisecond; over clauses a quarter of that, and there are thousands of answers.

Variables, for arc k of layer t = 1..L, which is (source node, x, target node, cost, use per limit)
    a[t,k] in 0..1    whether the program takes it

Constraints
    C1 path       one arc of each layer, which starts where that of the layer before it ends
    C2 limit      sum of the uses of the arcs taken <= at_most of limit l
    C3 excluded   not all arcs of an excluded program
    C4 at most    sum of the costs of the arcs taken <= at_most

Each program is one path, so that an enumeration meets it once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python import cp_model

from p2smt.encodings.program.reachable import Arc, ReachableTable
from p2smt.encodings.program.reachable_search import GOAL
from p2smt.problems.placement import Indices, ProgramProblem


@dataclass(frozen=True, slots=True)
class ArcLayer:
    """The arcs of one step, each with its literal; ``onward``: x, target, literal, by source."""

    rows: tuple[LayerRow, ...]
    taken: tuple[cp_model.IntVar, ...]
    onward: Mapping[int, Sequence[tuple[int, int, cp_model.IntVar]]]


def c1_path(model: cp_model.CpModel, layers: Sequence[ArcLayer]) -> None:
    """C1: the arcs taken are a path."""
    for layer in layers:
        model.add_exactly_one(layer.taken)
    for before, after in pairwise(layers):
        ending = defaultdict(list)
        for (_, _, target, *_), literal in zip(before.rows, before.taken, strict=True):
            ending[target].append(literal)
        for node in ending.keys() | after.onward.keys():
            into = ending[node]
            out = [literal for _, _, literal in after.onward.get(node, ())]
            for literal in into:
                model.add_bool_or([~literal, *out])
            for literal in out:
                model.add_bool_or([~literal, *into])


def c2_limit(model: cp_model.CpModel, problem: ProgramProblem, layers: Sequence[ArcLayer]) -> None:
    """C2: no more steps of a kind than its limit allows."""
    for number, limit in enumerate(problem.limits):
        model.add(_sum_of(layers, 4 + number) <= limit.at_most)


def c3_excluded(
    model: cp_model.CpModel, problem: ProgramProblem, layers: Sequence[ArcLayer]
) -> None:
    """C3: not the whole path of an excluded program; one of other arcs is none anyway."""
    for program in sorted(problem.excluded):
        if len(program) > problem.max_length:
            continue
        words = [i + 1 for i in program] + [0] * (problem.max_length - len(program))
        node, path = layers[0].rows[0][0], list[cp_model.IntVar]()
        for layer, word in zip(layers, words, strict=True):
            for x, target, literal in layer.onward.get(node, ()):
                if x == word:
                    path.append(literal)
                    node = target
                    break
        if len(path) == len(layers):
            model.add_bool_or([~literal for literal in path])


def c4_at_most(
    model: cp_model.CpModel, problem: ProgramProblem, layers: Sequence[ArcLayer]
) -> None:
    """C4: the total cost is within the bound."""
    if problem.at_most is not None:
        model.add(_sum_of(layers, 3) <= problem.at_most)


def _sum_of(layers: Sequence[ArcLayer], column: int) -> cp_model.LinearExpr:
    """The sum of a column over the arcs taken."""
    literals = [literal for layer in layers for literal in layer.taken]
    return cp_model.LinearExpr.weighted_sum(
        literals, [row[column] for layer in layers for row in layer.rows]
    )


def arc_model(
    problem: ProgramProblem, layers: Sequence[Sequence[LayerRow]]
) -> tuple[cp_model.CpModel, tuple[ArcLayer, ...]]:
    """The model over layers none of which is empty, to be searched in the order of the arcs."""
    model = cp_model.CpModel()
    found = tuple(_layer(model, rows) for rows in layers)
    c1_path(model, found)
    c2_limit(model, problem, found)
    c3_excluded(model, problem, found)
    c4_at_most(model, problem, found)
    literals = [literal for layer in found for literal in layer.taken]
    model.add_decision_strategy(literals, cp_model.CHOOSE_FIRST, cp_model.SELECT_MAX_VALUE)
    return model, found


def _layer(model: cp_model.CpModel, rows: Sequence[LayerRow]) -> ArcLayer:
    taken = tuple(model.new_bool_var("") for _ in rows)
    onward = defaultdict(list)
    for (source, x, target, *_), literal in zip(rows, taken, strict=True):
        onward[source].append((x, target, literal))
    return ArcLayer(tuple(rows), taken, onward)


class PathCollector(cp_model.CpSolverSolutionCallback):
    """Collects the program of every answer, up to a number."""

    def __init__(self, layers: Sequence[ArcLayer], limit: int | None) -> None:
        super().__init__()
        self._layers, self._limit = layers, limit
        self.found: list[Indices] = []

    def on_solution_callback(self) -> None:
        """Called by the solver for each answer: follows the path from the start."""
        node, program = self._layers[0].rows[0][0], []
        for layer in self._layers:
            for x, target, literal in layer.onward[node]:
                if self.boolean_value(literal):
                    node = target
                    program.append(x - 1)
                    break
        self.found.append(tuple(index for index in program if index >= 0))
        if self._limit is not None and len(self.found) > self._limit:
            self.stop_search()


# Layers of a table's arcs: the tuples that a program may take at each step.
# A tuple is (source node, x, target node, cost, use per limit), where x is the instruction
# number plus one and 0 stands for "stop" (see ``cpsat.py``).


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

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

from p2smt.encodings.program.cpsat_layers import LayerRow
from p2smt.problems.program import Indices, ProgramProblem


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

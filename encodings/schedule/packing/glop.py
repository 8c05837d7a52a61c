"""The least greatest load of trees that are given, with GLOP.

Problem: a :class:`~p2smt.problems.packing.PackingProblem`.

Variables, all continuous, at least 0
    T       the greatest load
    x[t]    how much of tree t is taken

Constraints
    C1 whole      the trees of each kind add up to 1
    C2 loads      no capacity is loaded more than T

Objective: minimise T.

Size: a variable for each tree, a row for each kind and each capacity.
"""

from __future__ import annotations

from collections import defaultdict
from math import inf

from p2smt.encodings.run_glop import SOLVER, Model, run
from p2smt.problems.packing import PackingProblem, PackingShares
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch


def least_load(problem: PackingProblem, limits: SearchLimits) -> Result[PackingShares]:
    """The optimum: OPTIMAL or UNKNOWN."""
    watch, model = StopWatch.start(limits), Model()
    time, *trees = (_variable(model) for _ in range(1 + len(problem.columns)))
    c1_whole(model, problem, trees)
    rows = c2_loads(model, problem, trees, time)
    model.set_var_objective_coefficient(time, 1.0)
    solver = run(model, watch.left())
    sizes = (("variables", model.num_variables()), ("constraints", model.num_constraints()))
    stats = SolveStats(SOLVER, watch.elapsed_s(), 1, sizes)
    if solver is None:
        return Result(Status.UNKNOWN, stats=stats)
    values, duals = solver.variable_values(), solver.dual_values()
    shares = PackingShares(
        float(values[time]),
        tuple(max(0.0, float(values[tree])) for tree in trees),
        tuple(max(0.0, -float(duals[row])) for row in rows),
    )
    return Result(Status.OPTIMAL, shares, stats=stats)


def _variable(model: Model) -> int:
    number = model.add_var()
    model.set_var_lower_bound(number, 0.0)
    return int(number)


def _row(model: Model, terms: list[tuple[int, float]], low: float, high: float) -> int:
    """A constraint: the sum of terms lies between two numbers."""
    row = model.add_linear_constraint()
    for number, factor in terms:
        model.add_term_to_constraint(row, number, factor)
    model.set_constraint_lower_bound(row, low)
    model.set_constraint_upper_bound(row, high)
    return int(row)


def c1_whole(model: Model, problem: PackingProblem, trees: list[int]) -> None:
    """C1: the trees of each kind add up to 1."""
    kinds: list[list[tuple[int, float]]] = [[] for _ in range(problem.kinds)]
    for tree, column in zip(trees, problem.columns, strict=True):
        kinds[column.kind].append((tree, 1.0))
    for terms in kinds:
        _row(model, terms, 1.0, 1.0)


def c2_loads(model: Model, problem: PackingProblem, trees: list[int], time: int) -> tuple[int, ...]:
    """C2: no capacity is loaded more than T; returns the rows."""
    loads = defaultdict[int, list[tuple[int, float]]](list)
    for tree, column in zip(trees, problem.columns, strict=True):
        for capacity, load in column.loads.items():
            loads[capacity].append((tree, load))
    return tuple(
        _row(model, [*loads[k], (time, -1.0)], -inf, 0.0) for k in range(problem.capacities)
    )

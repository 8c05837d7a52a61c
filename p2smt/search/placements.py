"""Placements of a question: which matrices answer it, and the search for them."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.errors import EncodingBug
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix, Placement
from p2smt.parallelism.request import Problem
from p2smt.problems.placement import PlacementProblem
from p2smt.result import Result, SearchLimits, StopWatch
from p2smt.solvers.ask import Every, Optimum, Solver, ask, solver_of


def is_answer(problem: PlacementProblem, matrix: Matrix) -> bool:
    """Whether a matrix (folded: its two) has a problem's sizes and obeys it, costs apart."""
    if Placement(matrix).axis_sizes != problem.axes:
        return False
    parts = (Placement(tuple(matrix[i] for i in rows)) for rows in problem.blocks)
    right = all(part.level_sizes == problem.levels for part in parts)
    return right and obeys(matrix, problem.rules) and matrix not in problem.excluded


def obeys(matrix: Matrix, rules: Sequence[AxisRule | FixedEntry]) -> bool:
    """Whether a parallelism matrix satisfies every rule."""
    for rule in rules:
        row = matrix[rule.axis]
        if isinstance(rule, FixedEntry):
            held = row[rule.level] == rule.value
        else:
            held = all(entry == 1 for entry in row[: rule.level + 1]) is rule.inside
        if not held:
            return False
    return True


def any_matrix(problem: Problem, solver: Solver, watch: StopWatch) -> Result[Matrix]:
    """A matrix that obeys the rules of a problem, whatever it costs; or the proof of none."""
    sizes = problem.topology.sizes, problem.axis_sizes
    return best_matrix(PlacementProblem(*sizes, problem.rules), solver, watch)


def best_matrix(question: PlacementProblem, solver: Solver, watch: StopWatch) -> Result[Matrix]:
    """The matrix of least cost of a question, checked; or the proof that there is none.

    Raises:
        EncodingBug: what the solver says is not an answer.
    """
    found = ask(question, Optimum(), solver, watch.left())
    if found.value is not None and not is_answer(question, found.value):
        sizes = {"levels": question.levels, "axes": question.axes, "rules": question.rules}
        raise EncodingBug("a decoded placement is not an answer", sizes, found.value)
    return found


def placements(
    problem: PlacementProblem,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
) -> Result[tuple[Matrix, ...]]:
    """Every parallelism matrix of a problem once, each checked, in lexicographic order.

    ``solver`` may be its name.  Of a folded problem the rows of both matrices, for
    :meth:`p2smt.parallelism.folded.FoldedPlacement.of_rows`.

    Raises:
        InputError: no such solver, or a level beyond a documented limit.
        EncodingBug: an answer of the solver failed the independent check.
    """
    result = ask(problem, Every(), solver_of(solver), limits or SearchLimits())
    matrices = result.value or ()
    for matrix in matrices:
        if not is_answer(problem, matrix):
            raise EncodingBug("a decoded placement is not an answer", problem, matrix)
    if len(set(matrices)) != len(matrices):
        raise EncodingBug("a placement was listed twice", problem, matrices)
    return Result(result.status, matrices, stats=result.stats)

"""``p2smt.placements``."""

from __future__ import annotations

from p2smt.parallel_search.parallel_options import Spread
from p2smt.parallelism.placement import Matrix
from p2smt.problems.placement import PlacementProblem
from p2smt.result import Result, SearchLimits
from p2smt.search.placements import placements as whole
from p2smt.search.spaces.placement_space import listed_by_subproblems
from p2smt.solvers.ask import Solver, solver_of


def placements(
    problem: PlacementProblem,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
    spread: Spread | None = None,
) -> Result[tuple[Matrix, ...]]:
    """Every parallelism matrix of a problem once, each checked, in lexicographic order.

    ``solver`` may be its name.  ``spread``: search part by part, in several processes or with a
    journal; None: in one piece.

    Raises:
        InputError: no such solver, a level beyond a documented limit, or a spread that cannot be.
        EncodingBug: an answer of the solver failed the independent check.
    """
    if spread is None:
        return whole(problem, limits, solver)
    return listed_by_subproblems(problem, limits or SearchLimits(), spread, solver_of(solver))

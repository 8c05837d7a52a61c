"""The public function `solve`."""

from __future__ import annotations

from dataclasses import replace

from p2smt.errors import InputError
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import Solution
from p2smt.problems.placement import PlacementProblem
from p2smt.result import SearchLimits, StopWatch
from p2smt.search.joint import JointSearch, ProgressCallback
from p2smt.search.programs_pipelined import Listings
from p2smt.search.rank_orders import GivenRanks, default_order, given_ranks, rank_order
from p2smt.search.sensitivity import FACTORS, perturbations
from p2smt.solvers.solver import Solver, solver_of

MAX_TOP = 1000


def solve(
    problem: Problem,
    *,
    top: int = 3,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
    compare: GivenRanks | None = None,
    sensitivity: bool = False,
    progress: ProgressCallback | None = None,
) -> Solution:
    """The placement and programs of least time, with proof; and the next best ones.

    Args:
        problem: cluster, axes, requests, objective and restrictions.
        top: how many alternatives to rank (different placements, each with best programs).
        limits: wall-clock limit, seed and workers; a proved optimum depends on none of them.
        solver: ``cpsat`` or ``z3``, or a :class:`~p2smt.solvers.solver.Solver`.
        compare: a rank order of the caller's: a matrix, or the device of each rank.
        sensitivity: re-solve with each level's bandwidth 20 % off.
        progress: called with (best objective so far or None, proved bound), in seconds.

    Raises:
        InputError: sizes that do not match, or a problem beyond a documented limit.
        EncodingBug: an answer of the solver failed the independent check.

    On KeyboardInterrupt the best answer so far is returned, ``interrupted`` set.
    """
    if not 1 <= top <= MAX_TOP:
        raise InputError(f"top {top}", f"must be 1 to {MAX_TOP}")
    PlacementProblem(problem.topology.sizes, problem.axis_sizes)
    if problem.algorithms is not None:
        topology = problem.topology.running(problem.algorithms)
        problem = replace(problem, topology=topology)
    limits = limits or SearchLimits()
    watch = StopWatch.start(limits)
    compared = None
    if compare is not None:
        compared = rank_order(problem, given_ranks(problem, compare), "given")
    default = default_order(problem)
    listings = Listings()
    chosen = solver_of(solver)
    found = JointSearch(problem, watch.left(), chosen, progress, listings).run(top)
    found = replace(found, default=default, compared=compared, limits=limits, top=top)
    return _with_sensitivity(found, watch, chosen, listings) if sensitivity else found


def _with_sensitivity(
    found: Solution, watch: StopWatch, solver: Solver, listings: Listings
) -> Solution:
    """The solution with its sensitivity; an interrupt keeps what was found before it."""
    if found.best is None or found.interrupted:
        return found
    try:
        checks = perturbations(found.problem, found.best, watch, solver, listings)
    except KeyboardInterrupt:
        return replace(found, interrupted=True)
    cut = len(checks) < len(FACTORS) * len(found.problem.topology.levels)
    return replace(found, sensitivity=checks, interrupted=cut)

"""The public function `solve`; what few answers need is imported where they need it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from p2smt.cluster.topology import check_even
from p2smt.collectives.demand import plain_kind
from p2smt.collectives.names import DIRECT
from p2smt.cost.bounds import single_time
from p2smt.cost.requested_algorithms import check_asked, otherwise, running
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import StepTime
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray, Matrix, Placement, default_ranks
from p2smt.parallelism.rank_list import RankList, RankMap, matrix_of
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.check.check_restrictions import broken_by_singles
from p2smt.plans.ranges import range_of_order
from p2smt.plans.solution import RankOrder, Solution, named_steps, objective, rank_alternative
from p2smt.problems.placement import PlacementProblem
from p2smt.result import SAME, SearchLimits, Status, StopWatch
from p2smt.search.gain import with_gain
from p2smt.search.joint import JointSearch, ProgressCallback, Rank
from p2smt.search.near_optimal import Nearness
from p2smt.search.programs_pipelined import Catalogs
from p2smt.solvers.ask import Solver, solver_of
from p2smt.units import format_time

if TYPE_CHECKING:
    from p2smt.parallel_search.parallel_options import Spread


MAX_TOP = 1000


def solve(
    problem: Problem,
    *,
    top: int = 3,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
    compare: GivenRanks | None = None,
    sensitivity: bool = False,
    explain: bool = False,
    split: bool = False,
    within: float | Nearness | None = None,
    progress: ProgressCallback | None = None,
    spread: Spread | None = None,
) -> Solution:
    """The placement and programs of least time, with proof; and the next best ones.

    Args:
        problem: cluster, axes, requests, objective and restrictions.
        top: how many alternatives to rank (different placements, each with best programs).
        limits: wall-clock limit, seed and workers; a proved optimum depends on none of them.
        solver: ``cpsat`` or ``z3``, or a :class:`~p2smt.solvers.ask.Solver`.
        compare: a rank order of the caller's: a matrix, or the device of each rank.
        sensitivity: re-solve with each level's bandwidth 20 % off, and with the cost of calls 50 %
            off if the topology names a library.
        explain: say how far single numbers may change before another answer wins, and what holds
            whatever they are: ``explanation`` of the solution.  It takes what the time limit
            leaves, or a minute where there is none.
        split: look for parts of each payload that go through several programs at once, and for a
            bound that no split beats: ``splits`` of the solution.
        within: also list every placement that takes, with its best programs, at most so much
            longer than the optimum (0.05: five per cent); ``near`` of the solution.  None: do not
            look; :data:`~p2smt.search.near_optimal.BRIEFLY`: count, as the command does.
        progress: called with (best objective so far or None, proved bound), in seconds.
        spread: search part by part, in several processes or with a journal; the answer is the same.
            None: in one piece.

    Raises:
        InputError: sizes that do not match, hosts that no matrix fits, a problem beyond a
            documented limit, or algorithms that nothing can run by
            (:mod:`p2smt.cost.requested_algorithms`); an explanation of programs in several chunks.
        EncodingBug: an answer of the solver failed the independent check.

    On KeyboardInterrupt the best answer so far is returned, ``interrupted`` set.
    """
    if not 1 <= top <= MAX_TOP:
        raise InputError(f"top {top}", f"must be 1 to {MAX_TOP}")
    if explain and problem.pipeline != 1:
        rule = "is of programs in one chunk"
        raise InputError("an explanation (explain)", rule, "leave out the pipeline")
    near = Nearness(within) if isinstance(within, int | float) else within
    check_even(problem.topology)
    PlacementProblem(problem.topology.sizes, problem.axis_sizes)
    problem = as_named(problem)
    limits = limits or SearchLimits()
    orders = {"default": default_ranks(problem.axis_sizes)}
    if compare is not None:
        orders["given"] = given_ranks(problem, compare)
    costed = {name: rank_order(problem, ranks, name) for name, ranks in orders.items()}
    watch = StopWatch.start(limits)
    listings = Catalogs()
    chosen = solver_of(solver)
    known = tuple(orders.values())
    rank = None if spread is None else _in_parts(problem, spread)
    search = JointSearch(problem, watch.left(), chosen, progress, listings, known, near, rank)
    found = search.run(top)
    found = replace(with_default(found, costed["default"], top), compared=costed.get("given"))
    found = _with_notes(with_gain(replace(found, limits=limits, top=top)))
    if found.status is Status.INFEASIBLE:
        return _with_conflict(found, watch, chosen)
    if sensitivity:
        found = _with_sensitivity(found, watch, chosen, listings)
    if explain:
        found = _with_explanation(found, watch, chosen, listings)
    return _with_splits(found, watch) if split else found


def _in_parts(problem: Problem, spread: Spread) -> Rank:
    from p2smt.search.spaces.solve_space import ParallelRank

    return ParallelRank(problem, spread)


def as_named(problem: Problem) -> Problem:
    """The problem on the topology where collectives run by the algorithms named, as they can."""
    topology = running(problem.topology, problem.algorithms)
    sizes = dict(zip(problem.axis_names, problem.axis_sizes, strict=True))
    asked = [
        (DIRECT[plain_kind(request.kind)], prod(sizes[name] for name in request.axes))
        for request in problem.requests
        if request.kind.has_programs
    ]
    check_asked(topology, asked, whole=problem.max_length == 1)
    return replace(problem, topology=topology)


def _with_notes(found: Solution) -> Solution:
    """The solution with a note on steps of the best that do not run by what is named for them."""
    if found.best is None:
        return found
    steps = [step for answer in found.best.requests for step in named_steps(answer)]
    return replace(found, notes=(*found.notes, *otherwise(found.problem.topology, steps)))


def _with_conflict(found: Solution, watch: StopWatch, solver: Solver) -> Solution:
    """The solution with the restrictions that leave no answer; an interrupt keeps the proof."""
    from p2smt.search.conflict import conflict

    try:
        return replace(found, conflict=conflict(found.problem, watch.left(), solver))
    except KeyboardInterrupt:
        return replace(found, interrupted=True)


def _with_sensitivity(
    found: Solution, watch: StopWatch, solver: Solver, listings: Catalogs
) -> Solution:
    """The solution with its sensitivity; an interrupt keeps what was found before it."""
    from p2smt.search.sensitivity import changes, perturbations

    if found.best is None or found.interrupted:
        return found
    try:
        checks = perturbations(found.problem, found.best, watch, solver, listings)
    except KeyboardInterrupt:
        return replace(found, interrupted=True)
    cut = len(checks) < len(changes(found.problem.topology))
    return replace(found, sensitivity=checks, interrupted=cut)


def _with_explanation(
    found: Solution, watch: StopWatch, solver: Solver, listings: Catalogs
) -> Solution:
    """The solution with what it rests on; an interrupt keeps what was found before it."""
    from p2smt.search.explain.explain import explanation

    if found.interrupted:
        return found
    try:
        return replace(found, explanation=explanation(found, watch, solver, listings))
    except KeyboardInterrupt:
        return replace(found, interrupted=True)


def _with_splits(found: Solution, watch: StopWatch) -> Solution:
    """The solution with splits of its payloads; an interrupt keeps what was found before it."""
    from p2smt.search.split import find_splits

    if found.interrupted:
        return found
    try:
        return replace(found, splits=find_splits(found, watch.left()))
    except KeyboardInterrupt:
        return replace(found, interrupted=True)


# Rank orders with one collective per request: the default one, and the user's own.
# Those that no parallelism matrix expresses are costed device by device.


GivenRanks = list[int] | list[list[int]]
"""The device of each rank in rank order, or a parallelism matrix."""


def rank_order(problem: Problem, ranks: IntArray, name: str) -> RankOrder:
    """The rank order of a tensor (shape: axis sizes; entries: device ids)."""
    matrix = matrix_of(ranks, problem.topology.sizes)
    steps = [_step(problem, request, ranks, matrix) for request in problem.requests]
    seconds = tuple(step.seconds for step in steps)
    where: RankMap = RankList(_devices(ranks), problem.axis_sizes)
    if matrix is not None:
        where = Placement(matrix)
    breaks = tuple(broken_by_singles(problem, where))
    within = range_of_order(problem, ranks, steps)
    return RankOrder(name, seconds, objective(problem, seconds), matrix, breaks, within)


def _devices(ranks: IntArray) -> tuple[int, ...]:
    """The device of each rank, ranks being row-major over the axes."""
    return tuple(ranks.ravel().tolist())


def _step(problem: Problem, request: Request, ranks: IntArray, matrix: Matrix | None) -> StepTime:
    axes, kind, payload = problem.axis_indices(request), request.kind, request.payload_bytes
    if matrix is None:
        return single_time(problem.topology, ranks, axes, kind, payload)
    return Scene.of(problem.topology, Placement(matrix), axes).fixed_time(kind, payload)


def with_default(found: Solution, default: RankOrder, top: int) -> Solution:
    """The solution beside the default layout, which leads it where it is faster than any matrix.

    No matrix then expresses it.  Under restrictions that it breaks it is no answer.  What is proved
    of matrices does not bound rank orders: status FEASIBLE, and no bound.
    """
    found, problem, best = replace(found, default=default), found.problem, found.best
    slower = best is None or default.objective_s < best.objective_s * (1 - SAME)
    if default.matrix is not None or default.breaks or not slower:
        return found
    devices = _devices(default_ranks(problem.axis_sizes))
    answer = rank_alternative(problem, RankList(devices, problem.axis_sizes))
    return replace(
        found,
        status=Status.FEASIBLE,
        alternatives=(answer, *found.alternatives)[:top],
        bound_s=0.0,
        physical_bound_s=0.0,
        ranking=Status.TRUNCATED,
        matrices=found.status,
        notes=(*found.notes, _beside(found)),
        near=found.near and found.near.below(default.objective_s),
    )


def _beside(found: Solution) -> str:
    """Why a rank order is the answer, and what is known of the matrices."""
    text = "the answer is the default layout, which no matrix expresses"
    if found.status is Status.INFEASIBLE:
        text += "; no matrix obeys the restrictions (proved)"
    if found.best is not None:
        proved = " (proved)" if found.status is Status.OPTIMAL else ""
        text += f"; the best matrix takes {format_time(found.best.objective_s)}{proved}"
    return f"{text}; bounds hold for matrices, and other rank orders were not tried"


def given_ranks(problem: Problem, given: object) -> IntArray:
    """Devices by rank, given as JSON: a parallelism matrix, or the device of each rank in order."""
    text = str(given)[:60]
    if isinstance(given, list) and given and all(isinstance(row, list) for row in given):
        placement = Placement(tuple(tuple(_whole(e, text) for e in row) for row in given))
        placement.check(problem.topology.sizes, problem.axis_sizes)
        return placement.rank_tensor()
    if not isinstance(given, list):
        raise InputError(f"layout {text}", "is neither a matrix [[..],..] nor a rank list [..]")
    return _permutation(problem, [_whole(entry, text) for entry in given], text)


def _whole(value: object, text: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"layout {text}", f"holds {str(value)[:20]!r}, which is no whole number")
    return value


def _permutation(problem: Problem, devices: Sequence[int], text: str) -> IntArray:
    count = problem.topology.devices
    if sorted(devices) != list(range(count)):
        raise InputError(
            f"rank list {text} with {len(devices)} entries",
            f"must hold each device 0..{count - 1} once",
        )
    return np.array(devices, dtype=np.int64).reshape(problem.axis_sizes)

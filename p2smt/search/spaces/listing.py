"""All placements of a question by a search over cubes.

Solvers count the matrices of each cube and give the digest of their set; the list itself is made
here, row by row and without a solver.  Both must be the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.errors import EncodingBug, InputError
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.problems.placement import PlacementProblem
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.conflict import PlacementList, rule_conflict
from p2smt.search.spaces.placements import PlacementSpace
from p2smt.skeletons.coordination.conclude import given_up_words
from p2smt.skeletons.cube import Cube
from p2smt.skeletons.digest import digest_of
from p2smt.skeletons.outcome import SearchOutcome
from p2smt.skeletons.spread import SearchTerms, Spread, run_spread
from p2smt.solvers.solver import Solver

CUBE_RULE = "rows of the parallelism matrix, in the order of the axes"


def list_by_cubes(
    problem: PlacementProblem,
    names: Sequence[str],
    limits: SearchLimits,
    spread: Spread,
    solver: Solver = Solver.CPSAT,
) -> PlacementList:
    """Every matrix, as :func:`p2smt.search.conflict.list_placements` has them.

    ``names`` are those of the axes.  At a time limit: those of the cubes that were closed.

    Raises:
        InputError: the journal or the engine cannot be used, or matrices are excluded.
        EncodingBug: what the solvers listed is not what there is.
        KeyboardInterrupt: after the search has been stopped.
    """
    watch = StopWatch.start(limits)
    found = listed_by_cubes(problem, watch.left(), spread, solver, names)
    matrices, notes = found.value or (), tuple(filter(None, [found.stats.reason]))
    if found.status is not Status.COMPLETE or matrices:
        return PlacementList(problem, found.status, matrices, notes=notes)
    return PlacementList(problem, found.status, (), rule_conflict(problem, watch.left(), solver))


def listed_by_cubes(
    problem: PlacementProblem,
    limits: SearchLimits,
    spread: Spread,
    solver: Solver = Solver.CPSAT,
    names: Sequence[str] = (),
) -> Result[tuple[Matrix, ...]]:
    """The same without a reason where there is none; axes without names are called a1, a2, .."""
    if problem.excluded or problem.costs or limits.max_answers is not None:
        rule = "is searched in parts only whole: without excluded ones, costs or a limit"
        raise InputError("a list of placements", rule, "drop these, or the spread")
    names = tuple(names) or tuple(f"a{n}" for n in range(1, len(problem.axes) + 1))
    space, watch = PlacementSpace(problem, names, solver), StopWatch.start(limits)
    outcome = run_spread(space, SearchTerms("placements", cube_rule=CUBE_RULE), spread, watch)
    if outcome.interrupted:
        raise KeyboardInterrupt
    matrices = _closed(space, outcome)
    texts = [Placement(matrix).text() for matrix in matrices]
    if (len(texts), digest_of(texts)) != (outcome.count, outcome.digest):
        raise _others(space, outcome, len(texts), spread.journal)
    closed, given_up = sum(many for _, many in outcome.closed), given_up_words(outcome.given_up)
    stats = SolveStats(solver, outcome.elapsed_s, closed, reason=given_up)
    return Result(outcome.status, matrices, stats=stats)


def _others(
    space: PlacementSpace, outcome: SearchOutcome, there: int, journal: str | None
) -> InputError | EncodingBug:
    """The error where the cubes that were closed are said to hold other placements than they do."""
    if journal is None:
        counts = [outcome.count, there]
        return EncodingBug("solvers list other placements", space.description(), counts)
    rule = f"its closed cubes hold {there:,} placements, and {outcome.count:,} others are on record"
    return InputError(f"journal {journal[:200]!r}", rule, "it was changed: search without it")


def _closed(space: PlacementSpace, outcome: SearchOutcome) -> tuple[Matrix, ...]:
    """The matrices of the cubes that were closed, in order."""
    left = (*outcome.open_cubes, *outcome.unknown_cubes)
    cubes = space.cubes
    starts = [cubes.rows(cube) for cube in left]
    return tuple(
        matrix
        for matrix in cubes.matrices(Cube())
        if not any(matrix[: len(rows)] == rows for rows in starts)
    )

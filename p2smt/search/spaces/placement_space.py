"""All placements of a question as a space: each cube is listed by a solver."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from p2smt.errors import EncodingBug, InputError
from p2smt.files.plain import from_plain, to_plain
from p2smt.parallel_search.best import digest_of
from p2smt.parallel_search.coordinate import given_up_words
from p2smt.parallel_search.engine import SearchOutcome
from p2smt.parallel_search.parallel_options import SearchTerms, Spread, run_spread
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    SearchKind,
    Signals,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix, Placement
from p2smt.problems.placement import PlacementProblem
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.conflict import PlacementList, rule_conflict
from p2smt.search.placements import is_answer, placements
from p2smt.search.spaces.matrix_subproblems import MatrixSubproblems, flat, matrix_of
from p2smt.solvers.ask import Solver, solver_of, stopping_when

_ROOTS = 16


@dataclass(frozen=True, slots=True)
class PlacementSpace:
    """Every parallelism matrix of sizes and rules; ``names`` are those of the axes."""

    problem: PlacementProblem
    names: tuple[str, ...]
    solver: Solver = Solver.CPSAT

    @property
    def skeleton(self) -> SearchKind:
        """They are listed."""
        return SearchKind.ENUMERATE

    @property
    def cubes(self) -> MatrixSubproblems:
        """How they are cut."""
        problem = self.problem
        return MatrixSubproblems(self.names, problem.levels, problem.axes, problem.rules)

    def description(self) -> Mapping[str, object]:
        """Sizes, rules and solver."""
        problem = self.problem
        return {
            "levels": list(problem.levels),
            "axes": dict(zip(self.names, problem.axes, strict=True)),
            "rules": to_plain(problem.rules),
            "solver": self.solver.value,
        }

    def roots(self) -> tuple[Subproblem, ...]:
        """Cubes of as many first rows as make a few of them."""
        return self.cubes.roots(_ROOTS)

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:
        """One row more."""
        return self.cubes.split(cube)

    def bound(self, cube: Subproblem) -> int:
        """Nothing is bounded here: 0."""
        self.cubes.rows(cube)
        return 0

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        """List the matrices of a cube, each checked."""
        started_s = time.monotonic()
        question = replace(self.problem, rules=self.cubes.fixed(task.cube))
        budget_s = task.budget_s if self.split(task.cube) else None
        left = [limit for limit in (budget_s, task.deadline_s) if limit is not None]
        limits = SearchLimits(min(left, default=None), None, task.seed, task.threads)
        with stopping_when(lambda _: signals.stopped()):
            found = placements(question, limits, self.solver)
        if found.status is not Status.COMPLETE:
            if budget_s is not None and time.monotonic() - started_s >= budget_s:
                return OverBudget(task.cube)
            return Closure(task.cube, SubproblemVerdict.UNKNOWN)
        texts = [Placement(matrix).text() for matrix in found.value or ()]
        verdict = SubproblemVerdict.LISTED if texts else SubproblemVerdict.EMPTY
        return Closure(task.cube, verdict, count=len(texts), digest=digest_of(texts))

    def member(self, witness: str) -> Member:
        """The matrix of a text such as ``[[4,1],[1,16]]``."""
        matrix = matrix_of(witness)
        if not is_answer(self.problem, matrix):
            raise InputError(f"matrix {witness[:60]}", "is no placement of this question")
        return Member(0, flat(matrix), witness)


def placement_space(data: Mapping[str, Any]) -> PlacementSpace:
    """The space of a description.

    Raises:
        InputError: it is none.
    """
    try:
        axes = data["axes"]
        rules = from_plain(tuple[AxisRule | FixedEntry, ...], data["rules"])
        problem = PlacementProblem(tuple(data["levels"]), tuple(axes.values()), rules)
        return PlacementSpace(problem, tuple(axes), solver_of(data["solver"]))
    except (KeyError, TypeError, AttributeError):
        raise InputError("the description of a space", "is none of placements") from None


# All placements of a question by a search over cubes.
# Solvers count the matrices of each cube and give the digest of their set; the list itself is made
# here, row by row and without a solver.  Both must be the same.


CUBE_RULE = "rows of the parallelism matrix, in the order of the axes"


def list_by_subproblems(
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
    found = listed_by_subproblems(problem, watch.left(), spread, solver, names)
    matrices, notes = found.value or (), tuple(filter(None, [found.stats.reason]))
    if found.status is not Status.COMPLETE or matrices:
        return PlacementList(problem, found.status, matrices, notes=notes)
    return PlacementList(problem, found.status, (), rule_conflict(problem, watch.left(), solver))


def listed_by_subproblems(
    problem: PlacementProblem,
    limits: SearchLimits,
    spread: Spread,
    solver: Solver = Solver.CPSAT,
    names: Sequence[str] = (),
) -> Result[tuple[Matrix, ...]]:
    """The same without a reason where there is none; axes without names are called a1, a2, .."""
    if problem.excluded or problem.costs or problem.folded or limits.max_answers is not None:
        rule = "is searched in parts only whole: without excluded or folded ones, costs or a limit"
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
    left = (*outcome.open_subproblems, *outcome.unknown_subproblems)
    cubes = space.cubes
    starts = [cubes.rows(cube) for cube in left]
    return tuple(
        matrix
        for matrix in cubes.matrices(Subproblem())
        if not any(matrix[: len(rows)] == rows for rows in starts)
    )

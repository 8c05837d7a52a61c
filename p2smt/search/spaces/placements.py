"""All placements of a question as a space: each cube is listed by a solver."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from p2smt.errors import InputError
from p2smt.files.plain import from_plain, to_plain
from p2smt.parallelism.placement import AxisRule, FixedEntry, Placement
from p2smt.problems.placement import PlacementProblem
from p2smt.result import SearchLimits, Status
from p2smt.search.placements import is_answer, placements
from p2smt.search.spaces.rows import MatrixCubes, flat
from p2smt.search.spaces.texts import matrix_of
from p2smt.skeletons.cube import Closure, Cube, CubeVerdict, Member, OverBudget
from p2smt.skeletons.digest import digest_of
from p2smt.skeletons.space import CubeTask, Signals, Skeleton
from p2smt.solvers.ask import stopping_when
from p2smt.solvers.solver import Solver, solver_of

_ROOTS = 16


@dataclass(frozen=True, slots=True)
class PlacementSpace:
    """Every parallelism matrix of sizes and rules; ``names`` are those of the axes."""

    problem: PlacementProblem
    names: tuple[str, ...]
    solver: Solver = Solver.CPSAT

    @property
    def skeleton(self) -> Skeleton:
        """They are listed."""
        return Skeleton.ENUMERATE

    @property
    def cubes(self) -> MatrixCubes:
        """How they are cut."""
        problem = self.problem
        return MatrixCubes(self.names, problem.levels, problem.axes, problem.rules)

    def description(self) -> Mapping[str, object]:
        """Sizes, rules and solver."""
        problem = self.problem
        return {
            "levels": list(problem.levels),
            "axes": dict(zip(self.names, problem.axes, strict=True)),
            "rules": to_plain(problem.rules),
            "solver": self.solver.value,
        }

    def roots(self) -> tuple[Cube, ...]:
        """Cubes of as many first rows as make a few of them."""
        return self.cubes.roots(_ROOTS)

    def split(self, cube: Cube) -> tuple[Cube, ...]:
        """One row more."""
        return self.cubes.split(cube)

    def bound(self, cube: Cube) -> int:
        """Nothing is bounded here: 0."""
        self.cubes.rows(cube)
        return 0

    def close(self, task: CubeTask, signals: Signals) -> Closure | OverBudget:
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
            return Closure(task.cube, CubeVerdict.UNKNOWN)
        texts = [Placement(matrix).text() for matrix in found.value or ()]
        verdict = CubeVerdict.LISTED if texts else CubeVerdict.EMPTY
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

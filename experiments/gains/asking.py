"""Asking p2smt: programs of one request on a layout, and placements of a whole training step.

Every answer has the command that gives it again.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from experiments.gains.clusters import named
from p2smt.collectives.demand import plain_kind
from p2smt.cost.scene import Scene, cheapest_single
from p2smt.cost.step_time import Pipelined
from p2smt.parallelism.placement import Matrix, Placement, default_ranks
from p2smt.parallelism.rank_list import matrix_of
from p2smt.parallelism.request import Problem, Request, parse_axes
from p2smt.plans.solution import (
    RankOrder,
    RequestAnswer,
    Solution,
    fixed_answer,
    matrix_alternative,
    objective,
    program_answer,
)
from p2smt.result import SearchLimits, Status
from p2smt.search.gain import gain_of
from p2smt.search.program_synthesis import Task
from p2smt.search.programs_pipelined import Catalogs, SoughtProgram, best_pipelined
from p2smt.search.solve import rank_order, solve

LIMITS = SearchLimits(time_limit_s=60, seed=0, workers=1)
OPTIONS = {
    "all-reduce": "--reduce",
    "reduce-scatter": "--reduce-scatter",
    "all-gather": "--all-gather",
    "all-to-all": "--all-to-all",
    "send": "--send",
}
UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))


@dataclass(frozen=True, slots=True)
class Ask:
    """A cluster by the text after ``-t``, axes outermost first, and requests."""

    spec: str
    axes: str
    requests: tuple[Request, ...]

    def problem(self, length: int | None = None) -> Problem:
        """The problem, with programs of at most so many steps."""
        problem = Problem(named(self.spec), parse_axes(self.axes), self.requests)
        return problem if length is None else replace(problem, max_length=length)

    def command(self, *more: str) -> str:
        """What to type to have it answered."""
        words = ["p2smt", "solve", "-t", self.spec, "--axes", self.axes]
        for request in self.requests:
            words += [OPTIONS[request.kind.value], amount(request)]
        return " ".join(map(shlex.quote, (*words, *more)))

    def fixed(self) -> tuple[str, ...]:
        """The options that leave no other layout than the default one, for at most two axes."""
        problem = self.problem()
        if len(problem.axes) == 1:
            return ()
        name, matrix = problem.axes[0].name, default_matrix(problem)
        row = matrix[0] if matrix else ()
        entries = zip(problem.topology.names, row, strict=bool(row))
        return tuple(w for level, n in entries for w in ("--fix", f"{name}={level}:{n}"))


def amount(request: Request) -> str:
    """A request as its option has it."""
    size = request.payload_bytes
    unit, scale = next((u, s) for u, s in UNITS if size % s == 0)
    times = f"*{request.times}" if request.times > 1 else ""
    return f"{'+'.join(request.axes)}={size // scale}{unit}{times}"


def default_matrix(problem: Problem) -> Matrix | None:
    """The default layout; None if no matrix expresses it."""
    return matrix_of(default_ranks(problem.axis_sizes), problem.topology.sizes)


@dataclass(slots=True)
class Programs:
    """Finds programs by complete lists of the valid ones, which all clusters share."""

    listings: Catalogs = field(default_factory=Catalogs)

    def on_default(self, problem: Problem) -> tuple[RequestAnswer, ...] | None:
        """The best program of each request on the default layout; None if no matrix is that."""
        matrix = default_matrix(problem)
        if matrix is None:
            return None
        return tuple(self._best(problem, one, matrix) for one in problem.requests)

    def _best(self, problem: Problem, request: Request, matrix: Matrix) -> RequestAnswer:
        scene = scene_of(problem, request, matrix)
        if scene.hierarchy.size == 1 or not request.kind.has_programs:
            return fixed_answer(request, scene)
        task = Task(plain_kind(request.kind), scene.hierarchy, problem.max_length)
        sought = SoughtProgram(task, scene, request.payload_bytes, 1, self.listings)
        found = best_pipelined(sought, LIMITS)
        if found.best is None:
            raise RuntimeError(f"{request}: {found.status.value}, no program")
        best = found.best
        timed = Pipelined(best.chunks, best.seconds, best.steps)
        answer = program_answer(request, scene, best.program, best.checked, timed)
        return replace(answer, status=found.status)


def scene_of(problem: Problem, request: Request, matrix: Matrix) -> Scene:
    """Where a request runs."""
    return Scene.of(problem.topology, Placement(matrix), problem.axis_indices(request))


def cheapest_s(problem: Problem, request: Request, matrix: Matrix) -> float:
    """The single collective by the library's cheapest way instead of the one it chooses."""
    scene = scene_of(problem, request, matrix)
    return cheapest_single(scene, request.kind, request.payload_bytes).seconds


def solved(ask: Ask, length: int | None = None) -> Solution:
    """The best placement with its programs."""
    return solve(ask.problem(length), top=1, limits=LIMITS)


def seconds(problem: Problem, answers: Sequence[RequestAnswer]) -> float:
    """Time of an iteration."""
    return objective(problem, tuple(answer.seconds for answer in answers))


def worst(answers: Sequence[RequestAnswer]) -> Status:
    """OPTIMAL if all are."""
    bad = [answer.status for answer in answers if answer.status is not Status.OPTIMAL]
    return bad[0] if bad else Status.OPTIMAL


def measurable(problem: Problem, matrix: Matrix, answers: tuple[RequestAnswer, ...]) -> bool | None:
    """What p2smt says of a gain over the default layout: whether it would be measured."""
    best = matrix_alternative(problem, matrix, answers)
    return gain_of(problem, best, default_order(problem)).measurable


def default_order(problem: Problem) -> RankOrder:
    """The default layout, one collective for each request."""
    return rank_order(problem, default_ranks(problem.axis_sizes), "default")

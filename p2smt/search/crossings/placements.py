"""Which placement is best for several requests, by the ratio of payloads, for large payloads.

Latencies drop out, so a matrix costs rho b_1 + b_2: what each byte of the two requests takes by the
best program of each, with rho payloads of the first to one of the second.  Those are lines.  More
requests have payloads in the given proportion to that of the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.cost.named import running
from p2smt.cost.scene import Scene
from p2smt.cost.symbolic.envelope import LeastCell, PayloadLine, line_cells
from p2smt.cost.symbolic.form import Rationals
from p2smt.cost.symbolic.steps import numbers_of, symbolic_fixed, symbolic_program
from p2smt.errors import InputError
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import Problem
from p2smt.problems.placement import PlacementProblem
from p2smt.programs.check import check_program
from p2smt.programs.program import Program
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.placements import placements
from p2smt.search.programs import Task, list_programs


@dataclass(frozen=True, slots=True)
class PlacementCells:
    """Every matrix with what a byte of the payloads takes on it (seconds), and which is best where.

    ``cells`` are of the payload of the first request over that of the second; ``shares`` are those
    of the second and later ones over the second's.
    """

    matrices: tuple[Matrix, ...]
    lines: tuple[PayloadLine, ...]
    cells: tuple[LeastCell, ...]
    shares: Rationals


def placement_cells(problem: Problem, limits: SearchLimits) -> PlacementCells | None:
    """The cells of the payload of the first request over that of the second.  None: out of time.

    Of three or more the payloads from the second on say in which proportion these are.

    Raises:
        InputError: fewer than two requests, or one has no symbolic cost.
    """
    if len(problem.requests) < 2:
        given = f"{len(problem.requests)} requests"
        raise InputError(given, "a ratio of payloads is of two or more", "give more")
    watch = StopWatch.start(limits)
    asked = PlacementProblem(problem.topology.sizes, problem.axis_sizes)
    listed = placements(asked, watch.left())
    if listed.status is not Status.COMPLETE:
        return None
    matrices, rates = listed.value or (), _Rates(problem, watch)
    rest = problem.requests[1:]
    shares = tuple(Fraction(one.payload_bytes, rest[0].payload_bytes) for one in rest)
    lines = []
    for matrix in matrices:
        found = rates.all_of(matrix)
        if found is None:
            return None
        others = sum((a * b for a, b in zip(shares, found[1:], strict=True)), Fraction(0))
        lines.append(PayloadLine(others, found[0]))
    cells = line_cells(lines, Fraction(0), None)
    return PlacementCells(matrices, tuple(lines), cells, shares)


class _Rates:
    """Seconds per byte of requests by their best programs; each scene is priced once."""

    def __init__(self, problem: Problem, watch: StopWatch) -> None:
        self.problem, self.watch = problem, watch
        self.topology = running(problem.topology, problem.algorithms)
        self.betas = numbers_of(self.topology).s_per_byte
        self._known: dict[tuple[Scene, RequestKind], Fraction] = {}

    def all_of(self, matrix: Matrix) -> list[Fraction] | None:
        """Those of each request on a matrix; None: out of time."""
        found = [self.of(matrix, place) for place in range(len(self.problem.requests))]
        known = [rate for rate in found if rate is not None]
        return known if len(known) == len(found) else None

    def of(self, matrix: Matrix, place: int) -> Fraction | None:
        """All executions of a request on a matrix; None: out of time."""
        request = self.problem.requests[place]
        axes = self.problem.axis_indices(request)
        scene = Scene.of(self.topology, Placement(matrix), axes)
        key = (scene, request.kind)
        if key not in self._known:
            rate = self._rate(scene, request.kind)
            if rate is None:
                return None
            self._known[key] = rate
        return self._known[key] * request.times

    def _rate(self, scene: Scene, kind: RequestKind) -> Fraction | None:
        if scene.hierarchy.depth == 0:
            return Fraction(0)
        if not kind.has_programs:
            return symbolic_fixed(scene, kind).s_per_byte(self.betas)
        task = Task(kind, scene.hierarchy, self.problem.max_length)
        listed, _ = list_programs(task, self.watch.left())
        if listed.status is not Status.COMPLETE:
            return None
        return min(
            symbolic_program(scene, program, _rows(scene, kind, program)).s_per_byte(self.betas)
            for program in listed.value or ()
        )


def _rows(scene: Scene, kind: RequestKind, program: Program) -> tuple[int, ...]:
    return check_program(demand_of(kind), scene.hierarchy, program).trace.payload_rows

"""Which placement is best for two requests, by the ratio of their payloads, for large payloads.

Latencies drop out, so a matrix costs rho b_1 + b_2: what each byte of the two requests takes by the
best program of each, with rho payloads of the first to one of the second.  Those are lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from p2smt.collectives.names import RequestKind
from p2smt.cost.named import running
from p2smt.cost.scene import Scene
from p2smt.cost.symbolic.envelope import LeastCell, PayloadLine, line_cells
from p2smt.cost.symbolic.form import LinkNumbers
from p2smt.cost.symbolic.steps import symbolic_fixed
from p2smt.errors import InputError
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import Problem
from p2smt.problems.placement import PlacementProblem
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.crossings.cells import scene_forms
from p2smt.search.placements import placements


@dataclass(frozen=True, slots=True)
class PlacementCells:
    """Every matrix with what a byte of each request takes on it (seconds), and which is best where.

    ``cells`` are of the payload of the first request over that of the second.
    """

    matrices: tuple[Matrix, ...]
    lines: tuple[PayloadLine, ...]
    cells: tuple[LeastCell, ...]


def placement_cells(problem: Problem, limits: SearchLimits) -> PlacementCells | None:
    """The cells of two requests' payload ratio; their own sizes do not count.  None: out of time.

    Raises:
        InputError: not two requests, or an algorithm has no linear form.
    """
    if len(problem.requests) != 2:
        given = f"{len(problem.requests)} requests"
        raise InputError(given, "a ratio of payloads is of two", "give two, or a --placement")
    watch = StopWatch.start(limits)
    asked = PlacementProblem(problem.topology.sizes, problem.axis_sizes)
    listed = placements(asked, watch.left())
    if listed.status is not Status.COMPLETE:
        return None
    matrices, rates = listed.value or (), _Rates(problem, watch)
    lines = []
    for matrix in matrices:
        found = [rates.of(matrix, place) for place in range(2)]
        first, second = found
        if first is None or second is None:
            return None
        lines.append(PayloadLine(second, first))
    cells = line_cells(lines, Fraction(0), None)
    return PlacementCells(matrices, tuple(lines), cells)


class _Rates:
    """Seconds per byte of requests by their best programs; each scene is priced once."""

    def __init__(self, problem: Problem, watch: StopWatch) -> None:
        self.problem, self.watch = problem, watch
        self.topology = running(problem.topology, problem.algorithms)
        self.betas = LinkNumbers.of(self.topology).s_per_byte
        self._known: dict[tuple[Scene, RequestKind], Fraction] = {}

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
            every = symbolic_fixed(scene, kind).forms()
            return min(form.s_per_byte(self.betas) for form in every)
        found = scene_forms(scene, kind, self.problem.max_length, self.watch.left())
        if found is None:
            return None
        return min(one.form.s_per_byte(self.betas) for one in found)

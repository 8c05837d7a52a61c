"""What a matrix costs with one collective per request, and the least it can cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from p2smt.collectives.names import RequestKind
from p2smt.cost.loads.footprint import Digits
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.answers import least_s
from p2smt.plans.solution import objective
from p2smt.result import StopWatch
from p2smt.search.weaker.starts import neighbours

_Key = tuple[RequestKind, int, tuple[Digits, ...]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Objectives of a matrix: ``single_s`` with one collective per request, ``bound_s`` no less."""

    single_s: float
    bound_s: float


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of the matrices met so far (``met``), each made once."""

    problem: Problem
    met: dict[Matrix, Estimate] = field(default_factory=dict)
    _requests: dict[_Key, Estimate] = field(default_factory=dict)

    def of(self, matrix: Matrix) -> Estimate:
        """The estimate of a matrix."""
        if matrix not in self.met:
            found = [self._request(matrix, request) for request in self.problem.requests]
            single_s = objective(self.problem, tuple(one.single_s for one in found))
            bound_s = objective(self.problem, tuple(one.bound_s for one in found))
            self.met[matrix] = Estimate(single_s, bound_s)
        return self.met[matrix]

    def _request(self, matrix: Matrix, request: Request) -> Estimate:
        chosen = self.problem.axis_indices(request)
        scene = Scene.of(self.problem.topology, Placement(matrix), chosen)
        key = (request.kind, request.payload_bytes, scene.digits)
        if key not in self._requests:
            single_s = scene.fixed_time(request.kind, request.payload_bytes).seconds
            alone = math.prod(scene.hierarchy.factors) == 1
            self._requests[key] = Estimate(0.0 if alone else single_s, least_s(scene, request))
        return self._requests[key]

    def descend(self, starts: Iterable[Matrix], watch: StopWatch) -> None:
        """Meet the matrices on the way from each start to one whose neighbours are no better.

        Ends early when the time runs out.
        """
        for start in starts:
            at: Matrix | None = start
            while at is not None and not watch.expired():
                better = min(self._near(at, watch), default=(math.inf, at))
                at = better[1] if better[0] < self.of(at).single_s else None

    def _near(self, matrix: Matrix, watch: StopWatch) -> Iterator[tuple[float, Matrix]]:
        for near in neighbours(self.problem, matrix):
            if watch.expired():
                return
            yield self.of(near).single_s, near

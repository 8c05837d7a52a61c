"""Iterations: several reductions that share one placement, chosen together or one after another.

For an iteration, *after another* takes the placement whose single all-reduces take least, and then
the best program of each request on it; *together* takes the placement and programs that take least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from experiments.placement_448x.cases import Case, matrices
from experiments.placement_448x.model.solving import KIND, LIBRARY, Solver
from experiments.placement_448x.model.summary import Outcome, Results, by_case
from experiments.placement_448x.model.systems import system
from experiments.placement_448x.store import rounded
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem, parse_axes, reduce
from p2smt.result import Status
from p2smt.search.solve import solve

Seconds = Callable[[Outcome], float]
BESIDE = 4.0


@dataclass(frozen=True, slots=True)
class Choice:
    """Seconds of one iteration: singles everywhere, and both ways to choose.

    Where several placements are best for singles, ``after_another_s`` is by the one that turns out
    best, ``unlucky_s`` by the one that turns out worst.
    """

    worst_single_s: float
    best_single_s: float
    after_another_s: float
    unlucky_s: float
    together_s: float


def choose(placements: Sequence[tuple[float, float]]) -> Choice:
    """The choice among (single, best) seconds of each placement."""
    singles = [single for single, _ in placements]
    least = min(singles)
    after = [best for single, best in placements if single <= least * (1 + 1e-9)]
    together = min(best for _, best in placements)
    return Choice(max(singles), least, min(after), max(after), together)


def pairs(results: Results, seconds: Seconds) -> Iterator[Choice]:
    """Every iteration of two single-axis requests on one split that matter beside each other.

    Any two of the payloads, if their fastest single all-reduces differ at most by ``BESIDE``.
    """
    tables = [by_case(results.outcomes(payload)) for payload in results.payloads]
    for axes in {case.axes for case in tables[0] if list(case.axes) == sorted(case.axes)}:
        for (i, j), one, other in product(combinations(range(len(axes)), 2), tables, tables):
            first, second = one[Case(axes, (i,))], other[Case(axes, (j,))]
            least = [min(o.default_s for o in outcomes) for outcomes in (first, second)]
            if max(least) <= BESIDE * min(least):
                both = zip(first, second, strict=True)
                yield choose(
                    [(a.default_s + b.default_s, seconds(a) + seconds(b)) for a, b in both]
                )


def singles(results: Results, seconds: Seconds) -> Iterator[Choice]:
    """Every iteration of one request."""
    for payload in results.payloads:
        for group in by_case(results.outcomes(payload)).values():
            yield choose([(one.default_s, seconds(one)) for one in group])


def choices_data(choices: Sequence[Choice]) -> dict[str, Any]:
    """How often and how much choosing together gains."""
    found: dict[str, Any] = {"iterations": len(choices)}
    for name in ("after_another", "unlucky"):
        losses = [getattr(one, f"{name}_s") / one.together_s for one in choices]
        found[name] = {
            "by_1_percent": sum(loss >= 1.01 for loss in losses),
            "largest": rounded(max(losses), 4),
        }
    return found


@dataclass(frozen=True, slots=True)
class Iteration:
    """A training iteration in the words of the command line."""

    system: str
    axes: str
    requests: tuple[str, ...]


ITERATIONS = (
    Iteration("paper-gcp-a100-4", "tp=16,dp=4", ("dp=8GiB", "tp=64MiB*128")),
    Iteration("paper-gcp-a100-4", "tp=4,dp=16", ("dp=1GiB", "tp=16MiB*32")),
    Iteration("paper-gcp-a100-4", "tp=4,cp=4,dp=4", ("dp+cp=1GiB", "tp=64MiB*64", "cp=32MiB*64")),
    Iteration("paper-gcp-v100-4", "tp=4,dp=8", ("dp=1GiB", "tp=64MiB*64")),
    Iteration("azure-ndv4-4", "tp=4,dp=8", ("dp=1GiB", "tp=64MiB*128")),
    Iteration("aws-p4d-4", "tp=2,cp=4,dp=4", ("dp+cp=1GiB", "tp=64MiB*64", "cp=32MiB*64")),
    Iteration("racks-2x4x8", "tp=8,dp=8", ("dp=1GiB", "tp=64MiB*128")),
    Iteration("racks-2x4x8", "tp=4,cp=4,dp=4", ("dp+cp=1GiB", "tp=64MiB*64", "cp=32MiB*64")),
    Iteration("racks-2x4x8", "ep=8,dp=8", ("dp=1MiB*128", "ep=1MiB*128")),
    Iteration("sockets-2x2x2x4", "tp=4,dp=8", ("dp=1GiB", "tp=64MiB*32")),
    Iteration("sockets-2x2x2x4", "cp=4,dp=4,pp=2", ("dp=32MiB*32", "cp=32MiB*32")),
)


def iteration_data(one: Iteration) -> dict[str, Any]:
    """An iteration by `solve`, checked against every placement tried in turn.

    Raises:
        RuntimeError: the two differ, or no optimum was proved.
    """
    topology = system(one.system).topology()
    problem = Problem(topology, parse_axes(one.axes), tuple(map(reduce, one.requests)))
    found = solve(problem, top=1)
    tried = list(_every_placement(problem))
    choice = choose(tried)
    if found.status is not Status.OPTIMAL or found.best is None or found.default is None:
        raise RuntimeError(f"{one}: {found.status.value}")
    if abs(found.best.objective_s - choice.together_s) > 1e-9 * choice.together_s:
        raise RuntimeError(f"{one}: {found.best.objective_s} s solved, {choice.together_s} s tried")
    return {
        "system": one.system,
        "axes": one.axes,
        "requests": one.requests,
        "placements": len(tried),
        "default_layout_s": rounded(found.default.objective_s),
        "worst_single_s": rounded(choice.worst_single_s),
        "best_single_s": rounded(choice.best_single_s),
        "after_another_s": rounded(choice.after_another_s),
        "together_s": rounded(choice.together_s),
        "bound_s": rounded(found.physical_bound_s),
        "matrix": found.best.matrix,
        "programs": [str(plan.program) for plan in found.best.requests],
    }


def _every_placement(problem: Problem) -> Iterator[tuple[float, float]]:
    """(single, best) seconds of the iteration on each placement."""
    solver = Solver(problem.topology)
    for matrix in matrices(problem.topology.sizes, problem.axis_sizes):
        single = best = 0.0
        for request in problem.requests:
            chosen = problem.axis_indices(request)
            scene = Scene.of(problem.topology, Placement(matrix), chosen)
            run = solver.run(scene.digits, request.payload_bytes, LIBRARY)
            single += request.times * scene.fixed_time(KIND, request.payload_bytes).seconds
            best += request.times * run.best_s
        yield single, best

"""Under a library: the joint answer against brute force over all matrices and all programs."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.collectives.demand import plain_kind
from p2smt.collectives.names import DIRECT
from p2smt.cost.link_bounds import link_bound_s
from p2smt.cost.requested_algorithms import check_asked, running
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import objective
from tests.oracles.placements import all_matrices
from tests.search.solve import test_solve, test_solve_pipeline
from tests.strategies.libraries import run_by
from tests.tiers import examples_of


@st.composite
def problems(draw: st.DrawFn, devices: int = 24) -> Problem:
    """The problems of the search's other tests, on clusters that a library runs on."""
    found = draw(test_solve.problems(devices))
    found = replace(found, topology=draw(run_by(found.topology)))
    free = replace(found.topology, restricted=False, overrides=())
    return found if is_runnable(found) else replace(found, topology=free)


def is_runnable(problem: Problem) -> bool:
    """Whether something can run by the algorithms that the topology names."""
    sizes = dict(zip(problem.axis_names, problem.axis_sizes, strict=True))
    asked = [
        (DIRECT[plain_kind(request.kind)], prod(sizes[name] for name in request.axes))
        for request in problem.requests
        if request.kind.has_programs
    ]
    try:
        check_asked(running(problem.topology, None), asked, whole=problem.max_length == 1)
    except InputError:
        return False
    return True


@settings(max_examples=examples_of(50))
@given(problems())
def test_cpsat_agrees_with_brute_force(problem: Problem) -> None:
    solution = p2smt.solve(problem, top=4)
    test_solve.agrees(solution, problem)
    assert solution.physical_bound_s <= links_s(problem) * (1 + 1e-9)


def links_s(problem: Problem) -> float:
    """The least objective that the links allow, matrix by matrix."""

    def least(matrix: tuple[tuple[int, ...], ...]) -> float:
        scenes = [
            Scene.of(problem.topology, Placement(matrix), problem.axis_indices(request))
            for request in problem.requests
        ]
        return objective(
            problem,
            tuple(
                link_bound_s(problem.topology, scene.digits, r.kind, r.payload_bytes)
                for r, scene in zip(problem.requests, scenes, strict=True)
            ),
        )

    return min(map(least, all_matrices(problem.topology.sizes, problem.axis_sizes)))


@settings(max_examples=examples_of(30))
@given(problems(), test_solve_pipeline.PIPELINES)
def test_pipelines_agree_with_brute_force(problem: Problem, pipeline: int | None) -> None:
    test_solve_pipeline.agrees(p2smt.solve(replace(problem, pipeline=pipeline), top=4))


@pytest.mark.exhaustive
@settings(max_examples=examples_of(12))
@given(problems(devices=8), test_solve_pipeline.PIPELINES)
def test_z3_agrees_with_cpsat(problem: Problem, pipeline: int | None) -> None:
    problem = replace(problem, pipeline=pipeline)
    first, second = (p2smt.solve(problem, top=1, solver=s) for s in ("cpsat", "z3"))
    assert first.best is not None
    assert second.best is not None
    assert second.status is first.status
    assert second.best.matrix == first.best.matrix
    assert second.best.objective_s == pytest.approx(first.best.objective_s, rel=1e-9)
    assert second.physical_bound_s == first.physical_bound_s


@settings(max_examples=examples_of(20))
@given(problems(devices=8))
def test_one_request_has_the_bound_of_its_best_links(problem: Problem) -> None:
    """Of one request the bound of the links is exact, however long calls and hops take."""
    alone = replace(problem, requests=problem.requests[:1])
    solution = p2smt.solve(alone, top=1)
    assert solution.best is not None
    if solution.best.matrix is not None:
        assert solution.physical_bound_s == pytest.approx(links_s(alone), rel=1e-9, abs=0)

"""Program and number of chunks together, against brute force over both."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Form, RequestKind
from p2smt.cost.scene import Scene
from p2smt.errors import EncodingBug, InputError
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import MAX_CHUNKS, Problem, Request
from p2smt.plans.restrictions import restriction_data
from p2smt.plans.solution import Solution, objective
from p2smt.programs.check import check_program
from p2smt.programs.program import Hierarchy, Program
from p2smt.result import SearchLimits, Status
from p2smt.search import programs_pipelined as synthesis_pipelined
from p2smt.search.program_synthesis import Task, list_programs
from p2smt.search.sensitivity import recost
from p2smt.search.warm_start import RowCounts
from tests.oracles.placements import all_matrices
from tests.search.solve.test_solve import LENGTH, cluster, led_by_the_default, problems
from tests.tiers import examples_of

AUTO = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
PIPELINES = st.sampled_from([None, None, 2, 5, MAX_CHUNKS])


@cache
def programs(kind: RequestKind, factors: tuple[int, ...]) -> list[tuple[Program, tuple[int, ...]]]:
    """Every program over plain levels, with the payload rows that the semantics finds."""
    hierarchy = Hierarchy.plain(factors)
    found = list_programs(Task(kind, hierarchy, LENGTH), SearchLimits())[0].value or ()
    return [(p, check_program(demand_of(kind), hierarchy, p).trace.payload_rows) for p in found]


def program_time(
    scene: Scene, program: Program, rows: tuple[int, ...], payload: float, chunks: int
) -> float:
    """The formula, written out."""
    plain = Hierarchy.plain(scene.hierarchy.factors)
    steps = [
        scene.step_time(i.collective, plain.grouping(i), payload * count / plain.size / chunks)
        for i, count in zip(program.instructions, rows, strict=True)
    ]
    once, period = 0.0, 0.0
    busy = dict.fromkeys(range(len(scene.topology.levels)), 0.0)
    for step in steps:
        once, period = once + step.seconds, max(period, step.seconds)
        for level in busy:
            busy[level] += step.payload_bytes * step.level_s_per_byte[level]
    return once + (chunks - 1) * max(period, *busy.values())


def least_time(problem: Problem, request: Request, matrix: Matrix) -> float:
    """The least time of a request on a matrix over all programs and numbers of chunks."""
    scene = Scene.of(problem.topology, Placement(matrix), problem.axis_indices(request))
    if scene.hierarchy.size == 1:
        return 0.0
    if not request.kind.has_programs:
        return scene.fixed_time(request.kind, request.payload_bytes).seconds
    allowed = AUTO if problem.pipeline is None else (problem.pipeline,)
    return min(
        program_time(scene, program, rows, request.payload_bytes, chunks)
        for program, rows in programs(request.kind, scene.hierarchy.factors)
        for chunks in (allowed if len(program) > 1 else (1,))
    )


def agrees(solution: Solution) -> None:
    problem = solution.problem
    costs = {
        matrix: objective(problem, tuple(least_time(problem, r, matrix) for r in problem.requests))
        for matrix in all_matrices(problem.topology.sizes, problem.axis_sizes)
    }
    if solution.best is not None and solution.best.matrix is None:
        led_by_the_default(solution, sorted((cost, m) for m, cost in costs.items()))
        return
    assert solution.status is Status.OPTIMAL
    assert solution.ranking is Status.COMPLETE
    best = [a.objective_s for a in solution.alternatives]
    assert best == pytest.approx(sorted(costs.values())[: len(best)], rel=1e-9)
    for found in solution.alternatives:
        assert found.matrix is not None
        assert found.objective_s == pytest.approx(costs[found.matrix], rel=1e-9)
    assert solution.bound_s <= best[0]
    assert solution.bound_s == pytest.approx(best[0], rel=1e-9)
    assert solution.physical_bound_s <= best[0]


@settings(max_examples=examples_of(40))
@given(problems(), PIPELINES)
def test_solve_agrees_with_brute_force(problem: Problem, pipeline: int | None) -> None:
    solution = p2smt.solve(replace(problem, pipeline=pipeline), top=4)
    agrees(solution)
    for alternative in solution.alternatives:
        for plan in alternative.requests:
            several = plan.program is not None and len(plan.program) > 1
            allowed = (pipeline,) if pipeline else AUTO
            assert plan.chunks in (allowed if several else (1,))


@settings(max_examples=examples_of(4))
@given(problems(devices=8), PIPELINES)
def test_z3_agrees_with_cpsat(problem: Problem, pipeline: int | None) -> None:
    problem = replace(problem, pipeline=pipeline)
    first, second = (p2smt.solve(problem, top=1, solver=s) for s in ("cpsat", "z3"))
    assert first.best == second.best
    assert first.best is not None
    proved = first.best.matrix is not None  # else the default layout is faster than all matrices
    assert {first.status, second.status} == {Status.OPTIMAL if proved else Status.FEASIBLE}


@settings(max_examples=examples_of(15))
@given(problems())
def test_pipelining_never_costs_more_if_one_chunk_is_a_choice(problem: Problem) -> None:
    whole, chunked = p2smt.solve(problem), p2smt.solve(replace(problem, pipeline=None))
    assert whole.best is not None
    assert chunked.best is not None
    assert chunked.best.objective_s <= whole.best.objective_s * (1 + 1e-12)


def ask(*requests: str, **more: Any) -> Problem:
    """dp=32 on four nodes of eight devices, the network ten times slower."""
    wanted = tuple(p2smt.reduce(text) for text in requests)
    return replace(Problem(cluster(), p2smt.parse_axes("dp=32"), wanted), **more)


def test_steps_on_different_links_overlap() -> None:
    one, auto = p2smt.solve(ask("dp=1GiB")).best, p2smt.solve(ask("dp=1GiB", pipeline=None)).best
    assert one is not None
    assert auto is not None
    (plan,) = auto.requests
    assert plan.chunks > 1
    assert auto.objective_s < 0.9 * one.objective_s
    assert plan.seconds < plan.chunks * sum(step.seconds for step in plan.steps)
    assert plan.label == f"all-reduce dp 1 GiB in {plan.chunks} chunks"
    assert plan.payloads == tuple(step.payload_bytes for step in plan.steps)


def test_small_payloads_are_not_cut() -> None:
    best = p2smt.solve(ask("dp=1KiB", pipeline=None)).best
    assert best is not None
    assert best.requests[0].chunks == 1


def test_restrictions_hold_and_are_recorded() -> None:
    problem = ask("dp=1GiB", pipeline=4, forbidden_forms=frozenset({Form.PARALLEL}))
    best = p2smt.solve(problem).best
    assert best is not None
    assert "parallel" not in str(best.requests[0].program)
    assert restriction_data(problem)[-1]["text"] == "programs of several steps in 4 chunks"
    auto = restriction_data(replace(problem, pipeline=None))[-1]["text"]
    assert auto.startswith("programs of several steps in 1 or 2 or 3 or 4 or 6")
    assert restriction_data(replace(problem, pipeline=1))[-1]["text"] == "no parallel"
    never = p2smt.solve(ask("dp=1GiB", pipeline=None, step_limits=(("node", 0),)))
    assert never.status is Status.INFEASIBLE


def test_the_winner_keeps_its_chunks_on_another_cluster() -> None:
    question = ask("dp=1GiB", pipeline=None)
    found = p2smt.solve(question, sensitivity=True)
    assert found.best is not None
    assert recost(question, found.best) == found.best.objective_s
    for change in found.sensitivity:
        assert change.winner_s >= change.optimum_s
        assert change.holds is math.isclose(change.winner_s, change.optimum_s, rel_tol=1e-9)


@pytest.mark.parametrize("pipeline", [0, -1, MAX_CHUNKS + 1, 10**30])
def test_numbers_of_chunks_out_of_range(pipeline: int) -> None:
    with pytest.raises(InputError, match=f"must be 1 to {MAX_CHUNKS} chunks"):
        ask("dp=1GiB", pipeline=pipeline)


def test_no_time_is_no_proof() -> None:
    found = p2smt.solve(ask("dp=1GiB", pipeline=None), limits=SearchLimits(time_limit_s=0.0))
    assert (found.status, found.ranking) == (Status.FEASIBLE, Status.TRUNCATED)


def test_a_list_that_was_cut_off_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthesis_pipelined, "MAX_LISTED_PROGRAMS", 3)
    found = p2smt.solve(ask("dp=1GiB", pipeline=None))
    assert found.status is Status.FEASIBLE
    assert found.best is not None
    assert found.best.status is Status.FEASIBLE
    assert found.bound_s < found.best.objective_s


def test_wrong_payloads_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = RowCounts.payloads
    monkeypatch.setattr(
        RowCounts, "payloads", lambda self, p: tuple(2 * n for n in right(self, p) or ())
    )
    with pytest.raises(EncodingBug, match="checked"):
        p2smt.solve(ask("dp=1GiB", pipeline=None))

"""The joint answer against brute force over all matrices and all programs."""

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
from p2smt.cost.bounds import single_time
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import Matrix, ParallelismAxis, Placement, parse_rule
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import Solution, objective
from p2smt.programs.check import check_program
from p2smt.programs.program import Hierarchy, Program
from p2smt.result import SearchLimits, Status
from p2smt.search.program_synthesis import Task, list_programs
from p2smt.search.sensitivity import recost
from p2smt.search.solve import given_ranks, rank_order
from tests.oracles.placements import all_matrices
from tests.strategies.clusters import switches
from tests.strategies.topologies import placements, topologies
from tests.tiers import examples_of

LENGTH = 3


@cache
def programs(kind: RequestKind, factors: tuple[int, ...]) -> list[tuple[Program, tuple[int, ...]]]:
    """Every program over plain levels, with the payload rows that the semantics finds."""
    hierarchy = Hierarchy.plain(factors)
    found = list_programs(Task(kind, hierarchy, LENGTH), SearchLimits())[0].value or ()
    return [(p, check_program(demand_of(kind), hierarchy, p).trace.payload_rows) for p in found]


def least_time(problem: Problem, request: Request, matrix: Matrix) -> float:
    """The least time of a request on a matrix, program by program."""
    scene = Scene.of(problem.topology, Placement(matrix), problem.axis_indices(request))
    hierarchy = scene.hierarchy
    if hierarchy.size == 1:
        return 0.0
    several = request.kind.has_exchanges and hierarchy.depth > 1
    if not (request.kind.has_programs or several):
        return scene.fixed_time(request.kind, request.payload_bytes).seconds
    plain = Hierarchy.plain(hierarchy.factors)
    return min(
        sum(
            scene.step_time(
                i.collective, plain.grouping(i), request.payload_bytes * rows / hierarchy.size
            ).seconds
            for i, rows in zip(program.instructions, payload, strict=True)
        )
        for program, payload in programs(request.kind, hierarchy.factors)
    )


def brute_force(problem: Problem) -> list[tuple[float, Matrix]]:
    """Objective of every matrix, best first."""
    matrices = all_matrices(problem.topology.sizes, problem.axis_sizes)
    return sorted(
        (objective(problem, tuple(least_time(problem, r, m) for r in problem.requests)), m)
        for m in matrices
    )


@st.composite
def problems(draw: st.DrawFn, devices: int = 24) -> Problem:
    """A small cluster, its axes, and one to three requests of any kind."""
    placement = draw(placements(devices))
    topology = draw(topologies(placement.level_sizes))
    axes = tuple(ParallelismAxis(f"a{i}", size) for i, size in enumerate(placement.axis_sizes))
    names = [axis.name for axis in axes]
    size, times = st.sampled_from([1, 1000, 10**6, 2**30]), st.integers(1, 5)
    pair = st.sets(st.sampled_from(names), min_size=1, max_size=2).map(tuple)
    one = st.sampled_from(names).map(lambda name: (name,))
    others = [kind for kind in RequestKind if kind is not RequestKind.SEND]
    request = st.builds(Request, st.sampled_from(others), pair, size, times) | st.builds(
        Request, st.just(RequestKind.SEND), one, size, times
    )
    requests = tuple(draw(st.lists(request, min_size=1, max_size=3)))
    return Problem(topology, axes, requests, draw(st.sampled_from(["sum", "max"])), LENGTH)


def agrees(solution: Solution, problem: Problem) -> None:
    """The solution's objective, bounds and order are those of the brute force."""
    expected = brute_force(problem)
    if solution.best is not None and solution.best.matrix is None:
        led_by_the_default(solution, expected)
        return
    assert solution.status is Status.OPTIMAL
    assert solution.ranking is Status.COMPLETE
    best = [a.objective_s for a in solution.alternatives]
    assert best == pytest.approx([cost for cost, _ in expected[: len(best)]], rel=1e-9)
    costs = {matrix: cost for cost, matrix in expected}
    for alternative in solution.alternatives:
        assert alternative.matrix is not None
        assert alternative.objective_s == pytest.approx(costs[alternative.matrix], rel=1e-9)
    assert solution.bound_s <= best[0]
    assert solution.bound_s == pytest.approx(best[0], rel=1e-9)
    assert solution.physical_bound_s <= best[0]


def led_by_the_default(solution: Solution, expected: list[tuple[float, Matrix]]) -> None:
    """The default layout is faster than all matrices, which no matrix expresses; they follow."""
    first, *others = solution.alternatives
    assert first.ranks == tuple(range(len(first.ranks)))
    assert first.objective_s < expected[0][0]
    assert (solution.status, solution.ranking) == (Status.FEASIBLE, Status.TRUNCATED)
    assert [one.objective_s for one in others] == pytest.approx(
        [cost for cost, _ in expected[: len(others)]], rel=1e-9
    )


@settings(max_examples=examples_of(60))
@given(problems())
def test_cpsat_agrees_with_brute_force(problem: Problem) -> None:
    agrees(p2smt.solve(problem, top=4), problem)


@pytest.mark.exhaustive
@settings(max_examples=examples_of(12))
@given(problems(devices=8))
def test_z3_agrees_with_cpsat(problem: Problem) -> None:
    first = p2smt.solve(problem, top=1)
    second = p2smt.solve(problem, top=1, solver="z3")
    assert first.best is not None
    assert second.best is not None
    assert second.status is first.status
    assert second.best.matrix == first.best.matrix
    assert second.best.objective_s == pytest.approx(first.best.objective_s, rel=1e-9)


@settings(max_examples=examples_of(10))
@given(problems(), st.integers(0, 1000), st.integers(1, 3))
def test_seed_and_workers_do_not_matter(problem: Problem, seed: int, workers: int) -> None:
    first = p2smt.solve(problem, top=2)
    second = p2smt.solve(problem, top=2, limits=SearchLimits(seed=seed, workers=workers))
    assert first.alternatives == second.alternatives
    assert first.bound_s == second.bound_s


@settings(max_examples=examples_of(25))
@given(problems())
def test_rank_orders_agree_with_matrices(problem: Problem) -> None:
    """A matrix given as a rank order costs what single collectives on its groups cost.

    Their members are in device order, which is not that of the ranks where an axis that is named
    later splits an outer level.
    """
    for matrix in list(all_matrices(problem.topology.sizes, problem.axis_sizes))[:3]:
        ranks = given_ranks(problem, [list(r) for r in matrix])
        order = rank_order(problem, ranks, "given")
        assert order.matrix == matrix
        for request, seconds in zip(problem.requests, order.seconds, strict=True):
            groups = Placement(matrix).groups(problem.axis_indices(request))
            payload = request.payload_bytes
            explicit = single_time(problem.topology, groups, (1,), request.kind, payload)
            assert seconds == pytest.approx(explicit.seconds, rel=1e-9)


def cluster() -> p2smt.Topology:
    """Four nodes of eight devices, the network ten times slower."""
    return switches(("node", 4, 1e9), ("gpu", 8, 1e10))


def problem(*requests: str, **more: Any) -> Problem:
    """dp=8, tp=4 on the small cluster."""
    wanted = tuple(p2smt.reduce(text) for text in requests)
    return replace(Problem(cluster(), p2smt.parse_axes("dp=8,tp=4"), wanted), **more)


def test_the_heavier_axis_stays_inside_the_node() -> None:
    heavy_tp = p2smt.solve(problem("dp=1MiB", "tp=1MiB*100")).best
    heavy_dp = p2smt.solve(problem("dp=1MiB*100", "tp=1MiB")).best
    assert heavy_tp is not None
    assert heavy_dp is not None
    assert heavy_tp.matrix == ((4, 2), (1, 4))
    assert heavy_dp.matrix == ((1, 8), (4, 1))


def test_several_requests_on_one_axis_add_up() -> None:
    once = p2smt.solve(problem("dp=1MiB", "tp=1MiB*100")).best
    twice = p2smt.solve(problem("dp=1MiB", "dp=1MiB", "tp=1MiB*100")).best
    assert once is not None
    assert twice is not None
    dp = once.requests[0].seconds
    assert twice.objective_s == pytest.approx(once.objective_s + dp)


def test_rules_hold_and_contradictions_are_infeasible() -> None:
    names = (["dp", "tp"], ["node", "gpu"])
    across = parse_rule("tp within node", require=False, axis_names=names[0], level_names=names[1])
    within = parse_rule("tp within node", require=True, axis_names=names[0], level_names=names[1])
    found = p2smt.solve(problem("tp=1MiB", rules=(across,))).best
    assert found is not None
    assert found.matrix is not None
    assert found.matrix[1][0] > 1
    none = p2smt.solve(problem("tp=1MiB", rules=(across, within)))
    assert (none.status, none.alternatives) == (Status.INFEASIBLE, ())


def test_program_restrictions() -> None:
    fixed = {"axes": p2smt.parse_axes("dp=32")}
    free = p2smt.solve(problem("dp=1GiB", **fixed)).best
    assert free is not None
    assert free.requests[0].program is not None
    assert len(free.requests[0].program) == 3
    crossing = [str(i) for i in free.requests[0].program.instructions if "root" in str(i)]
    assert len(crossing) == 1
    inside = p2smt.solve(
        problem("dp=1GiB", forbidden_forms=frozenset({Form.PARALLEL}), **fixed)
    ).best
    assert inside is not None
    assert "parallel" not in str(inside.requests[0].program)
    assert inside.objective_s > free.objective_s
    never = p2smt.solve(problem("dp=1GiB", step_limits=(("node", 0),), **fixed))
    assert never.status is Status.INFEASIBLE


def test_no_time_is_no_proof() -> None:
    found = p2smt.solve(problem("dp=1GiB"), limits=SearchLimits(time_limit_s=0.0))
    assert found.status is Status.FEASIBLE
    assert found.best is not None
    assert found.default is not None
    assert found.best.objective_s <= found.default.objective_s
    assert found.ranking is Status.TRUNCATED


def test_sensitivity_recosts_the_winner() -> None:
    question = problem("dp=1MiB*8", "tp=1MiB*9")
    found = p2smt.solve(question, sensitivity=True)
    assert found.best is not None
    assert recost(question, found.best) == pytest.approx(found.best.objective_s, rel=1e-12)
    assert [(p.level, p.factor) for p in found.sensitivity] == [
        *[("node", 0.8), ("node", 1.2)],
        *[("gpu", 0.8), ("gpu", 1.2)],
    ]
    for change in found.sensitivity:
        assert change.winner_s >= change.optimum_s
        assert change.holds is math.isclose(change.winner_s, change.optimum_s, rel_tol=1e-9)


def test_shards_of_a_reduce_scatter_are_reported() -> None:
    wanted = (p2smt.reduce_scatter("dp=1GiB"),)
    found = p2smt.solve(Problem(cluster(), p2smt.parse_axes("dp=32"), wanted)).best
    assert found is not None
    shards = found.requests[0].shards
    assert shards is not None
    assert sorted(shards) == list(range(32))

"""Programs on rank lists: found on the real groups, checked, never slower, cut off in time."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.cluster.topology import Topology
from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Collective, Form, RequestKind
from p2smt.cost.step_time import program_s
from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.rank_scene import RankScene, check_on_ranks
from p2smt.plans.solution import Alternative, objective, rank_alternative
from p2smt.programs.parts import UnevenSlicesError, check_on_parts, common_hierarchy, step_groups
from p2smt.programs.program import Instruction, Program
from p2smt.programs.semantics import ViolationKind
from p2smt.result import SearchLimits, Status
from p2smt.search.allocation.host_search import sorted_note, with_programs
from p2smt.solvers.ask import Solver
from p2smt.units import format_time
from tests.cost.steps import same
from tests.oracles import cost as oracle
from tests.plans.host_plans import (
    LEAVES,
    RACKS,
    asked,
    by_devices,
    leaves,
    racks,
    scattered,
    solution,
)
from tests.tiers import but_the_first, examples_of


def instructions(scene: RankScene) -> list[Instruction]:
    """All that may be written of the levels that split some group, and that the groups follow."""
    hierarchy = common_hierarchy(scene.cut)
    names = [hierarchy.name(depth) for depth in range(hierarchy.depth + 1)]
    places: list[tuple[Form, str, str | None]] = [
        (Form.INSIDE_GROUP, name, None) for name in names[:-1]
    ]
    for outer, inner in pairwise(range(len(names))):
        for lower in range(inner, len(names)):
            places += [(f, names[lower], names[outer]) for f in (Form.MASTER, Form.PARALLEL)]
    found = []
    for collective, (form, name, ancestor) in product(Collective, places):
        instruction = Instruction(collective, name, form, ancestor)
        try:
            step_groups(scene.cut, scene.groups, instruction)
        except (UnevenSlicesError, InputError):
            continue
        found.append(instruction)
    return found


def least_s(scene: RankScene, length: int) -> float:
    """The least time of all programs up to a length, each tried on the real groups."""
    best, kind, every = math.inf, demand_of(scene.request.kind), instructions(scene)
    begun: list[tuple[Instruction, ...]] = [()]
    while begun:
        before = begun.pop()
        for instruction in every:
            program = Program((*before, instruction))
            trace = check_on_parts(kind, scene.cut, program).trace
            if trace.violation is None:
                steps = scene.program_times(program, trace.payload_rows)
                best = min(best, program_s(steps, 1))
            elif trace.violation.kind is ViolationKind.GOAL_MISSED and len(program) < length:
                begun.append(program.instructions)
    return best


def checked(problem: Problem, ranks: RankList, found: Alternative) -> None:
    """Every program is valid on the real groups, costs what is said, and is worth its while."""
    single = rank_alternative(problem, ranks)
    assert (found.matrix, found.rank_list, found.status) == (None, ranks, Status.FEASIBLE)
    seconds = tuple(answer.seconds for answer in found.requests)
    assert found.objective_s == objective(problem, seconds) <= single.objective_s
    for answer, alone in zip(found.requests, single.requests, strict=True):
        assert answer.single_s == alone.seconds
        if answer.program is None:
            assert answer == alone
            continue
        scene = RankScene.of(problem, answer.request, ranks)
        trace = check_on_ranks(scene, answer.program).trace
        assert trace.violation is None
        assert answer.shards == trace.shards
        assert len(answer.program) <= problem.max_length
        assert answer.seconds < alone.seconds
        assert (answer.status, answer.bound_s, answer.physical_bound_s) == (
            Status.FEASIBLE,
            0.0,
            0.0,
        )


def test_masters_save_uplinks_where_an_order_is_bad() -> None:
    """A ring in the order of the ranks crosses leaves at every step."""
    problem = leaves()
    ranks = scattered(problem)
    shuffled = RankList(tuple(d for i in range(4) for d in ranks.ranks[i::4]), problem.axis_sizes)
    found = with_programs(problem, shuffled)
    checked(problem, shuffled, found)
    assert found.requests[0].program is not None
    assert found.objective_s < rank_alternative(problem, shuffled).objective_s


@pytest.mark.parametrize("solver", Solver)
def test_both_solvers_list_the_same(solver: Solver) -> None:
    problem = replace(racks(), max_length=3)
    ranks = scattered(problem)
    found = with_programs(problem, ranks, solver=solver)
    checked(problem, ranks, found)
    assert [str(answer.program) for answer in found.requests] == [
        str(answer.program) for answer in with_programs(problem, ranks).requests
    ]


@pytest.mark.parametrize("kind", [kind for kind in RequestKind if kind.has_programs])
@pytest.mark.parametrize("library", but_the_first("gloo", "none"))
def test_it_is_the_best_of_all_short_programs(kind: RequestKind, library: str) -> None:
    """Brute force over the real groups: what is valid there alone does not win here."""
    request = Request(kind, ("dp", "pp"), 6 * 2**10)
    problem = asked(RACKS.replace("none", library), "dp=3,pp=2", request, max_length=3)
    for ranks in (by_devices(problem), scattered(problem)):
        (found,) = with_programs(problem, ranks).requests
        scene = RankScene.of(problem, request, ranks)
        assert same(found.seconds, min(found.single_s, least_s(scene, 3)))


ORDERS = st.permutations(sorted(asked(RACKS, "dp=6", p2smt.reduce("dp=1MiB")).topology.places))


@settings(max_examples=examples_of(15))
@given(ORDERS, st.sampled_from(["dp=3,pp=2", "dp=2,pp=3", "dp=6,pp=1"]), st.sampled_from([10, 24]))
def test_on_any_order_programs_are_valid_and_cost_their_messages(
    order: list[int], axes: str, size: int
) -> None:
    requests = tuple(
        Request(kind, names, 3 * 2**size)
        for kind in (RequestKind.ALL_REDUCE, RequestKind.REDUCE_SCATTER)
        for names in (("dp", "pp"), ("dp",))
    )
    problem = asked(RACKS, axes, *requests, max_length=3)
    ranks = RankList(tuple(order), problem.axis_sizes)
    found = with_programs(problem, ranks)
    checked(problem, ranks, found)
    for answer in found.requests:
        if answer.program is not None:
            scene = RankScene.of(problem, answer.request, ranks)
            for i, step, payload in zip(
                answer.program.instructions, answer.steps, answer.payloads, strict=True
            ):
                assert step.seconds >= _by_messages(problem.topology, scene, i, payload) * (
                    1 - 1e-9
                )


def _by_messages(
    topology: Topology, scene: RankScene, instruction: Instruction, payload: float
) -> float:
    walked = [oracle.walk(topology, group, True) for group in scene.step_groups(instruction)]
    return oracle.best_seconds(topology, walked, instruction.collective, payload)[0]


def test_restrictions_and_limits_are_kept() -> None:
    problem = asked(LEAVES, "dp=16,tp=2", p2smt.reduce("dp+tp=32MiB"))
    ranks = RankList(
        tuple(d for i in range(5) for d in scattered(problem).ranks[i::5]), problem.axis_sizes
    )
    free = with_programs(problem, ranks).requests[0]
    assert free.program is not None
    short = with_programs(replace(problem, max_length=1), ranks).requests[0]
    assert short.program is None or len(short.program) == 1
    forbidden = frozenset({Form.MASTER, Form.PARALLEL})
    (inside,) = with_programs(replace(problem, forbidden_forms=forbidden), ranks).requests
    assert all(form.value not in str(inside.program) for form in forbidden)
    assert any(form.value in str(free.program) for form in forbidden)
    late = with_programs(problem, ranks, SearchLimits(time_limit_s=0.0))
    assert late.requests == rank_alternative(problem, ranks).requests


@pytest.mark.exhaustive
def test_programs_are_pipelined_as_asked() -> None:
    problem = asked(LEAVES, "dp=16,tp=2", p2smt.reduce("dp+tp=32MiB"), pipeline=None)
    ranks = scattered(problem)
    whole = with_programs(replace(problem, pipeline=1), ranks).requests[0]
    (piped,) = with_programs(problem, ranks).requests
    assert piped.seconds <= whole.seconds
    checked(problem, ranks, with_programs(problem, ranks))


def test_ranks_that_do_not_fit() -> None:
    problem = racks()
    with pytest.raises(InputError, match="each device of the hosts"):
        with_programs(problem, RankList(tuple(range(6)), (3, 2)))
    bare = replace(problem.topology, hosts=None)
    with pytest.raises(InputError, match="must hold"):
        with_programs(replace(problem, topology=bare), by_devices(problem))


@pytest.mark.exhaustive
def test_a_sorted_order_that_is_better_with_programs_is_told() -> None:
    """The best order of single collectives need not be that of programs."""
    problem = asked(LEAVES, "dp=16,tp=2", p2smt.reduce("dp+tp=32MiB"))
    ranks = scattered(problem)
    found = solution(problem, ranks)
    own_s = with_programs(problem, ranks).objective_s
    other_s = with_programs(problem, by_devices(problem)).objective_s
    limits = SearchLimits()
    assert other_s < own_s
    (note,) = sorted_note(found, own_s, limits, Solver.CPSAT)
    assert f"sorted by switch take {format_time(other_s)}" in note
    assert sorted_note(found, other_s, limits, Solver.CPSAT) == ()
    best = solution(problem, by_devices(problem))
    assert sorted_note(best, own_s, limits, Solver.CPSAT) == ()
    ruled = replace(problem, rules=(AxisRule(1, 0, inside=False),))
    assert sorted_note(replace(found, problem=ruled), own_s, limits, Solver.CPSAT) == ()

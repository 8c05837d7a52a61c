"""Programs that are priced first: valid, within restrictions; the answer is never another one."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import p2smt
from p2smt.cluster.topology import Topology
from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Form, RequestKind
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem, Request, parse_axes
from p2smt.problems.placement import ProgramProblem
from p2smt.programs.check import check_program
from p2smt.programs.program import Hierarchy
from p2smt.result import SearchLimits, Status
from p2smt.search.one_request import answer_request
from p2smt.search.program_synthesis import Task
from p2smt.search.programs_pipelined import Catalogs
from p2smt.search.warm_start import RowCounts, bounded, known_programs, least_known
from p2smt.solvers.ask import CostKeys, Optimum, Solver, ask
from tests.strategies.clusters import switches
from tests.tiers import but_the_first

KINDS = [kind for kind in RequestKind if kind.has_programs]
NO_LIMIT = SearchLimits()


def task(kind: RequestKind, factors: tuple[int, ...], length: int = 5) -> Task:
    return Task(kind, Hierarchy.plain(factors), length)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", [(6,), (3, 4), (2, 3, 2), (3, 2, 2, 2)])
def test_known_programs_are_valid_and_move_what_the_rule_says(
    kind: RequestKind, factors: tuple[int, ...]
) -> None:
    asked = task(kind, factors, 8)
    problem = asked.problem()
    rows = RowCounts(problem.demand, factors, problem.instructions.items)
    found = known_programs(problem)
    assert len(set(found)) == len(found)
    for indices in found:
        trace = check_program(
            demand_of(kind), asked.hierarchy, asked.program(problem, indices)
        ).trace
        assert trace.violation is None
        assert trace.payload_rows == rows.payloads(indices)


def test_they_are_the_nested_and_joined_ones() -> None:
    asked = task(RequestKind.ALL_REDUCE, (2, 4))
    problem = asked.problem()
    assert {str(asked.program(problem, one)) for one in known_programs(problem)} == {
        "all-reduce inside root",
        "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1",
        "all-reduce inside l1; all-reduce parallel l1 in root",
    }


@pytest.mark.parametrize(("length", "count"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_none_is_longer_than_allowed(length: int, count: int) -> None:
    assert len(known_programs(task(RequestKind.ALL_REDUCE, (2, 4), length).problem())) == count


def test_restrictions_hold() -> None:
    plain = task(RequestKind.ALL_REDUCE, (2, 4))
    inside = replace(plain, forbidden_forms=frozenset({Form.PARALLEL}))
    assert [str(inside.program(inside.problem(), p)) for p in known_programs(inside.problem())] == [
        "all-reduce inside root"
    ]
    never = replace(plain, step_limits=(("l1", 0),))
    assert known_programs(never.problem()) == ()
    assert bounded(replace(never.problem(), costs={}, slack=0)).at_most is None


def stays(problem: ProgramProblem, solver: Solver) -> bool:
    whole = ask(problem, Optimum(), solver, NO_LIMIT)
    pruned = ask(bounded(problem), Optimum(), solver, NO_LIMIT)
    return (pruned.status, pruned.value, pruned.bound) == (whole.status, whole.value, whole.bound)


@pytest.mark.parametrize("solver", but_the_first(Solver.CPSAT, Solver.Z3))
@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(KINDS),
    slack=st.integers(0, 4),
    largest=st.integers(0, 6),
)
def test_answers_and_ties_stay(
    solver: Solver, seed: int, kind: RequestKind, slack: int, largest: int
) -> None:
    """Costs are so few that most optima are ties, within the slack or beyond it."""
    problem = replace(task(kind, (2, 2), 3).problem(), slack=slack)
    keys = ask(problem, CostKeys(), solver, NO_LIMIT).value or ()
    dice = random.Random(seed)
    problem = replace(problem, costs={key: dice.randint(0, largest) for key in keys})
    assert stays(problem, solver)


@given(seed=st.integers(0, 2**32), kind=st.sampled_from(KINDS))
def test_answers_and_ties_stay_over_three_levels(seed: int, kind: RequestKind) -> None:
    problem = replace(task(kind, (2, 3, 2)).problem(), slack=1)
    keys = ask(problem, CostKeys(), Solver.CPSAT, NO_LIMIT).value or ()
    dice = random.Random(seed)
    problem = replace(problem, costs={(i, n): n * dice.randint(0, 2) for i, n in keys})
    assert stays(problem, Solver.CPSAT)


def test_the_least_one_is_taken() -> None:
    problem: ProgramProblem = task(RequestKind.ALL_REDUCE, (2, 4)).problem()
    rows = RowCounts(problem.demand, problem.factors, problem.instructions.items)
    every = known_programs(problem)
    for wanted, length in product(every, (1, 2)):
        cheap = dict.fromkeys(zip(wanted, rows.payloads(wanted) or (), strict=True), length)
        found = least_known(problem, lambda *key, cheap=cheap: cheap.get(key, 100))
        assert found == (wanted, length * len(wanted))


def cluster() -> Topology:
    return switches(("node", 4, 1e9), ("gpu", 8, 100e9))


def test_one_of_them_stands_in_where_the_time_is_over() -> None:
    request = Request(RequestKind.ALL_REDUCE, ("dp",), 2**30)
    problem = Problem(cluster(), parse_axes("dp=32"), (request,))
    scene = Scene.of(problem.topology, Placement(((4, 8),)), (0,))
    over = SearchLimits(time_limit_s=0.0)
    found = answer_request(problem, request, scene, over, Solver.CPSAT, Catalogs())
    best = answer_request(problem, request, scene, NO_LIMIT, Solver.CPSAT, Catalogs())
    assert found is not None
    assert best is not None
    assert found.status is Status.UNKNOWN
    assert found.program == best.program
    assert found.seconds < found.single_s


def test_the_answer_of_solve_is_as_before() -> None:
    """Its ties, too: over equal links many programs cost the same."""
    topology = switches(("a", 2, 1e9), ("b", 2, 1e9), ("c", 2, 1e9), latency_s=0.0)
    problem = p2smt.Problem(topology, parse_axes("dp=8"), (p2smt.reduce("dp=8KiB"),))
    best = p2smt.solve(problem).best
    assert best is not None
    assert str(best.requests[0].program) == "all-reduce inside root"

"""Schedules that only copy: against brute force, between solvers, known points, symmetries."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from p2smt.encodings.schedule.dissemination.cpsat import _variables
from p2smt.encodings.schedule.orbits import port_times, variable_count
from p2smt.errors import InputError
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.ports import kept_ports
from p2smt.problems.schedule import ChunkRoute, DisseminationProblem, ScheduleSymmetry, StepSends
from p2smt.result import SearchLimits, Status
from p2smt.solvers.ask import Solver
from p2smt.synthesis.group_order import ladder
from p2smt.synthesis.schedule_replay import broken_rule, disseminate, dissemination_problem, spreads
from tests.strategies.draws import Draws, draws
from tests.synthesis.oracle import has_schedule

FOUND = {True: Status.FEASIBLE, False: Status.INFEASIBLE}


@st.composite
def problems(draw: st.DrawFn) -> DisseminationProblem:
    """Two or three chunks on three ranks; edges share capacities, some of them fractions."""
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=2, max_size=4, unique=True))
    rates = st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3, 2)])
    capacities = tuple(draw(st.lists(rates, min_size=1, max_size=3)))
    loads = st.lists(st.sampled_from(range(len(capacities))), min_size=1, unique=True)
    edges = tuple((a, b, tuple(sorted(draw(loads)))) for a, b in chosen)
    chunk = st.builds(
        lambda root, goals: ChunkRoute(root, tuple(sorted(goals - {root}))),
        st.integers(0, 2),
        st.sets(st.integers(0, 2), min_size=2),
    )
    chunks = tuple(draw(st.lists(chunk, min_size=1, max_size=2)))
    steps = draw(st.integers(1, 2))
    return DisseminationProblem(
        3, edges, capacities, chunks, steps, steps + draw(st.integers(0, 1))
    )


@given(problems())
def test_solvers_find_a_schedule_where_there_is_one(problem: DisseminationProblem) -> None:
    wanted = FOUND[has_schedule(problem)]
    assert disseminate(problem).status is wanted
    assert disseminate(problem, solver=Solver.Z3).status is wanted


@pytest.mark.parametrize(
    ("fabric", "collective", "steps", "rounds", "chunks", "found"),
    [
        ("dgx1", "allgather", 2, 2, 1, True),  # SCCL's points and refutations
        ("dgx1", "allgather", 2, 3, 2, True),
        ("dgx1", "allgather", 2, 4, 3, False),
        ("dgx1", "allgather", 3, 7, 6, True),
        ("dgx1", "alltoall", 3, 3, 1, True),
        ("ring:4", "allgather", 2, 2, 1, True),
        ("ring:4", "allgather", 2, 3, 2, True),
        ("ring:5", "allgather", 1, 9, 1, False),
        ("mesh:4", "broadcast", 2, 2, 3, True),
        ("mesh:4", "scatter", 1, 1, 1, True),
        ("cube:2", "gather", 2, 2, 1, True),
        ("dgx2", "allgather", 2, 2, 1, False),
    ],
)
def test_points_that_are_known(
    fabric: str, collective: str, steps: int, rounds: int, chunks: int, found: bool
) -> None:
    at = load_fabric(fabric)
    problem = dissemination_problem(at, spreads(collective, at.ranks, chunks), steps, rounds)
    assert disseminate(problem, SearchLimits(60)).status is FOUND[found]


@pytest.mark.parametrize(("ranks", "rounds", "found"), [(6, 3, True), (6, 2, False), (8, 4, True)])
def test_one_orbit_of_a_ring_is_lifted(ranks: int, rounds: int, found: bool) -> None:
    fabric = load_fabric(f"ring:{ranks}")
    plain = dissemination_problem(fabric, spreads("allgather", ranks, 1), rounds, rounds)
    turned = replace(plain, symmetries=(_turn(plain),))
    result = disseminate(turned)
    assert result.status is FOUND[found]
    if result.value is not None:
        assert broken_rule(plain, result.value) is None
        assert dict(result.stats.counters)["variables"] < 20 * ranks


def _turn(problem: DisseminationProblem) -> ScheduleSymmetry:
    """The turn of a ring by one, with chunk r that of rank r."""
    image = tuple((rank + 1) % problem.ranks for rank in range(problem.ranks))
    number = {(a, b): n for n, (a, b, _) in enumerate(problem.edges)}
    edges = tuple(number[image[a], image[b]] for a, b, _ in problem.edges)
    return ScheduleSymmetry(image, edges, image)


@given(draws())
def test_mutants_of_a_schedule_break_a_rule(data: Draws) -> None:
    fabric = load_fabric("ring:4")
    problem = dissemination_problem(fabric, spreads("allgather", 4, 2), 2, 3)
    steps = _schedule(problem)
    assert broken_rule(problem, steps) is None
    number = data.draw(st.integers(0, 1))
    step = steps[number]
    send = data.draw(st.sampled_from(step.sends))
    less = tuple(one for one in step.sends if one != send)
    moved = (send[0], data.draw(st.integers(0, 7).filter(lambda e: e != send[1])))
    mutants = [
        replace(step, sends=less),
        replace(step, sends=tuple(sorted((*less, moved)))),
        replace(step, rounds=step.rounds + 1),
        replace(step, rounds=0),
    ]
    mutant = data.draw(st.sampled_from(mutants))
    assert broken_rule(problem, [*steps[:number], mutant, *steps[number + 1 :]])


def _schedule(problem: DisseminationProblem) -> tuple[StepSends, ...]:
    found = disseminate(problem).value
    assert found is not None
    return found


def test_no_time_is_no_proof() -> None:
    at = load_fabric("dgx1")
    problem = dissemination_problem(at, spreads("allgather", 8, 6), 3, 7)
    for solver in Solver:
        assert disseminate(problem, SearchLimits(0.0), solver).status is Status.UNKNOWN


@pytest.mark.parametrize("collective", ["allreduce", "reduce", "reduce_scatter", "nothing"])
def test_what_adds_is_no_dissemination(collective: str) -> None:
    with pytest.raises(InputError, match="none of"):
        spreads(collective, 4, 1)


def test_impossible_questions_are_refused() -> None:
    fabric = load_fabric("ring:4")
    chunks = spreads("allgather", 4, 1)
    for steps, rounds in ((0, 1), (2, 1)):
        with pytest.raises(InputError):
            dissemination_problem(fabric, chunks, steps, rounds)
    with pytest.raises(InputError, match="at least 1"):
        dissemination_problem(fabric, (), 2, 2)
    problem = dissemination_problem(fabric, chunks, 2, 2)
    with pytest.raises(InputError, match="permute"):
        replace(
            problem, symmetries=(ScheduleSymmetry((0, 0, 1, 2), tuple(range(8)), (0, 1, 2, 3)),)
        )


@pytest.mark.parametrize("fabric", ["ring:5", "dgx1", "torus:3x4", "mesh:8", "dgx-a100", "dgx1:2"])
@pytest.mark.parametrize("collective", ["allgather", "alltoall", "broadcast", "gather"])
def test_variables_are_counted_before_they_are_made(fabric: str, collective: str) -> None:
    made = load_fabric(fabric)
    routes = spreads(collective, made.ranks, 2)
    for rung in list(ladder(made, collective, 2))[-2:]:
        problem = replace(dissemination_problem(made, routes, 4, 6), symmetries=rung[1])
        ports = kept_ports(problem.edges, problem.symmetries)
        found = _variables(cp_model.CpModel(), problem, ports)
        count = variable_count(problem, port_times(problem, ports, found.send_of), found.hold_of)
        assert count == len(found.send) + len(found.hold)

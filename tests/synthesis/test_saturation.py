"""Capacities that are full because all they carry is needed: what counting says is so."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given

from p2smt.encodings.schedule.dissemination.cpsat import fewest_messages, full_capacities
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.schedule import ChunkRoute, DisseminationProblem
from p2smt.solvers.ask import Solver
from p2smt.synthesis.schedule_replay import disseminate, dissemination_problem, spreads
from tests.synthesis.test_dissemination import problems


@given(problems())
def test_full_capacities_are_full_in_every_schedule(problem: DisseminationProblem) -> None:
    """Of the other solver, which is not told."""
    found = disseminate(problem, solver=Solver.Z3).value
    if found is None:
        return
    assert sum(len(step.sends) for step in found) >= fewest_messages(problem)
    for step in found:
        loads = Counter(k for _, e in step.sends for k in problem.edges[e][2])
        for k in full_capacities(problem):
            assert loads[k] == problem.capacities[k] * step.rounds


@pytest.mark.parametrize(
    ("name", "collective", "steps", "rounds", "chunks", "full"),
    [
        ("dgx1", "allgather", 3, 7, 6, 32),  # 42 messages come to a rank, over 6 links in 7 rounds
        ("dgx1", "allgather", 3, 8, 6, 0),
        ("dgx2", "allgather", 2, 15, 1, 32),  # ports out as well: all messages are 240
        ("ring:4", "allgather", 2, 3, 2, 8),
        ("ring:4", "alltoall", 2, 2, 1, 8),
        ("torus:4x4", "alltoall", 4, 8, 1, 64),
        ("torus:4x4", "alltoall", 4, 9, 1, 0),
        ("ring:3", "scatter", 1, 1, 1, 2),
    ],
)
def test_full_capacities_of_known_points(
    name: str, collective: str, steps: int, rounds: int, chunks: int, full: int
) -> None:
    fabric = load_fabric(name)
    routes = spreads(collective, fabric.ranks, chunks)
    problem = dissemination_problem(fabric, routes, steps, rounds)
    assert len(full_capacities(problem)) == full


def test_a_capacity_that_others_load_says_nothing() -> None:
    edges = ((0, 1, (0,)), (1, 0, (0, 1)))
    chunks = (ChunkRoute(0, (1,)),)
    problem = DisseminationProblem(2, edges, (Fraction(1), Fraction(1)), chunks, 1, 1)
    assert full_capacities(problem) == frozenset()

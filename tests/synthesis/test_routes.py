"""Routes that load a fabric evenly: shortest, images of one another, and as even as they can be."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from p2smt.encodings.schedule.orbits import even_routes, send_firsts
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.schedule import DisseminationProblem
from p2smt.result import SearchLimits, Status
from p2smt.synthesis.group_order import ladder
from p2smt.synthesis.schedule_replay import disseminate, dissemination_problem, spreads


def symmetric(name: str, steps: int, rounds: int) -> DisseminationProblem:
    """An all-to-all with the symmetries of the largest group of use."""
    fabric = load_fabric(name)
    routes = spreads("alltoall", fabric.ranks, 1)
    plain = dissemination_problem(fabric, routes, steps, rounds)
    _, lifted = next(ladder(fabric, "alltoall", 1))
    return replace(plain, symmetries=lifted)


@pytest.mark.parametrize("name", ["ring:4", "ring:5", "cube:3", "torus:4x4", "dgx1"])
def test_every_chunk_has_one_shortest_way(name: str) -> None:
    problem = symmetric(name, 4, 60)
    firsts, routes = send_firsts(problem), even_routes(problem)
    assert routes is not None
    kept = {int(firsts[one]) for one in routes}
    for c, chunk in enumerate(problem.chunks):
        ends = [edge[:2] for e, edge in enumerate(problem.edges) if int(firsts[c, e]) in kept]
        after, rank, length = dict(ends), chunk.root, 0
        assert len(after) == len(ends)
        while rank != chunk.goals[0]:
            rank, length = after[rank], length + 1
        assert length == len(ends) == problem.distances([chunk.root])[chunk.goals[0]]


def test_the_links_of_a_torus_are_used_alike() -> None:
    problem = symmetric("torus:4x4", 4, 8)
    firsts, routes = send_firsts(problem), even_routes(problem)
    assert routes is not None
    kept = {int(firsts[one]) for one in routes}
    loads = Counter(
        e
        for c in range(len(problem.chunks))
        for e in range(len(problem.edges))
        if int(firsts[c, e]) in kept
    )
    assert set(loads.values()) == {8}


def test_chunks_of_several_goals_have_no_routes() -> None:
    fabric = load_fabric("ring:4")
    problem = dissemination_problem(fabric, spreads("allgather", 4, 1), 2, 2)
    assert even_routes(problem) is None


def test_where_even_routes_are_no_help_the_whole_model_is_solved() -> None:
    assert disseminate(symmetric("ring:4", 2, 2)).status is Status.FEASIBLE
    assert disseminate(symmetric("ring:4", 3, 3)).status is Status.FEASIBLE
    assert disseminate(symmetric("ring:6", 3, 4)).status is Status.INFEASIBLE


@pytest.mark.exhaustive
def test_all_to_all_without_slack_on_64_ranks() -> None:
    assert disseminate(symmetric("torus:8x8", 8, 64), SearchLimits(120)).status is Status.FEASIBLE

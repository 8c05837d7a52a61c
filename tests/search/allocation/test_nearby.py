"""Orders near the best and other bandwidths, against every order costed device by device."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import p2smt
from p2smt.cluster.file import parse_topology
from p2smt.cost.bounds import single_time
from p2smt.errors import InputError
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import objective
from p2smt.result import SearchLimits, Status
from p2smt.search.allocation.cell_grids import grids
from p2smt.search.sensitivity import FACTORS
from tests.cli.tools import RACKS
from tests.cluster.test_hosts import uneven

REQUESTS = (p2smt.reduce("dp=64MiB"), p2smt.send("pp=1MiB*3"))


def problem_of(axes: str = "dp=2,pp=2,tp=2") -> Problem:
    return Problem(parse_topology(RACKS, "racks"), p2smt.parse_axes(axes), REQUESTS)


def every_time(problem: Problem) -> list[float]:
    """The objective of each order: hosts under one switch are exchangeable and count once."""
    hosts = problem.topology.hosts
    assert hosts is not None
    each = problem.topology.devices_under(problem.topology.node_level)
    under = problem.topology.devices_under(0) // each
    found: dict[object, float] = {}
    for grid in grids(problem):
        for slots in permutations(hosts.slots, grid.cells):
            key = grid, tuple(slot // under for slot in slots)
            if key not in found:
                found[key] = _objective(problem, grid.ranks(np.array(slots)))
    return list(found.values())


def _objective(problem: Problem, ranks: np.ndarray) -> float:
    seconds = (
        single_time(problem.topology, ranks, problem.axis_indices(r), r.kind, r.payload_bytes)
        for r in problem.requests
    )
    return objective(problem, tuple(one.seconds for one in seconds))


@pytest.mark.parametrize("within", [0.0, 0.1, 20.0])
def test_orders_near_the_best_are_those_of_brute_force(within: float) -> None:
    problem = problem_of()
    found = p2smt.solve_on_hosts(problem, within=within)
    assert found.allocation is not None
    near = found.allocation.near
    assert near is not None
    assert found.best is not None
    times = every_time(problem)
    least = min(times)
    expected = Counter(f"{one:.6g}" for one in times if one <= least * (1 + within) * (1 + 1e-9))
    counted: Counter[str] = Counter()
    for one in near.orders:
        counted[f"{one.objective_s:.6g}"] += one.alike
        assert objective(problem, one.seconds) == one.objective_s
        assert len(set(one.hosts)) == 4
    assert counted == expected
    assert (near.status, near.looked, near.count) == (
        Status.COMPLETE,
        len(times),
        sum(expected.values()),
    )
    assert [one.objective_s for one in near.orders] == sorted(o.objective_s for o in near.orders)


def test_each_bandwidth_is_solved_again() -> None:
    problem = problem_of("pp=2,dp=2,tp=2")
    found = p2smt.solve_on_hosts(problem, sensitivity=True)
    topology = problem.topology
    assert [(one.level, one.factor) for one in found.sensitivity] == [
        (name, factor) for name in topology.names for factor in FACTORS
    ]
    for one in found.sensitivity:
        at = topology.names.index(one.level or "")
        changed = replace(problem, topology=topology.with_bandwidth_factor(at, one.factor))
        assert one.status is Status.OPTIMAL
        assert one.optimum_s == pytest.approx(min(every_time(changed)), rel=1e-9)
        assert one.winner_s >= one.optimum_s * (1 - 1e-12)


def test_a_time_limit_lists_no_orders_as_if_they_were_all() -> None:
    found = p2smt.solve_on_hosts(problem_of(), within=1.0, limits=SearchLimits(time_limit_s=0.0))
    assert found.allocation is not None
    near = found.allocation.near
    assert near is not None
    assert near.status is Status.TRUNCATED


def test_what_cannot_be_listed_is_refused_before_anything_is_solved() -> None:
    many = Problem(uneven(), p2smt.parse_axes("pp=4,dp=4,tp=2"), REQUESTS)
    with pytest.raises(InputError, match="orders of hosts where at most 5,000"):
        p2smt.solve_on_hosts(many, within=0.05)

"""What orders send over uplinks, and when that matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import p2smt
from p2smt.cluster.topology import Topology
from p2smt.cost.rank_list import single_time
from p2smt.parallelism.request import Problem
from p2smt.search.allocation.crossings import (
    matters_from,
    non_blocking,
    uplink_crossings,
)
from p2smt.search.allocation.grids import grids
from p2smt.search.allocation.orders import host_order
from tests.cluster.test_hosts import uneven
from tests.search.allocation.test_optimum import problems


def test_bytes_over_each_uplink() -> None:
    problem = Problem(uneven(), p2smt.parse_axes("pp=4,dp=4,tp=2"), (p2smt.send("pp=1MiB*3"),))
    ranks = host_order(problem, problem.topology.hosts.names)  # type: ignore[union-attr]
    found = {(one.level, one.switch): one for one in uplink_crossings(problem, ranks)}
    assert list(found) == [
        ("spine", "s0"),
        ("spine", "s1"),
        ("leaf", "leaf0"),
        ("leaf", "leaf1"),
        ("leaf", "leaf2"),
    ]
    message = 3 * 2**20 * 2  # times, and two devices a node
    assert found["leaf", "leaf0"].out_bytes == 4 * message
    assert found["leaf", "leaf1"].into_bytes == 4 * message
    assert found["leaf", "leaf2"].into_bytes == found["spine", "s1"].into_bytes == 4 * message
    assert found["leaf", "leaf2"].out_bytes == found["spine", "s0"].into_bytes == 0


@given(problems())
def test_the_worst_uplink_is_what_the_cost_model_has(problem: Problem) -> None:
    """Bytes over the nominal rate, each request alone, against the times of levels at full rate."""
    topology = problem.topology
    levels = tuple(
        replace(level, link=replace(level.link, efficiency=())) for level in topology.levels
    )
    topology = replace(topology, levels=levels, library="")
    for request in problem.requests:
        alone = replace(problem, topology=topology, requests=(request,))
        grid = grids(alone)[0]
        ranks = grid.ranks(np.array(topology.hosts.slots[: grid.cells]))  # type: ignore[union-attr]
        step = single_time(
            topology, ranks, alone.axis_indices(request), request.kind, request.payload_bytes
        )
        for j in range(topology.node_level):
            busiest = _busiest(alone, topology, ranks, j)
            wanted = step.level_wire_s[j] * request.times
            assert busiest == pytest.approx(wanted, rel=1e-9, abs=1e-15)


def _busiest(problem: Problem, topology: Topology, ranks: object, level: int) -> float:
    hosts, name = topology.hosts, topology.names[level]
    assert hosts is not None
    parts = topology.uplink_parts(level)
    rate = topology.levels[level].link.nominal_bytes_per_s
    found = [0.0]
    for one in uplink_crossings(problem, ranks):  # type: ignore[arg-type]
        if one.level == name:
            part = parts[hosts.switches[level].index(one.switch)] if parts else 1.0
            found.append(max(one.out_bytes, one.into_bytes) / (rate * part))
    return max(found)


def scaled(factor: float) -> Topology:
    """Leaves and spines of so much of their bandwidth."""
    topology = uneven()
    return topology.with_bandwidth_factor(0, factor).with_bandwidth_factor(1, factor)


def test_non_blocking_switches_are_told() -> None:
    assert not non_blocking(uneven())
    assert non_blocking(scaled(10.0))
    axes = p2smt.parse_axes("pp=4,dp=4,tp=2")
    requests = (p2smt.reduce("dp=1GiB"), p2smt.send("pp=16MiB*8"))
    found = p2smt.solve_on_hosts(Problem(scaled(10.0), axes, requests), programs=False)
    assert "non-blocking" in found.notes[0]
    assert found.status is p2smt.Status.OPTIMAL
    assert not p2smt.solve_on_hosts(Problem(uneven(), axes, requests), programs=False).notes


def test_the_oversubscription_from_which_an_order_matters() -> None:
    axes = p2smt.parse_axes("pp=4,dp=4,tp=2")
    problem = Problem(scaled(1e3), axes, (p2smt.send("pp=16MiB*8"),))
    ranks = host_order(problem, problem.topology.hosts.names)  # type: ignore[union-attr]
    # four of four nodes of a leaf send over its uplink what each sends over its own link
    assert matters_from(problem, ranks) == pytest.approx(1.0)
    inside = Problem(scaled(1e3), axes, (p2smt.reduce("tp=16MiB"),))
    assert matters_from(inside, ranks) is None

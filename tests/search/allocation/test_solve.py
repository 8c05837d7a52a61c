"""Answers on named hosts."""

from __future__ import annotations

import pytest

import p2smt
from p2smt.errors import InputError
from tests.cluster.test_hosts import uneven

REQUESTS = (p2smt.reduce("dp=1GiB"), p2smt.send("pp=16MiB*8"))


def test_an_answer_is_no_worse_than_every_baseline() -> None:
    problem = p2smt.Problem(uneven(), p2smt.parse_axes("pp=4,dp=4,tp=2"), REQUESTS)
    listed = uneven().hosts.names[::-1]  # type: ignore[union-attr]
    found = p2smt.solve_on_hosts(problem, listed)
    assert found.best is not None
    assert found.allocation is not None
    assert found.default is not None
    assert found.allocation.listed == listed
    assert found.allocation.idle == ()
    assert found.default.name == "listed"
    orders = p2smt.baselines(problem, listed)
    assert found.best.objective_s <= min(order.objective_s for order in orders)
    assert found.bound_s <= found.best.objective_s


def test_hosts_that_are_not_needed_stay_idle() -> None:
    problem = p2smt.Problem(uneven(), p2smt.parse_axes("pp=2,dp=3,tp=2"), REQUESTS)
    found = p2smt.solve_on_hosts(problem)
    assert found.allocation is not None
    assert len(found.allocation.idle) == 10
    hosts = found.problem.topology.hosts
    assert hosts is not None
    assert not set(hosts.names) & set(found.allocation.idle)
    assert len(hosts.names) == 6


def test_too_few_hosts_and_clusters_without_names() -> None:
    problem = p2smt.Problem(uneven(), p2smt.parse_axes("pp=2,dp=4,tp=2"), REQUESTS)
    with pytest.raises(InputError, match="fill 8 nodes"):
        p2smt.solve_on_hosts(problem, ["n01", "n02"])
    nameless = p2smt.load_topology("dgx-a100:2")
    with pytest.raises(InputError, match="names no hosts"):
        p2smt.solve_on_hosts(p2smt.Problem(nameless, problem.axes, REQUESTS))
    with pytest.raises(InputError, match="multiple of the 2 devices"):
        p2smt.solve_on_hosts(p2smt.Problem(uneven(), p2smt.parse_axes("pp=3,dp=3"), REQUESTS))

"""Answers on named hosts."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

import p2smt
from p2smt.cluster.file import parse_topology
from p2smt.cluster.library.registry import library_of
from p2smt.errors import InputError
from p2smt.result import SearchLimits, Status
from p2smt.search.allocation.cell_grids import host_order, order_cost
from p2smt.search.allocation.host_search import fastest_on_hosts
from tests.cli.tools import RACKS, TINY
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


def test_libraries_of_mpi_price_no_order_over_switches() -> None:
    """Groups that lie unevenly have no price by their algorithms, and a ring is none."""
    cluster = replace(uneven(), library=library_of("openmpi-5"))
    problem = p2smt.Problem(cluster, p2smt.parse_axes("pp=2,dp=3,tp=2"), REQUESTS)
    with pytest.raises(InputError, match="library openmpi-5: does not price every order"):
        p2smt.solve_on_hosts(problem)


@pytest.mark.parametrize("many", [1, 2])
def test_hosts_under_one_switch_alone(many: int) -> None:
    """No uplink is theirs, and inside a node a group has one cell."""
    cluster = parse_topology(TINY + 'hosts: "n[1-2]"\n', "tiny")
    axes = p2smt.parse_axes(f"dp={many},tp=4")
    found = p2smt.solve_on_hosts(p2smt.Problem(cluster, axes, (p2smt.reduce("tp=1MiB"),)))
    assert found.status is Status.OPTIMAL
    assert found.best is not None
    assert found.best.objective_s > 0


@pytest.mark.parametrize("axes", ["dp=2,pp=2,tp=2", "pp=2,dp=2,tp=2"])
@pytest.mark.parametrize("requests", [("dp=64MiB", "pp=1MiB"), ("dp=1MiB", "pp=64MiB")])
def test_of_orders_of_equal_time_the_one_that_loads_unstated_uplinks_least(
    axes: str, requests: tuple[str, str]
) -> None:
    """Against every order of the same hosts, priced where these uplinks are slow."""
    problem, hosts = _unstated(axes, requests), ["n1", "n2", "n3", "n4"]
    found = p2smt.solve_on_hosts(problem, hosts)
    assert found.best is not None
    assert found.best.rank_list is not None
    assert found.status is Status.OPTIMAL
    used = found.problem
    slow = replace(used, topology=used.topology.with_bandwidth_factor(0, 1 / 64))
    ranks = [host_order(slow, order) for order in permutations(hosts)]
    least_s = min(order_cost(slow, one, "order").objective_s for one in ranks)
    best = order_cost(slow, found.best.rank_list.rank_tensor(), "found")
    assert best.objective_s == pytest.approx(least_s)
    first = fastest_on_hosts(problem, hosts, SearchLimits())
    assert first.best is not None
    assert first.best.objective_s == pytest.approx(found.best.objective_s)


def _unstated(axes: str, requests: tuple[str, str]) -> p2smt.Problem:
    """Racks whose uplinks do not block and whose bandwidth nobody stated; tp within nodes."""
    link = "{name: rack, size: 2, link: {kind: switch, bandwidth: 1"
    text = RACKS.replace(link, f"{link[:-1]}3").replace("5 GB/s", "30 GB/s") + "assumed: [rack]\n"
    names = [part.partition("=")[0] for part in axes.split(",")]
    within = p2smt.parse_rule("tp within node", True, names, ["rack", "node", "gpu"])
    asked = (p2smt.reduce(requests[0]), p2smt.send(requests[1]))
    return p2smt.Problem(
        parse_topology(text, "racks"), p2smt.parse_axes(axes), asked, rules=(within,)
    )


@pytest.mark.parametrize("assumed", ["", "assumed: [rack]\n"])
def test_an_answer_has_the_limits_that_were_given(assumed: str) -> None:
    problem = p2smt.Problem(
        parse_topology(RACKS + assumed, "racks"), p2smt.parse_axes("dp=2,pp=2,tp=2"), REQUESTS
    )
    limits = SearchLimits(time_limit_s=30.0, seed=3)
    assert p2smt.solve_on_hosts(problem, ["n1", "n2", "n3", "n4"], limits=limits).limits == limits

"""Orders side by side: their figures, their gaps, and what is said where bandwidths are unknown."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import p2smt
from p2smt.api.compare import OrderGiven
from p2smt.cluster.file import load_topology, parse_topology
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem, all_to_all, parse_axes, reduce, send
from p2smt.result import SAME, Status
from p2smt.search.allocation.cell_grids import host_order
from p2smt.search.comparison import figures
from tests.cli.tools import RACKS

REQUESTS = (reduce("dp=64MiB"), send("pp=1MiB*4"))


def racks(text: str = RACKS) -> Topology:
    return parse_topology(text, "racks")


def problem(text: str = RACKS) -> Problem:
    return Problem(racks(text), parse_axes("dp=2,pp=2,tp=2"), REQUESTS)


@st.composite
def orders(draw: st.DrawFn) -> IntArray:
    """Any order of four of the hosts, ranks following it."""
    names = draw(st.permutations(["n1", "n2", "n3", "n4", "n5"]))
    return host_order(problem(), names[:4])


def test_gaps_are_to_the_best_order() -> None:
    found = p2smt.compare(problem(), hosts=["n1", "n2", "n3", "n4"])
    best = found.best.best
    assert best is not None
    assert found.best_figures is not None
    assert found.best_figures.order.objective_s == pytest.approx(best.objective_s)
    for one in found.orders:
        time_s = one.figures.order.objective_s
        assert time_s >= best.objective_s * (1 - SAME)
        assert one.gap == pytest.approx(time_s / best.objective_s - 1, abs=2 * SAME)
        if found.best.bound_s > 0:
            assert one.bound_gap is not None
            assert one.gap is not None
            assert one.bound_gap >= one.gap - 1e-6
    names = [one.name for one in found.orders]
    assert names[:3] == ["listed", "alphabetical", "sorted by leaf"]


def test_orders_of_python_values() -> None:
    mesh = np.arange(8).reshape(2, 2, 2)
    given: dict[str, OrderGiven | IntArray] = {
        "mesh": mesh,
        "list": list(range(8)),
        "hosts": ["n1", "n2", "n3", "n4"],
        "text": "listed",
        "axes": "tp-pp-dp",
    }
    found = p2smt.compare(problem(), given, hosts=["n1", "n2", "n3", "n4"])
    assert [one.name for one in found.orders] == list(given)
    assert len({one.figures.order.objective_s for one in found.orders}) == 1
    with pytest.raises(InputError, match="no whole numbers"):
        p2smt.compare(problem(), {"mine": [0.5] * 8}, hosts=["n1", "n2", "n3", "n4"])
    with pytest.raises(InputError, match="is named twice"):
        p2smt.compare(problem(), ["listed", "listed"])


def test_a_regular_cluster_is_compared_with_its_best_matrix() -> None:
    wide = Problem(load_topology("dgx-h100:4"), parse_axes("dp=8,tp=4"), (reduce("tp=64MiB"),))
    found = p2smt.compare(wide, ["default", "tp-dp", "dp-tp"])
    assert found.status is Status.OPTIMAL
    default, same, other = found.orders
    assert (default.gap, same.gap) == (0.0, 0.0)
    assert other.gap is not None
    assert other.gap > 1
    assert other.figures.order.matrix == ((1, 8), (4, 1))
    assert default.figures.decisive[0].owner is None
    with pytest.raises(InputError, match=r"sizes|devices|product"):
        p2smt.compare(replace(wide, axes=parse_axes("dp=4,tp=4")), ["default"])


def test_an_order_that_no_matrix_expresses_has_no_bound() -> None:
    """Levels 6, 6 with axes 4, 9: the default order is none of a matrix."""
    text = """
name: six
library: none
levels:
  - {name: node, size: 6, link: {kind: switch, bandwidth: 10 GB/s, latency: 1 us}}
  - {name: gpu, size: 6, link: {kind: switch, bandwidth: 100 GB/s, latency: 1 us}}
"""
    odd = Problem(parse_topology(text, "six"), parse_axes("dp=4,tp=9"), (reduce("tp=64MiB"),))
    (default,) = p2smt.compare(odd, ["default"]).orders
    assert default.figures.order.matrix is None
    assert default.bound_gap is None
    assert default.gap is not None


@given(orders(), st.sampled_from([1.0, 1.5, 2.0, 3.0, 6.0, 20.0]))
def test_uplinks_slow_an_order_down_from_what_is_said_on(ranks: IntArray, times: float) -> None:
    """Without a library times follow bandwidths alone, so that both sides can be priced."""
    assumed = problem(RACKS + "assumed: [rack]\n")
    one = figures(assumed, ranks, "order")
    assert one.matters_from is not None
    slower = replace(assumed, topology=assumed.topology.with_bandwidth_factor(0, 1 / times))
    other = figures(slower, ranks, "order")
    if times <= one.matters_from:
        assert other.order.objective_s == pytest.approx(one.order.objective_s)
    elif math.isfinite(one.matters_from) and times > 1:
        assert other.order.objective_s > one.order.objective_s


def test_unknown_bandwidths_are_told_apart_by_crossings() -> None:
    found = p2smt.compare(problem(RACKS + "assumed: [rack]\n"), hosts=["n1", "n2", "n3", "n4"])
    assert not found.times_known
    assert found.best_figures is not None
    crossed = [dict(one.figures.crossings)["rack"] for one in found.orders]
    assert dict(found.best_figures.crossings)["rack"] <= min(crossed)


@given(orders())
def test_the_switch_that_decides_is_named(ranks: IntArray) -> None:
    asked = replace(problem(), requests=(all_to_all("dp=1GiB"), send("pp=1GiB")))
    for one in figures(asked, ranks, "order").decisive:
        hosts = asked.topology.hosts
        assert hosts is not None
        if one.level == "rack":
            assert one.owner in hosts.switches[0]
        elif one.level == "node":
            assert one.owner in hosts.names
        else:
            assert one.owner is None

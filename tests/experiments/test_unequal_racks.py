"""Rank orders on unequal racks: the committed results, what is predicted of them, a tiny run."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.testbed.calibration import cluster_topology
from experiments.testbed.network import why_not
from experiments.testbed.written import results
from experiments.unequal_racks import page, study
from experiments.unequal_racks.cases import (
    HOSTS,
    RACKS,
    alone_s,
    every_order,
    network,
    orders,
    predicted_s,
    question,
    solved,
)
from experiments.unequal_racks.summary import beats, errors, shared, summary
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.request import Problem
from p2smt.plans.file import plan_data, read_plan
from p2smt.runtime.programs.plan_job import Changes, plan_job

RATE, PAYLOAD = 1e6, 3 * 10**6
EDGE_S, MESSAGE_S = 4.0, 3.0
"""A ring over three sends 4/3 of the payload over each edge; a send, the payload."""


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return results.read(study.RESULTS)


@pytest.fixture(scope="module")
def asked() -> Problem:
    return question(network(RATE), PAYLOAD)


def by_hand(hosts: tuple[str, ...]) -> tuple[float, float]:
    """Seconds of the wire of the most loaded uplink: of the all-reduces, and of the sends."""
    rack = {
        host: number
        for number, end in enumerate(np.cumsum(RACKS))
        for host in HOSTS[end - RACKS[number] : end]
    }
    where = np.array([rack[host] for host in hosts]).reshape(2, 3)
    edges = [(a, b) for row in where for a, b in zip(row, np.roll(row, -1), strict=True)]
    rings = [sum(a == r != b for a, b in edges) for r in range(3)]
    sends = list(where.T)
    away = [sum(a == r != b for a, b in sends) for r in range(3)]
    into = [sum(b == r != a for a, b in sends) for r in range(3)]
    return max(1, *rings) * EDGE_S, max(1, *away, *into) * MESSAGE_S


def test_predictions_are_those_of_the_most_loaded_uplink(asked: Problem) -> None:
    """Counted by hand for a twelfth of all orders; calls and hops take under a hundredth."""
    for hosts in list(permutations(HOSTS))[::12]:
        found = predicted_s(asked, hosts)
        assert found == pytest.approx(by_hand(hosts), rel=0.01)
        assert alone_s(asked, hosts) == pytest.approx([EDGE_S, EDGE_S], rel=0.01)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_answer_is_the_best_of_all_orders(asked: Problem, data: dict[str, Any]) -> None:
    solution, every = solved(asked), every_order(asked)
    best, count = every[0]
    assert [n for _, n in every] == [n for _, n in data["every_order"]]
    assert sum(n for _, n in every) == 720
    assert solution.alternatives[0].objective_s == pytest.approx(best, rel=1e-5)
    assert count < 720
    *_, chosen = orders(asked, solution)
    assert sum(predicted_s(asked, chosen.hosts)) == pytest.approx(best, rel=1e-5)


def test_orders_put_ranks_on_hosts(asked: Problem) -> None:
    names = {order.name: order.hosts for order in orders(asked, solved(asked))}
    assert names["alphabetical"] == ("n1", "n2", "n3", "n4", "n5", "n6")
    assert names["sorted by leaf"] == HOSTS
    assert names["sorted, axes exchanged"] == ("n1", "n5", "n6", "n3", "n2", "n4")
    assert all(sorted(hosts) == sorted(HOSTS) for hosts in names.values())


def test_what_is_timed(asked: Problem) -> None:
    small, timed = study.job(asked, 64), study.measured_job(asked)
    assert [request.groups for request in small.requests] == [
        ((0, 1, 2), (3, 4, 5)),
        ((0, 3), (1, 4), (2, 5)),
    ]
    sizes = [request.payload_bytes for request in timed.requests]
    assert sizes == [study.SMALL_BYTES] * 2 + [PAYLOAD] * 4
    assert [request.groups for request in timed.requests[4:]] == [((0, 1, 2),), ((3, 4, 5),)]


def test_what_is_timed_is_the_plan_s_job(asked: Problem, tmp_path: Path) -> None:
    """As `p2smt run` executes the plan of the chosen order, with the same prediction."""
    solution = solved(asked)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_data(solution, solution.alternatives[0])))
    plan = plan_job(read_plan(str(path)), "plan", Changes())
    mine = study.job(asked, PAYLOAD)
    assert plan.ranks == mine.ranks == 6
    for found, expected in zip(plan.requests, mine.requests, strict=True):
        assert (found.kind, found.groups) == (expected.kind, expected.groups)
        assert [step.groups for step in found.steps] == [step.groups for step in expected.steps]
    *_, chosen = orders(asked, solution)
    told = [request.predicted_s for request in plan.requests]
    assert told == pytest.approx(predicted_s(asked, chosen.hosts), rel=1e-5)


# The committed results


def topology_of(data: dict[str, Any]) -> Topology:
    return cluster_topology(data["cluster"])


def test_the_committed_cluster_is_the_one_of_the_study(data: dict[str, Any]) -> None:
    rate = data["cluster"]["uplink_mbit_per_s"] * 1e6 / 8
    asked = question(network(rate), data["requests"][0][2])
    assert topology_of(data) == asked.topology
    assert data["cluster"]["rack_mbit_per_s"] == data["cluster"]["uplink_mbit_per_s"]
    assert [[r.kind.value, *r.axes, r.payload_bytes] for r in asked.requests] == data["requests"]
    assert [r[2] for r in data["requests"]] == [2**23, 2**23]
    solution = solved(asked)
    assert data["solved"]["status"] == solution.status.value == "optimal"
    assert data["solved"]["objective_s"] == pytest.approx(data["every_order"][0][0], rel=1e-5)
    for order in data["orders"]:
        assert order["predicted_s"] == predicted_s(asked, order["hosts"])
        assert order["alone_predicted_s"] == alone_s(asked, order["hosts"])


def test_the_chosen_order_beats_the_alphabetical_one(data: dict[str, Any]) -> None:
    assert data["verified"]
    assert data["repeat"] == 7
    assert data["summary"]["chosen_beats_alphabetical"] is True
    for order in data["orders"]:
        times = [*order["times_s"], *order["alone_times_s"]]
        assert [len(one) for one in times] == [7] * 4
    ratios = {one["name"]: one for one in data["summary"]["orders"]}["alphabetical"]
    assert ratios["over_chosen_predicted"] > 1
    assert ratios["over_chosen_measured"] > 1


def test_the_summary_and_the_page_follow_from_the_results(data: dict[str, Any]) -> None:
    assert json.loads(json.dumps(summary(data))) == data["summary"]
    assert page.PAGE.read_text(encoding="utf-8") == page.page(data)


# Figures by hand


def order(name: str, *totals: float) -> dict[str, Any]:
    """Half of each total is the all-reduce's; predicted: 1 s each, and each group alone 1 s."""
    half = [total / 2 for total in totals]
    return {
        "name": name,
        "predicted_s": [1.0, 1.0],
        "times_s": [half, half],
        "alone_predicted_s": [1.0, 1.0],
        "alone_times_s": [half, half],
    }


def test_an_order_beats_another_by_more_than_the_spread() -> None:
    slow = order("alphabetical", 4.0, 4.5, 4.2)
    assert beats(order("chosen", 3.6, 3.5, 3.4), slow)
    assert not beats(order("chosen", 3.9, 3.8, 3.7), slow)
    assert not beats(order("chosen", 3.5, 3.0, 3.8), slow)


def test_the_summary_says_who_wins() -> None:
    found = summary({"orders": [order("alphabetical", 4.0, 4.0), order("chosen", 2.0, 2.2)]})
    assert found["chosen_beats_alphabetical"] is True
    assert [one["over_chosen_predicted"] for one in found["orders"]] == [1.0, 1.0]
    assert found["orders"][0]["over_chosen_measured"] == pytest.approx(4 / 2.1, rel=1e-3)
    assert found["orders"][1]["spread_s"] == pytest.approx(0.2)
    assert errors([order("x", 4.0)]) == [-0.5, -0.5]


def test_errors_are_told_apart_where_rings_share_an_uplink() -> None:
    apart = {**order("chosen", 4.0), "predicted_s": [2.0, 1.0]}
    plain, both = shared({"orders": [order("alphabetical", 4.0), apart]})
    assert (plain, both) == ([-0.5, -0.5, -0.5], [0.0])


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_tiny_run(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    out = tmp_path / "found.json"
    study.main(["--payload", "256KiB", "--repeat", "1", "--out", str(out)])
    found = results.read(out)
    assert found["verified"]
    assert [order["name"] for order in found["orders"]] == [
        *("alphabetical", "sorted by leaf", "sorted, axes exchanged", "chosen")
    ]
    assert found["summary"] == json.loads(json.dumps(summary(found)))
    assert "hosts of ranks 0 to 5" in page.page(found)


def test_the_page_takes_no_arguments() -> None:
    with pytest.raises(InputError, match="1 arguments: none is expected"):
        page.main(["x"])

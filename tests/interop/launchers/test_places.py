"""Where ranks lie: the host and the device of each, by code of its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from p2smt.errors import InputError
from p2smt.files.validation import validated
from p2smt.interop.places import PlacedPlan, by_host, host_notes, launched, placed
from p2smt.plans.file_model import PlanModel
from tests.interop.launchers.plans import placed_plan, placed_plans, plan_data, topology, unnamed

LEAVES = (("b1", "a7"), ("c3", "a1", "b2"))


@given(placed_plans())
def test_a_rank_is_on_the_host_of_its_device(plan: PlacedPlan) -> None:
    where = plan.problem.topology
    inside = where.sizes[where.node_level + 1 :]
    for rank, (place, device) in enumerate(zip(plan.places, plan.plan.ranks, strict=True)):
        digits = where.coordinates(device)[where.node_level + 1 :]
        local = sum(d * math.prod(inside[i + 1 :]) for i, d in enumerate(digits))
        expected = (rank, where.host_of(device), local, device)
        assert (place.rank, place.host, place.local_rank, place.device) == expected


@given(placed_plans())
def test_every_host_has_as_many_ranks(plan: PlacedPlan) -> None:
    found = sorted((place.host, place.local_rank) for place in plan.places)
    assert found == sorted((host, i) for host in plan.hosts for i in range(plan.per_host))


@given(placed_plans())
def test_ranks_host_by_host_are_blocks(plan: PlacedPlan) -> None:
    """They are a permutation; hosts come in the order of their first ranks."""
    again = by_host(plan)
    assert [place.rank for place in again.places] == list(range(len(plan.places)))
    assert [place.local_rank for place in again.places] == [*range(plan.per_host)] * len(plan.hosts)
    for place, number in zip(plan.places, launched(plan), strict=True):
        other = again.places[number]
        assert (other.host, other.device) == (place.host, place.device)
    order = list(dict.fromkeys(place.host for place in plan.places))
    assert list(dict.fromkeys(place.host for place in again.places)) == order


def test_started_host_by_host_a_mesh_increases_along_every_axis() -> None:
    """Cells of any hosts, devices inside split over both axes: numbers by cell, then by device."""
    where = topology((*LEAVES[:1], LEAVES[1][:2]), (2, 2))
    assert where.hosts is not None
    cells = np.array(where.hosts.slots)[[2, 0, 3, 1]].reshape(2, 2)
    devices = cells[:, None, :, None] * 4 + np.arange(4).reshape(1, 2, 1, 2)
    data = plan_data(where, {"dp": 4, "tp": 4}, devices.reshape(-1).tolist())
    numbers = np.array(launched(placed(validated(PlanModel, data, "test"), "test"))).reshape(4, 4)
    assert sorted(numbers.ravel()) == list(range(16))
    assert (np.diff(numbers, axis=0) > 0).all()
    assert (np.diff(numbers, axis=1) > 0).all()


def test_nodes_without_names_are_numbered_or_named() -> None:
    where = unnamed(2, (2,))
    assert [place.host for place in placed_plan(where, [0, 2, 1, 3]).places] == [
        *("node0", "node1", "node0", "node1")
    ]
    named = placed_plan(where, [3, 2, 1, 0], ("z", "a"))
    assert [(place.host, place.local_rank) for place in named.places] == [
        *(("a", 1), ("a", 0), ("z", 1), ("z", 0))
    ]


def test_one_node_is_one_host() -> None:
    data = plan_data(unnamed(1, (4,)), {"dp": 4}, [0, 1, 2, 3])
    data["topology"]["levels"] = data["topology"]["levels"][1:]
    plan = placed(validated(PlanModel, data, "test"), "test")
    assert (plan.hosts, plan.per_host) == (("node0",), 4)


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        (("a",), "names 1: test has 2 hosts"),
        (("a", "b", "c"), "names 3: test has 2 hosts"),
        (("a", "a"), "is named twice"),
        (("a", "-oProxyCommand=x"), "is no name of a host"),
        (("a", "b c"), "is no name of a host"),
    ],
)
def test_hosts_that_do_not_fit(hosts: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        placed_plan(unnamed(2, (2,)), range(4), hosts)


def test_a_node_may_be_several_hosts() -> None:
    """A rack of NVL72, from which 64 GPUs are used: 16 hosts of 4."""
    data = plan_data(unnamed(2, (64,)), {"dp": 128}, range(127, -1, -1))
    read = validated(PlanModel, data, "test")
    plan = placed(read, "test", per_host=4)
    assert (len(plan.hosts), plan.per_host) == (32, 4)
    assert [(place.host, place.local_rank) for place in plan.places[:5]] == [
        *[("node31", i) for i in (3, 2, 1, 0)],
        ("node30", 3),
    ]
    assert host_notes(plan) == ()
    assert "each node of 64 devices is taken as one host" in host_notes(placed(read, "test"))[0]
    for wrong in (0, 5, 128):
        with pytest.raises(InputError, match=f"{wrong} devices per host"):
            placed(read, "test", per_host=wrong)
    where = topology(LEAVES, (2,))
    named = validated(PlanModel, plan_data(where, {"dp": 10}, sorted(where.places)), "test")
    assert placed(named, "test", per_host=2).per_host == 2
    with pytest.raises(InputError, match="names its hosts, and each has 2"):
        placed(named, "test", per_host=1)


def test_a_plan_on_hosts_keeps_them() -> None:
    """The job must have them all; others of its hosts stay idle."""
    where = topology(LEAVES, (1,))
    names = where.hosts.names if where.hosts else ()
    ranks = sorted(where.places)
    found = placed_plan(where, ranks, ("x", *reversed(names))).places
    assert found == placed_plan(where, ranks).places
    assert placed_plan(where, ranks, [f"{name}.domain" for name in names]).places == found
    with pytest.raises(InputError, match=f"has ranks on {names[0]}, which the job lacks"):
        placed_plan(where, ranks, names[1:])
    with pytest.raises(InputError, match="and 4 more hosts, which the job lacks"):
        placed_plan(where, ranks, ("a", "b", "c", "d", "e"))


def test_ranks_must_be_those_of_the_matrix() -> None:
    data: dict[str, Any] = plan_data(unnamed(2, (2,)), {"dp": 4}, [0, 1, 3, 2])
    data["matrix"] = [[2, 2]]
    with pytest.raises(InputError, match="ranks are not those of its matrix"):
        placed(validated(PlanModel, data, "test"), "test")


def test_hosts_of_a_plan_must_be_those_of_its_ranks() -> None:
    where = topology(LEAVES, (1,))
    data = plan_data(where, {"dp": 5}, sorted(where.places))
    data["hosts"] = ["b1", "a7", "c3", "a1", "b2"]
    assert placed(validated(PlanModel, data, "test"), "test").hosts == tuple(data["hosts"])
    data["hosts"] = ["a7", "b1", "c3", "a1", "b2"]
    with pytest.raises(InputError, match="hosts are not those of the devices"):
        placed(validated(PlanModel, data, "test"), "test")

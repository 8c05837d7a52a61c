"""What orders of users mean, held against rules written out rank by rank."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology, parse_topology
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray, Placement, default_ranks
from p2smt.parallelism.request import Problem, parse_axes, reduce
from p2smt.search import comparison as tensors
from tests.cli.tools import RACKS

LISTED = ("n4", "n1", "n3", "n2")


def regular(axes: str = "dp=4,tp=2,pp=2") -> Problem:
    chosen = parse_axes(axes)
    return Problem(load_topology("azure-ndv4:2"), chosen, (reduce(f"{chosen[0].name}=1MiB"),))


def named(axes: str = "dp=2,pp=2,tp=2") -> Problem:
    return Problem(parse_topology(RACKS, "racks"), parse_axes(axes), (reduce("dp=1MiB"),))


def megatron(sizes: dict[str, int], order: str) -> dict[tuple[int, ...], int]:
    """The launched rank at each coordinate (axes as in ``sizes``): first word fastest."""
    found = {}
    for coordinate in product(*(range(size) for size in sizes.values())):
        at = dict(zip(sizes, coordinate, strict=True))
        rank, stride = 0, 1
        for word in order.split("-"):
            rank += at.get(word, 0) * stride
            stride *= sizes.get(word, 1)
        found[coordinate] = rank
    return found


@given(st.permutations(["dp", "tp", "pp"]), st.permutations(["tp", "cp", "ep", "dp", "pp"]))
def test_an_order_of_axes_is_megatrons(axes: list[str], words: list[str]) -> None:
    sizes = {name: {"dp": 4, "tp": 2, "pp": 2}[name] for name in axes}
    problem = regular(",".join(f"{name}={size}" for name, size in sizes.items()))
    order = "-".join(words)
    ranks = tensors.of_axis_order(problem, order, tensors.launch_devices(problem, None))
    for coordinate, rank in megatron(sizes, order).items():
        assert ranks[coordinate] == rank


def test_the_reversed_axes_are_the_default_order() -> None:
    problem = regular()
    ranks = tensors.of_axis_order(problem, "pp-tp-dp", tensors.launch_devices(problem, None))
    assert np.array_equal(ranks, default_ranks(problem.axis_sizes))


@pytest.mark.parametrize(
    ("order", "message"),
    [("tp-pp", "lacks the axis dp"), ("tp-pp-dp-tp", "twice"), ("tp-pp-dp-xx", "is no axis")],
)
def test_bad_orders_of_axes(order: str, message: str) -> None:
    problem = regular()
    with pytest.raises(InputError, match=message):
        tensors.of_axis_order(problem, order, tensors.launch_devices(problem, None))


def devices(problem: Problem, hosts: tuple[str, ...]) -> list[int]:
    """The devices of hosts in this order."""
    found = problem.topology.hosts
    assert found is not None
    place = dict(zip(found.names, found.slots, strict=True))
    return [place[name] * 2 + i for name in hosts for i in range(2)]


def test_launched_ranks_follow_the_hosts_as_listed() -> None:
    problem = named()
    assert tensors.launch_devices(problem, LISTED).tolist() == devices(problem, LISTED)


@given(st.permutations(range(8)))
def test_a_mesh_says_who_has_each_coordinate(order: list[int]) -> None:
    problem = named()
    start = tensors.launch_devices(problem, LISTED)
    mesh = np.array(order).reshape(2, 2, 2)
    ranks = tensors.of_mesh(problem, mesh, start, "mesh")
    every = devices(problem, LISTED)
    for at in product(range(2), repeat=3):
        assert ranks[at] == every[mesh[at]]
    flat = tensors.of_mesh(problem, mesh.ravel(), start, "list")
    assert np.array_equal(flat, ranks)


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        (np.arange(8).reshape(4, 2), "the axes have sizes"),
        (np.zeros(8, dtype=np.int64), "must hold each launched rank 0..7 once"),
        (np.arange(4), "must hold each launched rank"),
        (np.arange(1, 9), "must hold each launched rank"),
    ],
)
def test_bad_meshes(mesh: IntArray, message: str) -> None:
    problem = named()
    with pytest.raises(InputError, match=message):
        tensors.of_mesh(problem, mesh, tensors.launch_devices(problem, LISTED), "mesh")


def test_hosts_once_or_for_each_rank() -> None:
    problem = named()
    once = tensors.of_hosts(problem, LISTED, "order")
    assert once.ravel().tolist() == devices(problem, LISTED)
    each = tensors.of_hosts(problem, [name for name in LISTED for _ in range(2)], "order")
    assert np.array_equal(each, once)
    mixed = tensors.of_hosts(problem, [*LISTED, *LISTED], "order")
    every = devices(problem, LISTED)
    assert mixed.ravel().tolist() == every[::2] + every[1::2]
    with pytest.raises(InputError, match="2 times each host"):
        tensors.of_hosts(problem, ["n1"] * 3 + ["n2"] * 5, "order")
    with pytest.raises(InputError, match="names none"):
        tensors.of_hosts(regular(), LISTED, "order")


def test_places_of_ranks() -> None:
    problem = named()
    places = [(name, i) for i in range(2) for name in LISTED]
    found = tensors.of_places(problem, places, "table")
    every = devices(problem, LISTED)
    assert found.ravel().tolist() == every[::2] + every[1::2]
    for bad, message in (
        ([("n1", 2)] * 8, "local rank 2"),
        (places[:-1] + places[:1], "on a device of its own"),
        ([("n9", 0)] * 8, "is not in racks"),
    ):
        with pytest.raises(InputError, match=message):
            tensors.of_places(problem, bad, "table")


def test_matrices_need_regular_clusters() -> None:
    problem = regular("dp=4,tp=4")
    matrix = ((2, 2), (1, 4))
    found = tensors.of_matrix(problem, matrix, "matrix")
    assert np.array_equal(found, Placement(matrix).rank_tensor())
    with pytest.raises(InputError, match="equal numbers of hosts"):
        tensors.of_matrix(named(), [[1, 1, 2]] * 3, "matrix")

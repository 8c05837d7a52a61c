"""Wreath products of nodes, known by generators alone: against lists of all their elements."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from p2smt.cluster.file import parse_topology
from p2smt.encodings.schedule.orbits import hold_firsts, send_firsts
from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric
from p2smt.fabric.fabric_file import fabric_of_levels, load_fabric
from p2smt.fabric.symmetries import FabricSymmetry, check_symmetry, identity_of, permuted
from p2smt.fabric.wiring import NetworkPort, Switch, WiredNodes, fabric_of
from p2smt.problems.schedule import DisseminationProblem
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.solvers.ask import Solver
from p2smt.synthesis.group_order import level_shifts
from p2smt.synthesis.schedule_replay import broken_rule, disseminate, dissemination_problem, spreads
from p2smt.synthesis.setting import ScheduleSize, SynthesisSetting, rungs, too_many_pairs
from p2smt.synthesis.subgroups import SymmetryGroup
from p2smt.synthesis.symmetry_search import trials
from p2smt.synthesis.wreaths import moved_by_routes, wreath_products
from tests.synthesis.groups.test_group_order import Moves, check_demand, elements


def alike(nodes: int, ranks: int) -> Fabric:
    """Nodes of ranks at one switch, each rank with a card of its own that is slower."""
    every = tuple(range(ranks))
    cards = tuple(NetworkPort((rank,), Fraction(1)) for rank in every)
    switch = Switch("switch", every, Fraction(3))
    return fabric_of(WiredNodes("alike", ranks, (), (switch,), cards, nodes=nodes, measured=False))


def under(
    problem: DisseminationProblem, group: SymmetryGroup, fabric: Fabric
) -> DisseminationProblem:
    """The problem with chunks that a group moves."""
    moved = moved_by_routes(fabric, group.generators, problem.chunks)
    return replace(problem, symmetries=moved)


@pytest.mark.parametrize(
    ("nodes", "ranks", "orders"),
    [(2, 3, [72, 18, 8]), (3, 2, [48, 24]), (2, 2, [8])],
)
@pytest.mark.parametrize("copies", [1, 2])
def test_orbits_by_generators_are_those_of_the_listed_group(
    nodes: int, ranks: int, orders: list[int], copies: int
) -> None:
    fabric = alike(nodes, ranks)
    plain = dissemination_problem(fabric, spreads("alltoall", fabric.ranks, copies), 2, 9)
    found = wreath_products(fabric)
    assert [group.order for group in found] == orders
    for group in found:
        problem = under(plain, group, fabric)
        listed = elements(fabric, len(plain.chunks), problem.symmetries)
        assert len({one[0] for one in listed}) == len(listed) == group.order
        assert np.array_equal(send_firsts(problem), least(listed, 1))
        assert np.array_equal(hold_firsts(problem), least(listed, 0))


def test_parts_of_nodes_move_by_themselves_as_well() -> None:
    """Two leaves of two nodes of two GPUs: Z2 wr Z2 wr Z2 first, then what moves a leaf at once."""
    link = "link: {kind: switch, fabric: infiniband, bandwidth: 50 GB/s, latency: 5 us}"
    rows = [f"  - {{name: {name}, size: 2, {link}}}" for name in ("leaf", "node", "gpu")]
    levels = parse_topology("\n".join(["name: levels", "levels:", *rows]), "levels")
    fabric = fabric_of_levels(levels)
    plain = dissemination_problem(fabric, spreads("alltoall", 8, 1), 3, 9)
    found = wreath_products(fabric)
    assert found[0].order == 128
    for group in found:
        problem = under(plain, group, fabric)
        listed = elements(fabric, len(plain.chunks), problem.symmetries)
        assert len({one[0] for one in listed}) == len(listed) == group.order
        assert np.array_equal(send_firsts(problem), least(listed, 1))


def least(listed: set[Moves], place: Literal[0, 1]) -> NDArray[np.int64]:
    """Of every pair of a chunk and a rank (0) or edge (1) the least of all its images."""
    images = [
        np.array(one[2])[:, None] * len(one[place]) + np.array(one[place])[None, :]
        for one in listed
    ]
    found: NDArray[np.int64] = np.minimum.reduce(images)
    return found


@pytest.mark.parametrize("name", ["dgx1:4", "mi250:2", "dgx-h100:4", "dgx-a100:3"])
def test_every_generator_keeps_fabric_and_demand(name: str) -> None:
    fabric = load_fabric(name)
    routes = spreads("alltoall", fabric.ranks, 2)
    found = wreath_products(fabric)
    assert found
    for group in found:
        for base, one in zip(
            group.generators, moved_by_routes(fabric, group.generators, routes), strict=True
        ):
            check_symmetry(fabric, base)
            assert FabricSymmetry(one.ranks, one.edges) == base
            assert sorted(one.chunks) == list(range(len(routes)))
            check_demand(routes, one)


@pytest.mark.parametrize("name", ["torus:4x4", "ring:6", "cube:3", "dgx1"])
def test_where_no_part_moves_by_itself_there_are_none(name: str) -> None:
    assert wreath_products(load_fabric(name)) == ()


def test_once_the_time_is_over_there_are_none() -> None:
    assert wreath_products(alike(2, 3), StopWatch.start(SearchLimits(time_limit_s=0.0))) == ()


def test_a_map_that_is_no_symmetry_is_refused() -> None:
    fabric = alike(2, 3)
    routes, whole = spreads("alltoall", 6, 1), identity_of(fabric)
    swapped = (1, 0, *whole.edges[2:])
    for mutant in (
        replace(whole, edges=swapped),
        replace(whole, ranks=(3, 1, 2, 0, 4, 5)),
        replace(whole, ranks=(0, 0, 2, 3, 4, 5)),
    ):
        with pytest.raises(InputError, match="a symmetry of fabric"):
            moved_by_routes(fabric, [mutant], routes)


def test_a_map_that_takes_a_chunk_to_none_is_refused() -> None:
    """A shift of the nodes takes the root of a scatter away; reversed time keeps no root."""
    fabric = alike(2, 3)
    *_, shift = wreath_products(fabric)[0].generators
    turned = permuted(fabric, [], reverses=True)
    assert turned is not None
    for one, collective in ((shift, "scatter"), (turned, "alltoall")):
        with pytest.raises(InputError, match="takes a chunk to none"):
            moved_by_routes(fabric, [one], spreads(collective, 6, 1))


def test_an_all_to_all_that_groups_which_are_listed_leave_open() -> None:
    """On four DGX-1 in three steps at the bound: one of the wreath products has it at once."""
    setting = SynthesisSetting(load_fabric("dgx1:4"), "alltoall")
    routes = spreads("alltoall", 32, 1)
    plain = dissemination_problem(setting.fabric, routes, 3, 48)
    apart = [choice for choice in rungs(setting, 1) if choice.apart]
    assert [choice.order for choice in apart] == [6144, 1024, 384, 64]
    problem = replace(plain, symmetries=apart[1].symmetries)
    found = disseminate(problem, SearchLimits(60))
    assert found.value is not None
    assert broken_rule(plain, found.value) is None


def test_a_chunk_for_all_comes_to_a_node_as_often_as_the_node_has_ranks() -> None:
    """So an all-gather needs three times the rounds over cards; shifts of all nodes need one."""
    fabric = alike(2, 3)
    routes = spreads("allgather", 6, 1)
    (shifts, *_) = level_shifts(fabric, 1024)
    wreath = next(group for group in wreath_products(fabric) if group.order == 18)
    for rounds, group, status in (
        (2, SymmetryGroup(shifts, 6), Status.FEASIBLE),
        (2, wreath, Status.INFEASIBLE),
        (3, wreath, Status.INFEASIBLE),
        (4, wreath, Status.FEASIBLE),
    ):
        plain = dissemination_problem(fabric, routes, 2, rounds)
        found = disseminate(under(plain, group, fabric))
        assert found.status is status, rounds


@pytest.mark.parametrize("collective", ["allgather", "allreduce", "scatter", "broadcast"])
def test_only_an_all_to_all_is_asked_with_them(collective: str) -> None:
    setting = SynthesisSetting(alike(2, 2), collective)
    assert not any(choice.apart for choice in rungs(setting, 1))


def test_they_come_after_one_of_the_second_order_and_delay_none() -> None:
    setting = SynthesisSetting(load_fabric("dgx-a100:3"), "alltoall")
    choices = list(rungs(setting, 1))
    largest = choices[0].order
    apart = [n for n, choice in enumerate(choices) if choice.apart]
    assert apart
    assert apart == list(range(apart[0], apart[0] + len(apart)))
    before = [choice.order for choice in choices[: apart[0]]]
    assert [order < largest for order in before] == [False] * (len(before) - 1) + [True]
    tried = list(trials(setting, ScheduleSize(1, 16, 1), Solver.CPSAT))
    assert [one.rung for one in tried] == choices
    for one in tried:
        later = 0 if one.rung.apart else int(math.log(largest / one.rung.order, 4) + 1e-9)
        assert one.start == later


def test_where_fewer_are_listed_than_there_are_ranks_they_come_first() -> None:
    choices = list(rungs(SynthesisSetting(load_fabric("dgx1:4"), "alltoall"), 1))
    apart = [choice.apart for choice in choices]
    assert any(apart)
    assert apart == sorted(apart, reverse=True)


def test_where_edges_are_too_many_for_z3_no_group_is_made() -> None:
    setting = SynthesisSetting(load_fabric("dgx-h100:16"), "alltoall")
    assert [choice.order for choice in rungs(setting, 1, solver=Solver.Z3)] == [1]
    assert too_many_pairs(setting, 1) is None

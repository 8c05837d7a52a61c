"""Answers on rank lists: one collective per request, which agrees with matrices where they can."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import p2smt
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import Alternative, rank_alternative
from p2smt.result import Status

SIZES = (("node", 2, 1e9, 1), ("gpu", 4, 1e11, 1))


def cluster(*levels: tuple[str, int, float, int]) -> p2smt.Topology:
    return p2smt.Topology(
        "made",
        tuple(
            p2smt.Level(
                name,
                size,
                p2smt.Link(p2smt.LinkKind.SWITCH, (p2smt.Piece("one", 1e-6, rate),), ports=ports),
            )
            for name, size, rate, ports in levels
        ),
    )


def problem(kind: RequestKind) -> Problem:
    axes = p2smt.parse_axes("dp=2,tp=4")
    return Problem(cluster(*SIZES), axes, (Request(kind, ("tp",), 1 << 20, 3),))


@pytest.mark.parametrize("kind", RequestKind)
@pytest.mark.parametrize("matrix", [((2, 1), (1, 4)), ((1, 2), (2, 2))])
def test_the_order_of_a_matrix_costs_what_the_matrix_costs(
    kind: RequestKind, matrix: tuple[tuple[int, ...], ...]
) -> None:
    asked, placement = problem(kind), Placement(matrix)
    ranks = RankList(tuple(placement.rank_tensor().ravel().tolist()), asked.axis_sizes)
    found = rank_alternative(asked, ranks)
    (answer,) = found.requests
    scene = Scene.of(asked.topology, placement, (1,))
    single = scene.fixed_time(kind, 1 << 20)
    assert answer.seconds == pytest.approx(single.seconds, rel=1e-12)
    assert found.objective_s == pytest.approx(3 * single.seconds, rel=1e-12)
    assert found.ranks == ranks.ranks
    assert (found.matrix, found.status) == (None, Status.FEASIBLE)
    assert answer.status is (Status.FEASIBLE if kind.has_programs else Status.OPTIMAL)
    assert answer.bound_s <= answer.seconds
    assert answer.peak_bytes == (1 << 20) * (1 if kind.has_programs else 2)
    assert (answer.shards is None) is (kind is not RequestKind.REDUCE_SCATTER)


@given(st.permutations(range(8)))
def test_groups_come_from_the_ranks(order: list[int]) -> None:
    ranks = RankList(tuple(order), (2, 4))
    assert sorted(map(tuple, ranks.groups((1,)).tolist())) == sorted(
        tuple(sorted(order[start : start + 4])) for start in (0, 4)
    )
    across = {(min(a, b), max(a, b)) for a, b in zip(order[:4], order[4:], strict=True)}
    assert {tuple(row) for row in ranks.groups((0,)).tolist()} == across


@pytest.mark.parametrize("order", [(), (0, 1), (0, 1, 2, 2), (-1, 0, 1, 2)])
def test_each_device_stands_once(order: tuple[int, ...]) -> None:
    with pytest.raises(p2smt.InputError, match="4 devices, each once"):
        RankList(order, (2, 2))


def test_every_device_that_is_there_has_a_rank() -> None:
    four = p2smt.load_topology("dgx-h100:4")
    RankList(tuple(range(32)), (32,)).check(four)
    for order in ((*range(31), 32), tuple(range(16))):
        with pytest.raises(p2smt.InputError, match=r"each device 0\.\.31 once"):
            RankList(order, (len(order),)).check(four)


def test_an_alternative_has_a_matrix_or_a_rank_list() -> None:
    with pytest.raises(p2smt.InputError, match="either"):
        Alternative(None, (), 0.0, Status.FEASIBLE)
    with pytest.raises(p2smt.InputError, match="either"):
        Alternative(((1,),), (), 0.0, Status.FEASIBLE, RankList((0,), (1,)))

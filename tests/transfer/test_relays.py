"""Plans that borrow cards of neighbours: values arrive, and cards share what there is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from p2smt.errors import InputError
from p2smt.result import SearchLimits
from p2smt.transfer.classes import TransferMoves, find_moves
from p2smt.transfer.layouts import Shards, Tensor, WeightLayout
from p2smt.transfer.plan import TreePiece, replay
from p2smt.transfer.ports import PortMap
from p2smt.transfer.search import plan_moves
from tests.transfer.cases import cluster, random_case
from tests.transfer.oracle import moved

LIMITS = SearchLimits()
BETWEEN = PortMap(cluster(4, 2), "nominal", relayed=True)


def one_needs() -> TransferMoves:
    """Device 3 needs what device 0 has, and 1 and 2 have nothing to do with it."""
    shards = (Shards(((((0, 8),), (rank,)),)) for rank in (0, 2))
    first, second = (WeightLayout(3, {"w": Tensor("w", (8,))}, {"w": one}) for one in shards)
    return find_moves(first, second, [0, 1, 3], [0, 1, 3])


def test_both_cards_of_both_nodes_are_used() -> None:
    moves = one_needs()
    plan = plan_moves(moves, BETWEEN, 2, LIMITS)
    assert plan.optimal
    assert float(plan.replay.bandwidth_s) == pytest.approx(8 / 50e9)
    assert {d for piece in plan.pieces for edge in piece.edges for d in edge} == {0, 1, 2, 3}


@pytest.mark.parametrize("seed", range(16))
def test_values_arrive_by_relays(seed: int) -> None:
    ports = PortMap(cluster(16, 4), "nominal", relayed=True)
    case = random_case(seed, 8, [8, 6, 12, 4][seed // 2 % 4], same=seed % 2 == 0, small=True)
    moves = case.moves()
    plan = plan_moves(moves, ports, 2, LIMITS)
    assert moved(case, moves, plan.pieces)
    assert plan.gap is not None
    assert plan.gap >= 0


@pytest.mark.parametrize("seed", range(0, 12, 2))
def test_relays_are_no_slower(seed: int) -> None:
    ports = PortMap(cluster(16, 4), "nominal", relayed=True)
    moves = random_case(seed, 16, [12, 8, 16][seed % 3], same=True).moves()
    direct = plan_moves(moves, replace(ports, relayed=False), 2, LIMITS)
    relayed = plan_moves(moves, ports, 2, LIMITS)
    assert relayed.replay.bandwidth_s <= direct.replay.bandwidth_s


def test_only_plans_that_relay_pass_on_what_they_do_not_need() -> None:
    moves = one_needs()
    pieces = [TreePiece(0, 0, 8, ((0, 2), (2, 3)))]
    assert replay(moves, pieces, BETWEEN, 2).bandwidth_s == Fraction(16, 50 * 10**9)
    with pytest.raises(InputError, match="is sent to device 2"):
        replay(moves, pieces, replace(BETWEEN, relayed=False), 2)


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        (((0, 4), (4, 3)), "is sent to device 4"),
        (((0, 1), (0, 1), (1, 3)), "is sent to device 1"),
        (((2, 3),), "is sent by device 2"),
        (((0, 2),), "does not reach device 3"),
    ],
)
def test_broken_relays_are_named(edges: tuple[tuple[int, int], ...], said: str) -> None:
    """A device of another node, one that has it, one that does not have it yet, nobody at all."""
    with pytest.raises(InputError, match=said):
        replay(one_needs(), [TreePiece(0, 0, 8, edges)], BETWEEN, 2)

"""Plans: every element arrives, once, and what is broken is named."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from p2smt.errors import InputError
from p2smt.result import SearchLimits
from p2smt.transfer import search
from p2smt.transfer.chains import apart
from p2smt.transfer.classes import TransferMoves
from p2smt.transfer.plan import TreePiece, index_of, replay
from p2smt.transfer.ports import PortMap
from p2smt.transfer.search import plan_moves
from tests.transfer.cases import cluster, random_case
from tests.transfer.oracle import moved

PORTS = PortMap(cluster(16, 4), "nominal")


@pytest.mark.parametrize("seed", range(16))
def test_values_arrive(seed: int) -> None:
    case = random_case(seed, 8, [8, 6, 12, 4][seed // 2 % 4], same=seed % 2 == 0, small=True)
    moves = case.moves()
    plan = plan_moves(moves, PORTS, 2, SearchLimits())
    assert moved(case, moves, plan.pieces)
    assert plan.gap is not None
    assert plan.gap >= 0


@pytest.mark.parametrize("seed", range(1, 20, 2))
def test_apart_the_bound_is_reached(seed: int) -> None:
    """The theorem of disjoint nodes: the busiest source or the busiest entry is all."""
    moves = random_case(seed, [8, 16][seed % 4 // 2], [8, 12, 16][seed % 3], same=False).moves()
    assert apart(moves, PORTS)
    assert plan_moves(moves, PORTS, 2, SearchLimits()).within(Fraction(1, 1000))


def test_without_time_there_is_a_plan_and_no_proof() -> None:
    moves = random_case(2, 8, 8, same=True).moves()
    plan = plan_moves(moves, PORTS, 2, SearchLimits(time_limit_s=0.0))
    assert plan.pieces
    assert not plan.optimal
    assert plan.gap is None


KINDS = ("lost", "twice", "longer", "shorter", "edge lost", "edge twice", "stranger")


def mutants(chance: random.Random, pieces: Sequence[TreePiece]) -> tuple[str, list[TreePiece]]:
    """A plan with one thing wrong."""
    found, at = list(pieces), chance.randrange(len(pieces))
    one = found[at]
    kind = chance.choice(KINDS)
    place = chance.randrange(len(one.edges))
    edges = list(one.edges)
    match kind:
        case "lost":
            del found[at]
        case "twice":
            found.append(one)
        case "longer":
            found[at] = replace(one, stop=one.stop + 1)
        case "shorter":
            found[at] = replace(one, start=one.start + 1)
        case "edge lost":
            del edges[place]
        case "edge twice":
            edges.append(edges[place])
        case "stranger":
            edges[place] = (63, edges[place][1])
    if "edge" in kind or kind == "stranger":
        found[at] = replace(one, edges=tuple(edges))
    return kind, found


@pytest.mark.parametrize("seed", range(40))
def test_broken_plans_are_refused(seed: int) -> None:
    """Every fourth of them relays."""
    moves: TransferMoves = random_case(seed, 8, 12, same=seed % 2 == 0).moves()
    ports = replace(PORTS, relayed=seed % 4 == 0)
    pieces = plan_moves(moves, ports, 2, SearchLimits()).pieces
    chance = random.Random(seed)
    for _ in range(25):
        _, broken = mutants(chance, pieces)
        with pytest.raises(InputError, match="element"):
            replay(moves, broken, ports, 2)


def test_who_sends_too_early_is_named() -> None:
    moves = random_case(1, 4, 16, same=False).moves()
    pieces = list(plan_moves(moves, PORTS, 2, SearchLimits()).pieces)
    at = next(i for i, piece in enumerate(pieces) if len(piece.edges) > 1)
    pieces[at] = replace(pieces[at], edges=pieces[at].edges[::-1])
    with pytest.raises(InputError, match="which does not have it yet"):
        replay(moves, pieces, PORTS, 2)


def test_index_of_an_element() -> None:
    assert index_of(((2, 4), (3, 6)), 4) == [3, 4]
    assert index_of((), 0) == []


def test_ports_that_devices_share() -> None:
    """Two cards for four devices: each is that of two devices side by side."""
    made = cluster(2, 4)
    level = replace(made.levels[0], link=replace(made.levels[0].link, ports=2))
    ports = PortMap(replace(made, levels=(level, made.levels[1])), "nominal")
    numbers = [ports.sides(device, 0)[0][0].number for device in range(4)]
    assert numbers == [0, 0, 1, 1]
    assert ports.rate(ports.sides(0, 0)[0][0]) == 50 * 10**9
    whole = replace(ports, relayed=True)
    assert whole.rate(whole.sides(0, 0)[0][0]) == 100 * 10**9


def test_a_device_draws_what_it_may() -> None:
    """One card of the node, of which a device may draw a quarter."""
    made = cluster(2, 4)
    link = replace(made.levels[0].link, ports=1, device_bandwidth_bytes_per_s=12.5e9)
    ports = PortMap(replace(made, levels=(replace(made.levels[0], link=link), made.levels[1])))
    card, own = ports.sides(3, 1)[0]
    assert (ports.rate(card), ports.rate(own)) == (Fraction(50 * 10**9), Fraction(25 * 10**9, 2))
    assert ports.words(own) == "device 3, in of its node"
    assert ports.node_of(own) == 0


@pytest.mark.parametrize("seed", [24, 40])
def test_few_pieces_are_chosen_by_a_solver(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where elements are few: what packs averages of trees is rounded, and takes longer."""
    moves = random_case(seed, 8, [8, 6, 12, 4][seed // 2 % 4], same=True, small=True).moves()
    chosen = plan_moves(moves, PORTS, 2, SearchLimits())
    monkeypatch.setattr(search, "FEW_PIECES", 0)
    rounded = plan_moves(moves, PORTS, 2, SearchLimits())
    assert rounded.replay.bandwidth_s > chosen.replay.bandwidth_s * Fraction(11, 10)

"""The bound: the reduced program is as good as the full one, and prices prove what it says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from p2smt.cluster.link import Piece
from p2smt.cluster.topology import Level
from p2smt.problems.transfer import ClassMember, ClassPart, ClassRow, TransferProblem
from p2smt.report.transfers.data import binding_words
from p2smt.result import SearchLimits, Status
from p2smt.solvers.ask import ask_flows
from p2smt.transfer.bound import flow_bound, outer_bound, relayed_bound_s
from p2smt.transfer.certificate import proved_bound_s
from p2smt.transfer.classes import TransferMoves, find_moves
from p2smt.transfer.colours import distinct, equitable, incidence_of, reduced
from p2smt.transfer.layouts import Shards, Tensor, WeightLayout
from p2smt.transfer.ports import IN, OUT, Port, PortMap
from p2smt.transfer.search import plan_moves
from tests.transfer.cases import cluster, random_case
from tests.transfer.oracle import best_whole_s, choices

LIMITS = SearchLimits()
INSIDE = (450e9, 60e9, 50e9)


@pytest.mark.parametrize("seed", range(24))
def test_reduced_program_full_program_and_certificate_agree(seed: int) -> None:
    """Half of them on the same devices: only there do roles and nodes' parts matter."""
    ports = PortMap(cluster(8, 4, inside=INSIDE[seed % 3]), "nominal")
    sizes = [8, 12, 16][seed % 3], [8, 16, 12, 4][seed // 2 % 4]
    case = random_case(seed, *sizes, same=seed % 2 == 0)
    moves = case.moves()
    found = incidence_of(moves, ports)
    whole = ask_flows(reduced(found, distinct(found), ports, 2).problem, LIMITS).value
    made = reduced(found, equitable(found, ports), ports, 2)
    small = ask_flows(made.problem, LIMITS).value
    bound = flow_bound(moves, ports, 2, LIMITS)
    assert whole is not None
    assert small is not None
    assert bound is not None
    assert small.seconds == pytest.approx(whole.seconds, rel=1e-6)
    assert float(bound.certificate.bound_s) == pytest.approx(whole.seconds, rel=1e-6)


def tiny_cases() -> Iterator[tuple[PortMap, TransferMoves]]:
    """Cases of few trees, half of them on the same devices."""
    for seed in range(240):
        ports = PortMap(cluster(4, 2, inside=INSIDE[seed % 3]), "nominal")
        sizes = [2, 4][seed // 2 % 2], [2, 4, 3][seed % 3]
        moves = random_case(seed, *sizes, same=seed % 2 == 0, tensors=1).moves()
        if moves.classes and choices(moves) <= 5_000:
            yield ports, moves


def test_no_choice_of_trees_is_below_the_bound() -> None:
    """Of all whole trees, one for each class."""
    count = 0
    for ports, moves in tiny_cases():
        count += 1
        bound = flow_bound(moves, ports, 2, LIMITS)
        assert bound is not None
        best = best_whole_s(moves, ports, 2)
        assert bound.certificate.bound_s <= best
        assert plan_moves(moves, ports, 2, LIMITS).replay.bandwidth_s <= best * Fraction(101, 100)
    assert count > 60


@pytest.mark.parametrize("seed", range(10))
def test_no_prices_prove_more_than_the_program(seed: int) -> None:
    """Any prices are true; none are above the optimum."""
    chance = random.Random(seed)
    ports = PortMap(cluster(8, 4, inside=INSIDE[seed % 3]), "nominal")
    moves = random_case(seed, 8, 12, same=seed % 2 == 0).moves()
    bound = flow_bound(moves, ports, 2, LIMITS)
    assert bound is not None
    every = incidence_of(moves, ports).ports
    most = bound.certificate.bound_s * Fraction(1_000_001, 1_000_000)
    for _ in range(20):
        prices = {port: Fraction(chance.randrange(9)) for port in every}
        assert proved_bound_s(moves, 2, ports, prices) <= most
    changed = dict(bound.certificate.prices)
    changed[chance.choice(every)] = Fraction(1)
    assert proved_bound_s(moves, 2, ports, changed) <= most


def test_prices_below_nothing_are_refused() -> None:
    ports = PortMap(cluster(8, 4), "nominal")
    moves = random_case(1, 8, 8, same=False).moves()
    port = incidence_of(moves, ports).ports[0]
    with pytest.raises(ValueError, match="below 0"):
        proved_bound_s(moves, 2, ports, {port: Fraction(-1)})


def test_no_prices_prove_nothing() -> None:
    ports = PortMap(cluster(8, 4), "nominal")
    assert proved_bound_s(random_case(1, 8, 8, same=False).moves(), 2, ports, {}) == 0


# Levels further out: racks of two nodes.


def racks(
    devices: int = 2, *, uplink: float = 20e9, ports: int = 1, relayed: bool = False
) -> PortMap:
    inner = cluster(2, devices)
    link = replace(inner.levels[0].link, ports=ports, pieces=(Piece("simple", 0.0, uplink),))
    levels = (Level("rack", 4, link), *inner.levels)
    return PortMap(replace(inner, levels=levels), "nominal", relayed)


def every_port(ports: PortMap) -> list[Port]:
    levels = range(len(ports.topology.levels))
    found = [
        port
        for device in sorted(ports.topology.places)
        for level in levels
        for way in (IN, OUT)
        for port in ports.of_side(device, level, way)
    ]
    return sorted({*found})


def test_no_choice_of_trees_is_below_the_bound_of_racks() -> None:
    """Of whole trees, by random prices at all levels and by the best cut."""
    count, bound_by_racks = 0, 0
    for seed in range(160):
        ports = racks(1, uplink=[20e9, 200e9][seed % 2])
        sizes = [2, 4][seed // 2 % 2], [2, 4, 3][seed % 3]
        moves = random_case(seed, *sizes, same=seed % 4 < 2, tensors=1).moves()
        if not moves.classes or choices(moves) > 5_000:
            continue
        count += 1
        best = best_whole_s(moves, ports, 2)
        cut = outer_bound(moves, ports, 2)
        assert proved_bound_s(moves, 2, ports, cut.prices) == cut.bound_s <= best
        bound_by_racks += cut.bound_s == best
        chance = random.Random(seed)
        for _ in range(10):
            prices = {port: Fraction(chance.randrange(5)) for port in every_port(ports)}
            assert proved_bound_s(moves, 2, ports, prices) <= best
    assert count > 40
    assert bound_by_racks > 10


@pytest.mark.parametrize("seed", range(12))
def test_no_prices_of_racks_prove_more_than_a_plan_takes(seed: int) -> None:
    ports = racks(ports=[1, 4][seed % 2], relayed=seed % 3 == 0)
    moves = random_case(seed, 8, [4, 8][seed % 2], same=seed % 4 < 2).moves()
    found = plan_moves(moves, ports, 2, LIMITS)
    chance = random.Random(seed)
    every = [port for port in every_port(ports) if not ports.relayed or port.level == 0]
    for _ in range(20):
        prices = {port: Fraction(chance.randrange(9)) for port in every}
        assert proved_bound_s(moves, 2, ports, prices) <= found.replay.bandwidth_s


@pytest.mark.parametrize("needing", [[4], [4, 8], [5, 6, 12]])
def test_an_uplink_of_a_rack_binds(needing: list[int]) -> None:
    """What one rack holds goes to others: it enters each once, and they pass it on."""
    ports, whole = racks(), (((0, 1000),),)
    first, second = (
        WeightLayout(
            len(own),
            {"w": Tensor("w", (1000,))},
            {"w": Shards(tuple((box, tuple(range(len(own)))) for box in whole))},
        )
        for own in ([0], needing)
    )
    moves = find_moves(first, second, [0], needing)
    found = plan_moves(moves, ports, 2, LIMITS)
    assert found.optimal
    assert found.replay.bandwidth_s == Fraction(2000, 20 * 10**9)
    assert " of rack" in binding_words(ports, found.certificate.prices)


# The program's constraints, one by one, on problems made by hand.  Ports 0 to 3: out, into, give,
# take, each of rate 1; every device has a set of its own.


def device(number: int, needs: bool) -> ClassMember:
    return ClassMember(1, needs, *((4 * number + k,) for k in range(4)))


def seconds(*nodes: list[bool], slow: tuple[int, ...] = (), payload: int = 12) -> float:
    """The least time of one class; nodes list their devices: whether each needs it."""
    number, parts = 0, []
    for node in nodes:
        parts.append(ClassPart(1, tuple(device(number + i, needs) for i, needs in enumerate(node))))
        number += len(node)
    rates = [(1, Fraction(1, 100) if port in slow else Fraction(1)) for port in range(4 * number)]
    answer = ask_flows(TransferProblem(tuple(rates), (ClassRow(1, payload, tuple(parts)),)), LIMITS)
    assert answer.status is Status.OPTIMAL
    assert answer.value is not None
    return answer.value.seconds


HAS, LACKS = False, True


def test_c1_only_needers_are_entered_and_nothing_leaves_a_node_for_itself() -> None:
    assert seconds([HAS, LACKS], slow=(2,)) == pytest.approx(1200)


def test_c2_the_first_copy_comes_over_the_network() -> None:
    """Two needers share the entry, whatever they send each other."""
    assert seconds([HAS, HAS], [LACKS, LACKS]) == pytest.approx(6)


def test_c3_what_enters_is_sent() -> None:
    assert seconds([HAS], [LACKS]) == pytest.approx(12)
    assert seconds([HAS], [LACKS], [LACKS]) == pytest.approx(12), "the first sends it on"


def test_c4_it_leaves_a_node_with_a_holder() -> None:
    assert seconds([HAS], [LACKS], [LACKS], slow=(0,)) == pytest.approx(1200)


def test_c5_what_does_not_enter_is_sent_inside() -> None:
    assert seconds([HAS, HAS, LACKS], slow=(2, 6)) == pytest.approx(600)


def test_c6_nobody_sends_to_itself() -> None:
    """Were the needer its own sender, the slow link would not show."""
    assert seconds([HAS, LACKS], slow=(2,)) == pytest.approx(1200)


def test_c7_what_enters_comes_from_other_nodes() -> None:
    """The holder beside it is no sender over the network."""
    assert seconds([HAS, LACKS], [HAS], slow=(2, 8)) == pytest.approx(600)


def test_c8_a_port_passes_its_rate() -> None:
    assert seconds([HAS], [LACKS], payload=24) == pytest.approx(24)


def test_no_time_gives_no_answer() -> None:
    ports = PortMap(cluster(8, 4), "nominal")
    moves = random_case(1, 8, 8, same=False).moves()
    assert flow_bound(moves, ports, 2, SearchLimits(time_limit_s=0.0)) is None


# Relays.


@pytest.mark.parametrize("seed", range(12))
def test_relays_only_lower_the_bound(seed: int) -> None:
    ports = PortMap(cluster(8, 4, inside=INSIDE[seed % 3]), "nominal")
    moves = random_case(seed, 8, [8, 12][seed % 2], same=seed % 2 == 0).moves()
    direct = flow_bound(moves, ports, 2, LIMITS)
    assert direct is not None
    relayed = relayed_bound_s(moves, ports, 2, direct.certificate, LIMITS)
    assert relayed is not None
    assert 0 <= relayed <= direct.certificate.bound_s * Fraction(1_000_001, 1_000_000)


def test_a_neighbours_card_is_borrowed() -> None:
    """One device of a node needs what the other has not: both of its cards may bring it in."""
    ports = PortMap(cluster(2, 2), "nominal")
    shards = (Shards(((((0, 8),), (rank,)),)) for rank in (0, 2))
    first, second = (WeightLayout(3, {"w": Tensor("w", (8,))}, {"w": one}) for one in shards)
    moves = find_moves(first, second, [0, 1, 3], [0, 1, 3])
    direct = flow_bound(moves, ports, 2, LIMITS)
    assert direct is not None
    relayed = relayed_bound_s(moves, ports, 2, direct.certificate, LIMITS)
    assert relayed is not None
    assert float(direct.certificate.bound_s) == pytest.approx(16 / 50e9)
    assert float(relayed) == pytest.approx(8 / 50e9)

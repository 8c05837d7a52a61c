"""Chains over nodes: plans where what needs is apart from what holds, node by node.

Every byte leaves its holders once.  It enters each node that needs it once, by the card of one of
its needers there, goes on to the next node from that card, and inside the node from needer to
needer.  So no receiver sends more than it gets, and the time is that of the busiest holder or of
the busiest entry.  Both are dealt out to the ports that may take them, least loaded first.

Sets of ports that are disjoint or nested are filled best from the smallest set on, each amount on
the ports of its set that are least busy; where sets cross, it is a good start and no more.  The cut
at which it stops, busy ports and what may go nowhere else, proves how good it is.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from p2smt.problems.transfer import FlowShares
from p2smt.transfer.certificate import PortPrices
from p2smt.transfer.classes import Devices, TransferMoves
from p2smt.transfer.plan import Edge, TreePiece
from p2smt.transfer.ports import IN, OUT, Port, PortMap

MAX_PIECES = 64
"""Of one class: finer parts are rounded to so many."""


@dataclass(frozen=True)
class ChainPlan:
    """Pieces, and the prices of the cut that binds."""

    pieces: tuple[TreePiece, ...]
    prices: PortPrices


def apart(moves: TransferMoves, ports: PortMap) -> bool:
    """Whether no node both holds what moves and needs something."""
    holding = {ports.node(d) for one in moves.classes for d in one.holders}
    needing = {ports.node(d) for one in moves.classes for d in one.needers}
    return not holding & needing


ClassParts = Sequence[Mapping[int, float]]
"""By class, what part of it each device passes."""


def filled_chains(moves: TransferMoves, ports: PortMap) -> ChainPlan:
    """Sources and entries dealt out, least busy first."""
    leaving = [FillDemand(i, one.elements, one.holders) for i, one in enumerate(moves.classes)]
    entering: dict[int, list[FillDemand]] = defaultdict(list)
    for i, one in enumerate(moves.classes):
        for node, needers in _by_node(ports, one.needers).items():
            entering[node].append(FillDemand(i, one.elements, needers))
    sources = _filled(leaving, ports, OUT)
    worst, prices = sources[1:]
    entries: list[dict[int, float]] = [{} for _ in moves.classes]
    for demands in entering.values():
        parts, seconds, cut = _filled(demands, ports, IN)
        for demand, part in zip(demands, parts, strict=True):
            entries[demand.number].update(part)
        if seconds > worst:
            worst, prices = seconds, cut
    return ChainPlan(tuple(chains(moves, ports, sources[0], entries)), prices)


def _filled(
    demands: Sequence[FillDemand], ports: PortMap, way: int
) -> tuple[ClassParts, float, PortPrices]:
    devices = {d for one in demands for d in one.devices}
    slowest = {d: min(ports.sides(d, way)[0], key=ports.rate) for d in devices}
    rates = {port: ports.rate(port) for port in slowest.values()}
    found = fill(demands, slowest, rates)
    prices = {port: Fraction(1) for port in found.cut}
    return found.parts, found.seconds, prices


def flow_chains(
    moves: TransferMoves, ports: PortMap, shares: Sequence[Mapping[int, FlowShares]]
) -> tuple[TreePiece, ...]:
    """Sources and entries as a linear program has them: sums above 1 are scaled down."""
    sources = [
        {d: part[d].sending for d in one.holders if part[d].sending > 0}
        for one, part in zip(moves.classes, shares, strict=True)
    ]
    entries = [
        {d: part[d].entering for d in one.needers if part[d].entering > 0}
        for one, part in zip(moves.classes, shares, strict=True)
    ]
    return tuple(chains(moves, ports, sources, entries))


def chains(
    moves: TransferMoves, ports: PortMap, sources: ClassParts, entries: ClassParts
) -> Iterator[TreePiece]:
    """The pieces; parts of a class are scaled to its elements."""
    for i, one in enumerate(moves.classes):
        nodes = _by_node(ports, one.needers)
        first = _stretches(one.elements, one.holders, sources[i])
        into = [_stretches(one.elements, needers, entries[i]) for needers in nodes.values()]
        ends = sorted({stop for stretch in (first, *into) for stop, _ in stretch})
        if len(ends) > MAX_PIECES:
            ends = sorted({one.elements * k // MAX_PIECES for k in range(1, MAX_PIECES + 1)} - {0})
        start = 0
        for stop in ends:
            cards = [_at(stretch, start, stop) for stretch in into]
            edges = _edges(_at(first, start, stop), cards, list(nodes.values()))
            yield TreePiece(i, start, stop, tuple(edges))
            start = stop


def _stretches(
    elements: int, devices: Devices, parts: Mapping[int, float]
) -> list[tuple[int, int]]:
    """Where the stretch of each device ends, with the device: as long as its part."""
    own = {d: parts[d] for d in devices if parts.get(d, 0.0) > 0}
    whole, done, found = sum(own.values()), 0.0, []
    for device, part in own.items():
        done += part
        found.append((round(elements * done / whole), device))
    found[-1] = (elements, found[-1][1])
    return [one for i, one in enumerate(found) if one[0] > (found[i - 1][0] if i else 0)]


def _at(stretch: Sequence[tuple[int, int]], start: int, stop: int) -> int:
    """The device whose stretch the middle of a piece is in."""
    last = stretch[-1][1]
    return next((device for end, device in stretch if 2 * end > start + stop), last)


def _edges(source: int, cards: Sequence[int], nodes: Sequence[Devices]) -> Iterator[Edge]:
    """From the source to the card of each node, and from there around the node."""
    yield from itertools.pairwise((source, *cards))
    for card, needers in zip(cards, nodes, strict=True):
        turn = needers.index(card)
        ring = (*needers[turn:], *needers[:turn])
        yield from itertools.pairwise(ring)


def _by_node(ports: PortMap, devices: Devices) -> Mapping[int, Devices]:
    found: dict[int, list[int]] = defaultdict(list)
    for device in devices:
        found[ports.node(device)].append(device)
    return {node: tuple(own) for node, own in found.items()}


# Amounts dealt out.


@dataclass(frozen=True)
class FillDemand:
    """An amount of bytes of a class that one of these devices has to pass, by its ports."""

    number: int
    amount: int
    devices: tuple[int, ...]


@dataclass(frozen=True)
class Filled:
    """How much of each demand each device passes, and the ports of the worst cut."""

    parts: tuple[Mapping[int, float], ...]
    seconds: float
    cut: frozenset[Port]


def fill(
    demands: Sequence[FillDemand],
    ports: Mapping[int, Port],
    rates: Mapping[Port, Fraction],
) -> Filled:
    """Deal out the demands; ``ports``: of each device."""
    busy = {ports[d]: 0.0 for one in demands for d in one.devices}
    speed = {port: float(rates[port]) for port in busy}
    parts: list[dict[int, float]] = [{} for _ in demands]
    order = sorted(range(len(demands)), key=lambda i: (len(demands[i].devices), -demands[i].amount))
    for i in order:
        for port, amount in _level(demands[i], ports, busy, speed).items():
            own = [d for d in demands[i].devices if ports[d] == port]
            parts[i].update(dict.fromkeys(own, amount / len(own)))
            busy[port] += amount / speed[port]
    worst = max(busy.values(), default=0.0)
    return Filled(tuple(parts), worst, _cut(demands, parts, ports, busy))


def _level(
    demand: FillDemand,
    ports: Mapping[int, Port],
    busy: Mapping[Port, float],
    speed: Mapping[Port, float],
) -> Mapping[Port, float]:
    """What each port takes so that those which take anything are equally busy."""
    order = sorted({ports[d] for d in demand.devices}, key=lambda port: (busy[port], port))
    rate, held, level = 0.0, 0.0, 0.0
    for place, port in enumerate(order):
        rate, held = rate + speed[port], held + speed[port] * busy[port]
        level = (demand.amount + held) / rate
        if place + 1 == len(order) or level <= busy[order[place + 1]]:
            break
    found = {port: (level - busy[port]) * speed[port] for port in order if busy[port] < level}
    return {port: amount for port, amount in found.items() if amount > demand.amount * 1e-9}


def _cut(
    demands: Sequence[FillDemand],
    parts: Sequence[Mapping[int, float]],
    ports: Mapping[int, Port],
    busy: Mapping[Port, float],
) -> frozenset[Port]:
    """The busiest port, and all that what it passes might go by instead, and so on."""
    if not busy:
        return frozenset()
    found = {max(busy, key=lambda port: (busy[port], port))}
    sets = [
        ({ports[d] for d in one.devices}, {ports[d] for d in part})
        for one, part in zip(demands, parts, strict=True)
    ]
    size = 0
    while size != len(found):
        size = len(found)
        for allowed, used in sets:
            if used & found:
                found |= allowed
    return frozenset(found)

"""Chains over nodes: plans where what needs is apart from what holds, node by node.

Every byte leaves its holders once.  It enters each node that needs it once, by the card of one of
its needers there, goes on to the next node from that card, and inside the node from needer to
needer.  So no receiver sends more than it gets, and the time is that of the busiest holder or of
the busiest entry, which :mod:`p2smt.transfer.fill` deals out.
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
from p2smt.transfer.fill import FillDemand, fill
from p2smt.transfer.plan import Edge, TreePiece
from p2smt.transfer.ports import IN, OUT, PortMap

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

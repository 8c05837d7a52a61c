"""What no plan of a transfer beats, proved by prices: sums of fractions, without a solver.

Every port has a price of 0 or more for a byte.  A byte of a class reaches its needers along a tree
over devices that hold or need it, and each edge of the tree costs what the ports at its ends do:

1. into a needer over the network at least its own price and the cheapest of a sender in another
   node; inside its node at least its own price and the cheapest of another device there;
2. in every node with needers the first edge comes over the network, or from a holder there;
3. where some node has needers and no holder, the first edge into one of these leaves a node with a
   holder;
4. of every level further out (racks), an entity with needers and no holder is entered once at
   least, by the cheapest of its devices from the cheapest of another entity, and the first edge
   into one of these leaves an entity with a holder.

Levels have ports of their own, so that what an edge costs at each adds up.  Plans that relay may
also use devices that neither hold nor need a piece: then all devices of the nodes that hold or need
anything count as senders, and all cards of a node as one port.

So a class costs at least the sum of these, and all classes together no more than all ports can
take in T seconds, T times rate times price.  The quotient is a bound on T, whatever the prices are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from p2smt.transfer.classes import Devices, TransferMoves
from p2smt.transfer.ports import IN, OUT, Port, PortMap

PortPrices = Mapping[Port, Fraction]

OPTIMAL_WITHIN = Fraction(1, 10**6)
"""Relative: a plan so near to its bound is optimal, but for whole elements."""


@dataclass(frozen=True)
class TransferCertificate:
    """Seconds that no plan is below, and the price of a byte at each port that has one."""

    bound_s: Fraction
    prices: PortPrices


@dataclass(frozen=True)
class _Tariff:
    """Prices of devices as whole numbers: between nodes out and in, inside a node the same."""

    out: Mapping[int, int]
    into: Mapping[int, int]
    give: Mapping[int, int]
    take: Mapping[int, int]
    relays: Mapping[int, Sequence[int]]
    """Devices by node that may pass on what they neither hold nor need; none: no plan relays."""
    outer: Sequence[tuple[int, Mapping[int, int], Mapping[int, int]]]
    """Devices of an entity of each level further out that has prices, and theirs, out and in."""


def proved_bound_s(
    moves: TransferMoves, item_bytes: int, ports: PortMap, prices: PortPrices
) -> Fraction:
    """The bound that prices prove, in seconds; 0: nothing.

    Raises:
        ValueError: a price is below 0.
    """
    if any(price < 0 for price in prices.values()):
        raise ValueError("a price is below 0")
    whole = math.lcm(*(price.denominator for price in prices.values()), 1)
    paid = {port: int(price * whole) for port, price in prices.items()}
    able = sum((ports.rate(port) * price for port, price in paid.items()), Fraction(0))
    if not able:
        return Fraction(0)
    tariff = _tariff(moves, ports, paid)
    cost = sum(
        one.elements * _cost(one.holders, one.needers, ports, tariff) for one in moves.classes
    )
    return item_bytes * cost / able


def _tariff(moves: TransferMoves, ports: PortMap, paid: Mapping[Port, int]) -> _Tariff:
    devices = {d for one in moves.classes for d in (*one.holders, *one.needers)}
    if ports.relayed:
        nodes = {ports.node(d) for d in devices}
        devices = {d for d in ports.topology.places if ports.node(d) in nodes}
    relays = _by_node(ports, sorted(devices)) if ports.relayed else {}
    sides = {
        (way, d): [sum(paid.get(port, 0) for port in side) for side in ports.sides(d, way)]
        for way in (OUT, IN)
        for d in devices
    }
    out, into = ({d: sides[way, d][0] for d in devices} for way in (OUT, IN))
    give, take = ({d: sides[way, d][1] for d in devices} for way in (OUT, IN))
    outer = []
    for level in sorted({port.level for port in paid if port.level < ports.network}):
        from_each, to_each = (
            {d: sum(paid.get(port, 0) for port in ports.of_side(d, level, way)) for d in devices}
            for way in (OUT, IN)
        )
        outer.append((ports.topology.devices_under(level), from_each, to_each))
    return _Tariff(out, into, give, take, relays, outer)


def _cost(holders: Devices, needers: Devices, ports: PortMap, tariff: _Tariff) -> int:
    """What a byte of a class costs at least."""
    having, lacking = _by_node(ports, holders), _by_node(ports, needers)
    nodes = tariff.relays or _by_node(ports, (*holders, *needers))
    senders = {n: min(tariff.out[d] for d in own) for n, own in nodes.items()}
    total, needy = _outer_cost(holders, needers, tariff), []
    for n, needing in lacking.items():
        sending = min((price for m, price in senders.items() if m != n), default=None)
        total += _node_cost(having.get(n, ()), needing, nodes[n], sending, tariff)
        if n not in having and sending is not None:
            needy.append(sending)
    return total + (min(senders[n] for n in having) - max(needy) if needy else 0)


def _outer_cost(holders: Devices, needers: Devices, tariff: _Tariff) -> int:
    """What a byte costs at least at the levels further out."""
    total = 0
    for width, out, into in tariff.outer:
        having, lacking = ({d // width for d in own} for own in (holders, needers))
        passing: dict[int, list[int]] = defaultdict(list)
        for device in out if tariff.relays else {*holders, *needers}:
            passing[device // width].append(device)
        senders = {one: min(out[d] for d in own) for one, own in passing.items()}
        needy = []
        for one in lacking - having:
            needy.append(min(price for other, price in senders.items() if other != one))
            total += needy[-1] + min(into[d] for d in passing[one])
        if needy:
            total += min(senders[one] for one in having) - max(needy)
    return total


def _by_node(ports: PortMap, devices: Sequence[int]) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for device in devices:
        found[ports.node(device)].append(device)
    return found


def _node_cost(
    having: Sequence[int],
    lacking: Sequence[int],
    passing: Sequence[int],
    sending: int | None,
    tariff: _Tariff,
) -> int:
    """What the edges into the needers of a node cost.

    ``passing``: its devices that may pass something on.  ``sending``: the cheapest price out of
    another node; None: there is none.  With relays the first needer may get it from one of them,
    to which an edge of its own led.
    """
    members = sorted(passing, key=lambda d: tariff.give[d])
    from_holder = min((tariff.give[d] for d in having), default=None)
    total, first = 0, None
    for device in lacking:
        ways = [] if sending is None else [tariff.into[device] + sending]
        starts = list(ways)
        other = next((d for d in members if d != device), None)
        if other is not None:
            ways.append(tariff.take[device] + tariff.give[other])
        if from_holder is not None:
            starts.append(tariff.take[device] + from_holder)
        least = min(ways)
        total += least
        more = min(starts) - least
        first = more if first is None else min(first, more)
    if tariff.relays and from_holder is not None:
        first = min(first or 0, from_holder + min(tariff.take[d] for d in passing))
    return total + (first or 0)


def gap_of(seconds: Fraction, bound_s: Fraction) -> Fraction | None:
    """How much longer than the bound, as a part of it; None: nothing is proved."""
    if not bound_s:
        return None if seconds else Fraction(0)
    return seconds / bound_s - 1

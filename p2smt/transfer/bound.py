"""The greatest bound on a transfer that prices prove: the linear program's, made exact."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from p2smt.problems.transfer import FlowShares
from p2smt.result import SAME, SearchLimits, Status
from p2smt.solvers.ask import ask_flows
from p2smt.transfer.certificate import PortPrices, TransferCertificate, proved_bound_s
from p2smt.transfer.classes import TransferMoves
from p2smt.transfer.colours import Reduced, equitable, incidence_of, reduced
from p2smt.transfer.ports import IN, LIMIT, OUT, Port, PortMap

_COARSE, _FINE = 5040, 2**40


@dataclass(frozen=True)
class FlowBound:
    """A certificate, and the shares of the optimum that its prices are from.

    ``shares``: by class and device, in the order of the classes.
    """

    certificate: TransferCertificate
    shares: tuple[Mapping[int, FlowShares], ...]


def flow_bound(
    moves: TransferMoves, ports: PortMap, item_bytes: int, limits: SearchLimits
) -> FlowBound | None:
    """The bound of the linear program; None: the time ran out."""
    found = incidence_of(moves, ports)
    problem = reduced(found, equitable(found, ports), ports, item_bytes)
    answer = ask_flows(problem.problem, limits)
    if answer.status is not Status.OPTIMAL or answer.value is None:
        return None
    priced = _named(problem, answer.value.prices)
    best = exact(moves, ports, item_bytes, priced, answer.value.seconds)
    return FlowBound(best, tuple(_shares(problem, answer.value.shares)))


def _named(problem: Reduced, prices: tuple[float, ...]) -> Mapping[Port, float]:
    colours = problem.colours.port.tolist()
    pairs = zip(problem.found.ports, colours, strict=True)
    return {port: prices[colour] for port, colour in pairs if prices[colour] > 0}


def exact(
    moves: TransferMoves,
    ports: PortMap,
    item_bytes: int,
    prices: Mapping[Port, float],
    seconds: float,
) -> TransferCertificate:
    """Prices as fractions: simple ones where they prove as much, else close ones."""
    best = TransferCertificate(Fraction(0), {})
    for steps in (_COARSE, _FINE):
        made = dict(_fractions(ports, prices, steps))
        bound = proved_bound_s(moves, item_bytes, ports, made)
        if bound > best.bound_s:
            best = TransferCertificate(bound, made)
        if best.bound_s >= Fraction(seconds) * Fraction(1 - SAME):
            break
    return best


def _fractions(
    ports: PortMap, prices: Mapping[Port, float], steps: int
) -> Iterator[tuple[Port, Fraction]]:
    """Of each port what it costs for a second, in steps of the dearest, over its rate."""
    worth = {port: price * float(ports.rate(port)) for port, price in prices.items()}
    dearest = max(worth.values(), default=1.0)
    for port, value in worth.items():
        units = round(value / dearest * steps)
        if units:
            yield port, Fraction(units, steps) / ports.rate(port)


def _shares(
    problem: Reduced, shares: tuple[tuple[tuple[FlowShares, ...], ...], ...]
) -> list[dict[int, FlowShares]]:
    found: list[dict[int, FlowShares]] = [{} for _ in problem.found.moves.classes]
    rows, devices = problem.found.row.tolist(), problem.found.device.tolist()
    for entry, (row, device) in enumerate(zip(rows, devices, strict=True)):
        b, n, g = problem.place(entry)
        found[row][problem.found.devices[device]] = shares[b][n][g]
    return found


# The bound of levels further out than the nodes' network: what enters and leaves racks.


def outer_bound(moves: TransferMoves, ports: PortMap, item_bytes: int) -> TransferCertificate:
    """The best cut of these levels: one entity, or all of them, in or out; 0: none binds."""
    best = TransferCertificate(Fraction(0), {})
    for level in range(max(ports.network, 0)):
        for way in (OUT, IN):
            for prices in _cuts(moves, ports, level, way):
                bound = proved_bound_s(moves, item_bytes, ports, prices)
                best = max(best, TransferCertificate(bound, prices), key=lambda one: one.bound_s)
    return best


def _cuts(moves: TransferMoves, ports: PortMap, level: int, way: int) -> Iterator[PortPrices]:
    """The ports of all entities that are crossed, and of the one whose ports take longest."""
    width, crossed = ports.topology.devices_under(level), Counter[int]()
    plugged: dict[int, set[Port]] = defaultdict(set)
    for one in moves.classes:
        having, lacking = ({d // width for d in own} for own in (one.holders, one.needers))
        alone = [*having] if way == OUT and len(having) == 1 and lacking - having else []
        crossed.update(dict.fromkeys(lacking - having if way == IN else alone, one.elements))
        passing = one.needers if way == IN else (*one.holders, *one.needers)
        for device in passing if lacking - having else ():
            plugged[device // width].update(ports.of_side(device, level, way))
    price = {
        entity: {port: Fraction(1) for port in own if port.number != LIMIT}
        for entity, own in plugged.items()
    }
    if crossed:
        rates = {entity: sum(map(ports.rate, price[entity])) for entity in crossed}
        yield price[max(crossed, key=lambda one: (crossed[one] / rates[one], -one))]
    if price:
        yield {port: one for own in price.values() for port, one in own.items()}


# The bound of plans that borrow the cards of neighbours.


def relayed_bound_s(
    moves: TransferMoves,
    ports: PortMap,
    item_bytes: int,
    known: TransferCertificate,
    limits: SearchLimits,
) -> Fraction | None:
    """What no plan is below whose devices pass on for others of their nodes; None: no time.

    ``known``: the bound without relays, whose prices are tried first.
    """
    merged = replace(ports, relayed=True)
    first = proved_bound_s(moves, item_bytes, merged, dict(_merged(ports, merged, known.prices)))
    if first == known.bound_s:
        return first
    found = flow_bound(moves, merged, item_bytes, limits)
    return None if found is None else max(first, found.certificate.bound_s)


def _merged(ports: PortMap, merged: PortMap, prices: PortPrices) -> Iterator[tuple[Port, Fraction]]:
    """Prices inside as they are; of all cards of a node together that of the cheapest."""
    network = {(port.entity, port.way) for port in prices if port.level == ports.network}
    for node, way in network:
        width = ports.topology.devices_under(ports.network)
        own = range(node * width, node * width + width)
        cheapest = min(prices.get(ports.sides(d, way)[0][0], Fraction(0)) for d in own)
        if cheapest:
            yield merged.sides(node * width, way)[0][0], cheapest
    yield from ((port, price) for port, price in prices.items() if port.level != ports.network)

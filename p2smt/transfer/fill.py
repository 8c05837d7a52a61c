"""Amounts dealt out to the ports that may take them, least loaded first, and where that stops.

Sets of ports that are disjoint or nested are filled best from the smallest set on, each amount on
the ports of its set that are least busy; where sets cross, it is a good start and no more.  The cut
at which it stops, busy ports and what may go nowhere else, proves how good it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from p2smt.transfer.ports import Port


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

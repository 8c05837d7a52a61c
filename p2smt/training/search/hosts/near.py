"""The strategies near the best one on hosts: each has an order that is near, or none is left.

The fastest strategy by the model is often one that nobody has run; of those near it a measured one
may be the better choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from p2smt.parallelism.placement import IntArray
from p2smt.result import Status, StopWatch
from p2smt.training.search.hosts.answer import HostedStrategy, HostsNearBest
from p2smt.training.search.hosts.orders import Orders, Unit
from p2smt.training.search.question import PlanQuestion
from p2smt.training.strategy import Strategy

_COSTED = 1
"""Of the known orders of a unit so many are costed device by device."""


class Searched(Protocol):
    """What is asked of a :class:`~p2smt.training.search.hosts.search.HostSearch`."""

    question: PlanQuestion
    watch: StopWatch
    found: dict[object, HostedStrategy]
    units: list[Unit]
    orders: Orders

    @property
    def queue_s(self) -> float:
        """The least bound in its queue."""

    def near_s(self) -> float:
        """What is slower is not near."""

    def loop(self, cutoff_s: Callable[[], float], take: Callable[[float, Any], None]) -> None:
        """Take what may be below a cutoff."""

    def take(self, bound_s: float, item: Any) -> None:
        """The next step for what is in the queue."""

    def every_order(self, unit: Unit) -> IntArray | None:
        """All orders of a unit, if there are few."""

    def cost(self, unit: Unit, orders: IntArray, most: int, below_s: float | None = None) -> float:
        """Cost the best of some orders."""


def near_best(search: Searched, most: int) -> HostsNearBest:
    """The strategies within the question's ``within`` of the best of a search that has ended.

    ``most``: so many units are opened, and looked at, at most.
    """
    limit_s, decided, interrupted = search.near_s(), False, False
    try:
        opened = _opened(search, limit_s, most)
        decided = _looked_at(search, limit_s, most) and opened
    except KeyboardInterrupt:
        interrupted = True
    limit_s = search.near_s()
    members = [one for one in _fastest(search).values() if one.sequence_s <= limit_s]
    members.sort(key=lambda one: one.sequence_s)
    status = Status.COMPLETE if decided else Status.TRUNCATED
    return HostsNearBest(search.question.within, status, tuple(members), interrupted)


def _fastest(search: Searched) -> dict[Strategy, HostedStrategy]:
    """Of each strategy the fastest batch and order that are known."""
    least: dict[Strategy, HostedStrategy] = {}
    for one in search.found.values():
        strategy = one.run.strategy
        if strategy not in least or one.sequence_s < least[strategy].sequence_s:
            least[strategy] = one
    return least


def _opened(search: Searched, limit_s: float, most: int) -> bool:
    """Open all that may be near; whether nothing is left."""

    def wanted() -> float:
        enough = len(search.units) >= most
        return -math.inf if enough else math.nextafter(limit_s, math.inf)

    def take(bound_s: float, item: Any) -> None:
        if not isinstance(item, Unit):  # those are in the list of units
            search.take(bound_s, item)

    search.loop(wanted, take)
    return search.queue_s > limit_s


def _looked_at(search: Searched, limit_s: float, most: int) -> bool:
    """Cost an order of each unit that may be near; whether each strategy is decided."""
    decided = True
    units = sorted((one for one in search.units if one.bound_s <= limit_s), key=_bound)
    for unit in units[:most]:
        if search.watch.expired():
            return False
        known_s = _known_s(search, unit)
        if unit.bound_s >= known_s:
            continue
        below_s = min(known_s, math.nextafter(limit_s, math.inf))
        search.cost(unit, search.orders.known(unit), _COSTED, below_s)
        if _known_s(search, unit) > limit_s:
            decided &= _every(search, unit, limit_s)
    return decided and len(units) <= most


def _bound(unit: Unit) -> float:
    return unit.bound_s


def _known_s(search: Searched, unit: Unit) -> float:
    """Seconds of a sequence of the unit's strategy, with whichever batch and order is known."""
    return min(_times(search, unit.run.strategy), default=math.inf)


def _times(search: Searched, strategy: Strategy) -> Iterator[float]:
    for one in search.found.values():
        if one.run.strategy == strategy:
            yield one.sequence_s


def _every(search: Searched, unit: Unit, limit_s: float) -> bool:
    """Look at all orders of a unit, if there are few; whether there are."""
    orders = search.every_order(unit)
    if orders is not None:
        search.cost(unit, orders, len(orders), math.nextafter(limit_s, math.inf))
    return orders is not None

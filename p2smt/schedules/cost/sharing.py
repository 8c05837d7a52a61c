"""Transfers that share links, as fluids: every full link serves its transfers fairly.

Rates are max-min fair: no transfer can go faster without slowing one that is not faster than it
(Bertsekas and Gallager, "Data Networks", 2nd edition, section 6.5.2: progressive filling).  Where
transfers begin or end, only those that are joined to them by shared links are shared out anew.
Thousands at once that all end at different times take work that grows with their square; after a
fixed amount of it, each link gives all its transfers equal parts, whether they can use them or
not, which is quicker to keep up and never faster for the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from p2smt.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from p2smt.schedules.cost.links import DirectedLink, Route

# Relative changes of a rate below this are rounding.
_ROUNDING = 1e-12
# Steps of work (a transfer on a link) for fair rates, and in all: about 10 and 60 seconds.
FAIR_WORK, MOST_WORK = 8_000_000, 40_000_000


@dataclass(slots=True)
class Transfer:
    """A transfer under way: ``left`` bytes at time ``since``, going at ``rate`` bytes/s.

    version: how often the rate has been changed; an end foretold before is void.
    """

    route: Route
    left: float
    since: float
    rate: float = 0.0
    version: int = 0

    def end_s(self) -> float:
        """When it ends, at this rate."""
        return self.since + self.left / self.rate


class Foretold(NamedTuple):
    """The end of a transfer, if its version is still this one."""

    time_s: float
    transfer: int
    version: int


@dataclass(slots=True)
class Sharing:
    """All transfers under way, by number; one may stand for several (``Route.times``).

    loads: bytes that each link (by number) has to carry in all.
    fair_work, most_work: how much to do for fair rates, and in all.
    rough: the former was not enough.
    """

    links: Sequence[DirectedLink]
    transfers: dict[int, Transfer] = field(default_factory=dict)
    loads: dict[int, float] = field(default_factory=dict)
    changed: dict[int, None] = field(default_factory=dict)
    fair_work: int = FAIR_WORK
    most_work: int = MOST_WORK
    rough: bool = False
    work: int = 0
    _on: dict[int, dict[int, int]] = field(default_factory=dict)
    _many: dict[int, int] = field(default_factory=dict)

    def begin(self, number: int, route: Route, size: float, now: float) -> None:
        """A transfer of ``size`` > 0 bytes begins; it moves once :meth:`settle` is called."""
        self.transfers[number] = Transfer(route, size, now)
        for link, times in zip(route.links, route.times or repeat(1), strict=False):
            self.loads[link] = self.loads.get(link, 0.0) + size * times
            self._on.setdefault(link, {})[number] = times
            self._many[link] = self._many.get(link, 0) + times
            self.changed[link] = None

    def end(self, number: int) -> None:
        """A transfer is over."""
        for link in self.transfers.pop(number).route.links:
            self._many[link] -= self._on[link].pop(number)
            if self._on[link]:
                self.changed[link] = None

    def settle(self, now: float) -> Iterator[Foretold]:
        """Shares out anew what has changed, and foretells the ends of what goes at a new rate."""
        if not self.rough and self.work > self.fair_work:
            self.rough = True
            self.changed.update((link, None) for link, numbers in self._on.items() if numbers)
        if self.work > self.most_work:
            raise TooLarge(
                f"{len(self.transfers)} transfers that share links at a time",
                "are too many to predict their times",
                "choose fewer chunks or ranks",
            )
        yield from self._rough(now) if self.rough else self._fairly(now)
        self.changed.clear()

    def _rough(self, now: float) -> Iterator[Foretold]:
        """Equal parts of each link for all who use it."""
        numbers = dict.fromkeys(n for link in self.changed for n in self._on[link])
        for number in numbers:
            links = self.transfers[number].route.links
            self.work += len(links)
            part = min(self.links[k].bandwidth_bytes_per_s / self._many[k] for k in links)
            yield from self._set(number, part, now)

    def _fairly(self, now: float) -> Iterator[Foretold]:
        seen: set[int] = set()
        for link in self.changed:
            if link not in seen and self._on[link]:
                for number, rate in self._share(self._joined(link, seen)).items():
                    yield from self._set(number, rate, now)

    def _set(self, number: int, rate: float, now: float) -> Iterator[Foretold]:
        transfer = self.transfers[number]
        if abs(rate - transfer.rate) > _ROUNDING * transfer.rate:
            transfer.left -= min(transfer.left, transfer.rate * (now - transfer.since))
            transfer.since, transfer.rate = now, rate
            transfer.version += 1
            yield Foretold(transfer.end_s(), number, transfer.version)

    def _joined(self, first: int, seen: set[int]) -> list[int]:
        """The links that shared transfers join to one, directly or not; adds them to seen."""
        seen.add(first)
        found, known = [first], set[int]()
        for link in found:
            for number in self._on[link]:
                if number not in known:
                    known.add(number)
                    new = [k for k in self.transfers[number].route.links if k not in seen]
                    seen.update(new)
                    found += new
        return found

    def _share(self, links: Sequence[int]) -> dict[int, float]:
        numbers = self._on[links[0]]
        if len(numbers) == 1 and all(len(self._on[link]) == 1 for link in links):
            (alone,) = numbers
            return {alone: self.transfers[alone].route.bandwidth_bytes_per_s}
        return self._fair(links)

    def _fair(self, links: Sequence[int]) -> dict[int, float]:
        """Fills the links: the one with the least to give to each fixes its transfers first."""
        free = {link: self.links[link].bandwidth_bytes_per_s for link in links}
        open_ = {link: self._many[link] for link in links}
        queue = [(free[link] / open_[link], link) for link in links]
        heapify(queue)
        rates: dict[int, float] = {}
        while queue:
            share, link = heappop(queue)
            if not open_[link] or share < free[link] / open_[link]:
                continue  # the share has grown since
            touched: dict[int, None] = {}
            for number in self._on[link]:
                if number not in rates:
                    rates[number] = share
                    self.work += len(self.transfers[number].route.links)
                    for other in self.transfers[number].route.links:
                        times = self._on[other][number]
                        free[other] -= share * times
                        open_[other] -= times
                        touched[other] = None
            for other in touched:
                if open_[other]:
                    heappush(queue, (max(share, free[other] / open_[other]), other))
        return rates

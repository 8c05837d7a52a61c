"""What steps wait for, and since when it is there: messages, room, counters, packets."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


class Token(NamedTuple):
    """Something that is there at ``time_s``: ``lag_s`` after a step's end, or after its start."""

    time_s: float
    step: int
    lag_s: float = 0.0
    from_start: bool = False


@dataclass(slots=True)
class TokenStore:
    """What has been made so far, earliest first; initial tokens come before all others.

    initial: tokens that are there from the start, by kind.
    first: packets stay when they are read: the first one written to each cell.
    """

    initial: dict[Hashable, int]
    made: defaultdict[Hashable, list[Token]] = field(default_factory=lambda: defaultdict(list))
    first: dict[int, Token] = field(default_factory=dict)

    def lack(self, keys: Sequence[Hashable], cells: Sequence[int]) -> Hashable | None:
        """The first of these that is not there, nor on its way."""
        for key, many in Counter(keys).items():
            if len(self.made[key]) + self.initial.get(key, 0) < many:
                return key
        return next((cell for cell in cells if cell not in self.first), None)

    def take(self, keys: Sequence[Hashable], cells: Sequence[int]) -> list[Token]:
        """Takes one of each, and looks at the packets; nothing may lack."""
        taken = [self.first[cell] for cell in cells]
        for key in keys:
            if self.initial.get(key, 0):
                self.initial[key] -= 1
            else:
                taken.append(heappop(self.made[key]))
        return taken

    def ready_s(self, keys: Sequence[Hashable], cells: Sequence[int]) -> float:
        """When all of these are there; nothing may lack."""
        times = [self.first[cell].time_s for cell in cells]
        for key, many in Counter(keys).items():
            missing = many - self.initial.get(key, 0)
            if missing > 0:
                made = self.made[key]
                times.append(made[0].time_s if missing == 1 else sorted(made)[missing - 1].time_s)
        return max(times, default=0.0)

    def make(self, key: Hashable, token: Token) -> None:
        """Adds one."""
        heappush(self.made[key], token)

    def write(self, cell: int, token: Token) -> None:
        """A packet is written to a cell."""
        if cell not in self.first or token.time_s < self.first[cell].time_s:
            self.first[cell] = token

"""Interned multisets: what chunks hold, by number, so that each sum is worked out once.

A multiset is made of parts.  Where the order of accesses is not certain it is partly symbolic: it
also names reads, and stands for whatever those see.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from p2smt.collectives.contract import Contribution

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

Part = Contribution | str
"""What a sum is made of: a contribution, or the name of a chunk that was read before any write."""

NOTHING = 0
"""The number of the empty multiset."""


class Multiset(NamedTuple):
    """How often each part is there, and how often what each read sees."""

    parts: Mapping[Part, int]
    reads: Mapping[int, int]


Key = tuple[frozenset[tuple[Part, int]], frozenset[tuple[int, int]]]


@dataclass(slots=True)
class Multisets:
    """Multisets by number; equal ones have one number."""

    known: list[Multiset] = field(default_factory=list)
    _numbers: dict[Key, int] = field(default_factory=dict)
    _sums: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.number({}, {})

    def number(self, parts: Mapping[Part, int], reads: Mapping[int, int]) -> int:
        """The number of a multiset."""
        key = frozenset(parts.items()), frozenset(reads.items())
        if key not in self._numbers:
            self._numbers[key] = len(self.known)
            self.known.append(Multiset(parts, reads))
        return self._numbers[key]

    def single(self, part: Part) -> int:
        """The number of one part, once."""
        return self.number({part: 1}, {})

    def seen_by(self, read: int) -> int:
        """The number of what a read sees."""
        return self.number({}, {read: 1})

    def add(self, a: int, b: int) -> int:
        """The number of a sum; the parts of ``a`` come first where it is a new one."""
        if not a or not b:
            return a or b
        key = (a, b) if a < b else (b, a)
        if key not in self._sums:
            (parts, reads), more = self.known[a], self.known[b]
            self._sums[key] = self.number(_sum(parts, more.parts), _sum(reads, more.reads))
        return self._sums[key]

    def scaled(self, a: int, times: int) -> int:
        """The number of a multiset taken several times."""
        parts, reads = self.known[a]
        return self.number(
            {part: n * times for part, n in parts.items()},
            {read: n * times for read, n in reads.items()},
        )


def _sum(a: Mapping[T, int], b: Mapping[T, int]) -> Counter[T]:
    total = Counter(a)
    total.update(b)
    return total

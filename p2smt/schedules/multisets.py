"""Interned multisets: what chunks hold, by number, so that each sum is worked out once.

A multiset is made of parts.  Where the order of accesses is not certain it is partly symbolic: it
also names reads, and stands for whatever those see.

A large ring passes tens of thousands of sums of hundreds of contributions each.  Nearly all of
them hold each contribution once, so such a sum is kept as a set of ranks for each chunk, one bit a
rank, and its parts are listed only where somebody asks for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from p2smt.collectives.contract import Contribution

T = TypeVar("T")

Part = Contribution | str
"""What a sum is made of: a contribution, or the name of a chunk that was read before any write."""

NOTHING = 0
"""The number of the empty multiset."""

Ranks = tuple[tuple[int, int], ...]
"""For each chunk, ascending, the ranks that contribute it once, as bits."""

_NO_READS: Mapping[int, int] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class Multiset:
    """How often each part is there, and how often what each read sees.

    ranks: the whole of it, if it is contributions alone, each once; its parts are then those of
        its addends, in their order.
    """

    reads: Mapping[int, int]
    ranks: Ranks | None = None
    addends: tuple[Multiset, Multiset] | None = None
    listed: Mapping[Part, int] | None = None

    @property
    def parts(self) -> Mapping[Part, int]:
        """How often each part is there."""
        if self.listed is None:
            self.listed = dict.fromkeys(self._leaves(), 1)
        return self.listed

    def _leaves(self) -> list[Part]:
        found: list[Part] = []
        todo = [self]
        while todo:
            this = todo.pop()
            if this.listed is None and this.addends is not None:
                todo += reversed(this.addends)
            else:
                found += this.parts
        return found


Key = Ranks | tuple[frozenset[tuple[Part, int]], frozenset[tuple[int, int]]]


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
        ranks = None if reads else _ranks(parts)
        key = (frozenset(parts.items()), frozenset(reads.items())) if ranks is None else ranks
        return self._numbers.get(key) or self._numbered(key, Multiset(reads, ranks, listed=parts))

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
            self._sums[key] = self._added(self.known[a], self.known[b])
        return self._sums[key]

    def scaled(self, a: int, times: int) -> int:
        """The number of a multiset taken several times."""
        whole = self.known[a]
        return self.number(
            {part: n * times for part, n in whole.parts.items()},
            {read: n * times for read, n in whole.reads.items()},
        )

    def _added(self, a: Multiset, b: Multiset) -> int:
        ranks = None if a.ranks is None or b.ranks is None else _union(a.ranks, b.ranks)
        if ranks is None:
            return self.number(_sum(a.parts, b.parts), _sum(a.reads, b.reads))
        known = self._numbers.get(ranks)
        return self._numbered(ranks, Multiset(_NO_READS, ranks, (a, b))) if known is None else known

    def _numbered(self, key: Key, multiset: Multiset) -> int:
        number = self._numbers.setdefault(key, len(self.known))
        if number == len(self.known):
            self.known.append(multiset)
        return number


def _ranks(parts: Mapping[Part, int]) -> Ranks | None:
    """The ranks of each chunk, if there are only contributions, each once."""
    ranks: dict[int, int] = {}
    for part, times in parts.items():
        if times != 1 or not isinstance(part, Contribution):
            return None
        ranks[part.chunk] = ranks.get(part.chunk, 0) | 1 << part.rank
    return tuple(sorted(ranks.items()))


def _union(a: Ranks, b: Ranks) -> Ranks | None:
    """The ranks of a sum, if nothing is there twice."""
    ranks = dict(a)
    for chunk, more in b:
        if ranks.get(chunk, 0) & more:
            return None
        ranks[chunk] = ranks.get(chunk, 0) | more
    return tuple(sorted(ranks.items()))


def _sum(a: Mapping[T, int], b: Mapping[T, int]) -> Counter[T]:
    total = Counter(a)
    total.update(b)
    return total

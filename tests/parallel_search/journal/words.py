"""A toy space: words of a few letters, each with a cost; a cube is the first letters of a word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from p2smt.errors import InputError
from p2smt.parallel_search.best import digest_of
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    SearchKind,
    Signals,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)

LETTERS = "abc"


@dataclass(frozen=True, slots=True)
class Words:
    """Words of ``length`` letters; one that holds ``forbidden`` is no member.

    A word costs the sum of ``prices`` of its letters; of equal costs the first in the dictionary
    precedes.
    """

    length: int = 3
    skeleton: SearchKind = SearchKind.OPTIMISE
    forbidden: str = "aa"
    prices: tuple[int, ...] = (1, 2, 4)
    lies: tuple[str, ...] = ()  # cubes whose answers it falsifies: for tests of the checks

    def description(self) -> Mapping[str, object]:
        """As JSON."""
        plain = {"length": self.length, "forbidden": self.forbidden, "prices": list(self.prices)}
        return {**plain, "skeleton": self.skeleton.value}

    def roots(self) -> tuple[Subproblem, ...]:
        """One for each first letter."""
        return self.split(Subproblem())

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:
        """One for each next letter."""
        if len(cube.path) == self.length:
            return ()
        return tuple(cube.under(letter) for letter in LETTERS)

    def bound(self, cube: Subproblem) -> int:
        """The letters that are there, and the cheapest for the rest."""
        rest = self.length - len(cube.path)
        return sum(map(self._price, cube.path)) + rest * min(self.prices)

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        """List the members, and keep the best."""
        assert not signals.stopped()
        cube, found = task.cube, self.members(task.cube)
        if self.skeleton is SearchKind.ENUMERATE:
            digest = digest_of(one.witness for one in found)
            return Closure(cube, SubproblemVerdict.LISTED, count=len(found), digest=digest)
        if not found or "".join(cube.path) in self.lies:
            return Closure(cube, SubproblemVerdict.EMPTY)
        if len(task.known) == task.top and task.known[-1] <= found[0]:
            return Closure(cube, SubproblemVerdict.BOUNDED, found[0].value)
        return Closure(cube, SubproblemVerdict.SOLVED, found[0].value, tuple(found[: task.top]))

    def member(self, witness: str) -> Member:
        """A word with its cost."""
        right = len(witness) == self.length and set(witness) <= set(LETTERS)
        if not right or self.forbidden in witness:
            raise InputError(f"word {witness[:40]!r}", "is no member")
        return Member(sum(map(self._price, witness)), tuple(map(ord, witness)), witness)

    def members(self, cube: Subproblem) -> list[Member]:
        """Those of a cube, best first."""
        rests = product(LETTERS, repeat=self.length - len(cube.path))
        words = ("".join((*cube.path, *rest)) for rest in rests)
        return sorted(self.member(word) for word in words if self.forbidden not in word)

    def _price(self, letter: str) -> int:
        return self.prices[LETTERS.index(letter)]


def words_in(cube: Subproblem) -> Fraction:
    """The share of all words that begin so, whether they are members or not."""
    return Fraction(1, len(LETTERS) ** len(cube.path))

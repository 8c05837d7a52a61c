"""Values that can be written down, where a test draws as it goes or shuffles.

``st.data()`` and ``st.randoms()`` give objects whose cases cannot be an ``@example``; these can:
their repr makes them again.
"""

from __future__ import annotations

from random import Random
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Draws:
    """What a test draws one after another, each from what the values before it leave.

    Hypothesis draws them and they are remembered; ``Draws(3, "x")`` hands out those given instead.

    Raises:
        LookupError: the test draws more often than it did when the case was written.
    """

    def __init__(self, *values: object, by: st.DataObject | None = None) -> None:
        self.values, self._by, self._next = list(values), by, 0

    def draw(self, strategy: st.SearchStrategy[T], label: str | None = None) -> T:
        """The next value: a new one of the strategy, or the one that was given."""
        if self._by is not None:
            self.values.append(value := self._by.draw(strategy, label))
            return value
        if self._next == len(self.values):
            raise LookupError(f"a case of {self._next} draws, and the test wants one more of them")
        self._next += 1
        return self.values[self._next - 1]  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"Draws({', '.join(map(repr, self.values))})"


@st.composite
def draws(draw: st.DrawFn) -> Draws:
    """For tests that draw as they go; where values are known beforehand, draw those."""
    return Draws(by=draw(st.data()))


class Shuffle(Random):
    """Random numbers that its seed tells."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def __reduce__(self) -> tuple[type[Shuffle], tuple[int]]:
        return Shuffle, (self.number,)

    def __repr__(self) -> str:
        return f"Shuffle({self.number})"


def shuffles() -> st.SearchStrategy[Shuffle]:
    """Sources of random numbers."""
    return st.integers(0, 2**32 - 1).map(Shuffle)

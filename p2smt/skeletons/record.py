"""What a search writes down as it goes, and reads when it continues: seen from the search."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from p2smt.skeletons.cube import Closure, Cube, Member


class Recorded(Protocol):
    """What an earlier run has written down; what is late or double in it does no harm."""

    @property
    def closures(self) -> Iterable[Closure]:
        """Cubes that were closed."""
        ...

    @property
    def splits(self) -> Iterable[tuple[Cube, tuple[Cube, ...]]]:
        """Cubes that were replaced, and their children."""
        ...

    @property
    def members(self) -> Iterable[Member]:
        """The best members that were found."""
        ...


class Record(Protocol):
    """Where a search writes what became of its cubes; each call is on disk when it returns."""

    @property
    def resumed(self) -> Recorded | None:
        """What an earlier run of the same search has left, None if this is the first."""
        ...

    def split(self, cube: Cube, children: tuple[Cube, ...], seconds: float, worker: str) -> None:
        """A cube was replaced by all its children; a worker had it for so many seconds."""
        ...

    def closed(self, closure: Closure) -> None:
        """A cube was closed."""
        ...

    def incumbent(self, member: Member) -> None:
        """A member entered the best ones; before the closure that it came with."""
        ...

"""The cubes of a search that are not closed: waiting for a worker, or with one."""

from __future__ import annotations

import heapq
from typing import NamedTuple

from p2smt.skeletons.cube import Cube, Member
from p2smt.skeletons.space import Space, TieBounded


class OpenCube(NamedTuple):
    """A cube, after what its members cannot precede; cubes are handed out in this order."""

    bound: int
    tie: tuple[int, ...]
    cube: Cube

    def beyond(self, cutoff: Member) -> bool:
        """Whether it is proved that no member of it precedes the cutoff."""
        return (self.bound, self.tie) > (cutoff.value, cutoff.tie)


class Frontier:
    """Open cubes by bound.

    A cube is in ``bounds`` until it is closed or its children are there, so that an interrupt at
    any moment finds too many cubes, never too few.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._waiting: list[OpenCube] = []
        self.bounds: dict[Cube, int] = {}
        self.away: set[Cube] = set()

    def __contains__(self, cube: Cube) -> bool:
        return cube in self.bounds

    def add(self, cube: Cube, at_least: int | None = None) -> None:
        """Open a cube whose bound, by what is known of its parent, is at least so many ticks."""
        formula = self._space.bound(cube)
        bound = formula if at_least is None else max(formula, at_least)
        tie: tuple[int, ...] = ()
        if bound == formula and isinstance(self._space, TieBounded):
            tie = self._space.tie_bound(cube)
        self.bounds[cube] = bound
        heapq.heappush(self._waiting, OpenCube(bound, tie, cube))

    def again(self, cube: Cube, bound: int | None = None) -> None:
        """Let a cube wait again that a worker did not close, its bound perhaps raised."""
        self.away.discard(cube)
        if cube in self.bounds:
            self.add(cube, self.bounds[cube] if bound is None else max(bound, self.bounds[cube]))

    def first(self) -> OpenCube | None:
        """The first cube that waits."""
        while self._waiting:
            found = self._waiting[0]
            if found.cube in self.bounds and found.cube not in self.away:
                return found
            heapq.heappop(self._waiting)
        return None

    def take(self, found: OpenCube) -> None:
        """The first cube that waits goes to a worker."""
        heapq.heappop(self._waiting)
        self.away.add(found.cube)

    def remove(self, cube: Cube) -> None:
        """It is closed, or its children are here."""
        self.bounds.pop(cube, None)
        self.away.discard(cube)

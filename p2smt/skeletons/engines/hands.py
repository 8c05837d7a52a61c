"""Which worker of a cluster has which cubes: the one that it closes, and those at hand after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.skeletons.engine import NotBegun, WorkerDied
from p2smt.skeletons.space import CubeTask

if TYPE_CHECKING:
    from distributed import Future


@dataclass(frozen=True, slots=True)
class Given:
    """A cube that a worker has: ``key`` and the future of Dask, the how manieth of the search."""

    task: CubeTask
    worker: str
    key: str
    number: int
    future: Future


class Hands:
    """Cubes that are out.  A worker closes them in the order in which they were given to it."""

    def __init__(self) -> None:
        self._given: dict[str, Given] = {}
        self._died: dict[str, int] = {}  # the last cube that a worker had when it was gone
        self._last: dict[str, int] = {}  # that a worker was given

    def __iter__(self) -> Iterator[Given]:
        return iter(tuple(self._given.values()))

    def add(self, given: Given) -> None:
        """A worker got a cube."""
        self._given[given.key] = given
        self._last[given.worker] = given.number

    def take(self, key: str) -> Given | None:
        """The cube of a key comes back; None: it is not out any more."""
        return self._given.pop(key, None)

    def counts(self) -> Counter[str]:
        """How many cubes each worker has."""
        return Counter(given.worker for given in self._given.values())

    def behind(self) -> Given | None:
        """The last cube that waits at its worker for another one."""
        counts = self.counts()
        last_first = reversed(self._given.values())
        return next((given for given in last_first if counts[given.worker] > 1), None)

    def lost(self, given: Given) -> WorkerDied | NotBegun:
        """What became of a cube that was taken, since its worker is gone.

        The worker was at the first of those that it had.  Another one may come by its address.
        """
        before = (one.worker == given.worker and one.number < given.number for one in self)
        if given.number <= self._died.get(given.worker, 0) or any(before):
            return NotBegun(given.task.cube)
        self._died[given.worker] = self._last[given.worker]
        return WorkerDied(given.task.cube)

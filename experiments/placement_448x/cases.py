"""What a system is asked: every split of its devices over axes, every choice of reduced axes.

A *case* is (axes, reduced axes); a *request* is a case with one of its placements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from p2smt.parallelism.placement import Matrix
from p2smt.problems.placement import PlacementProblem
from p2smt.result import Status
from p2smt.search.placements import placements

MAX_AXES = 3


@dataclass(frozen=True, slots=True)
class Case:
    """Axis sizes in order, and the indices of the axes that are reduced."""

    axes: tuple[int, ...]
    reduced: tuple[int, ...]

    def __str__(self) -> str:
        """The axes, those that are reduced in parentheses."""
        return ",".join(
            f"({size})" if i in self.reduced else str(size) for i, size in enumerate(self.axes)
        )


def splits(devices: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every ordered way to write ``devices`` as a product of so many numbers from 2."""
    if parts == 1:
        if devices > 1:
            yield (devices,)
        return
    for first in range(2, devices):
        if devices % first == 0:
            yield from ((first, *rest) for rest in splits(devices // first, parts - 1))


def cases(devices: int) -> Iterator[Case]:
    """Every case of a system with so many devices, up to three axes."""
    for parts in range(1, MAX_AXES + 1):
        for axes in splits(devices, parts):
            for count in range(1, parts + 1):
                yield from (Case(axes, chosen) for chosen in combinations(range(parts), count))


@lru_cache(maxsize=4096)
def matrices(levels: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Matrix, ...]:
    """Every placement of these axes, proved complete by the solver."""
    found = placements(PlacementProblem(levels, axes))
    if found.status is not Status.COMPLETE:
        raise RuntimeError(f"the placements of {axes} on {levels} are {found.status.value}")
    return found.value or ()

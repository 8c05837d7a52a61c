"""Ways to put digits at the ends of dimensions' lists, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, permutations

import numpy as np

from p2smt.parallelism.placement import BoolArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """Ordered distributions of some digits over the ends of some lists: a row for each.

    Digit i of row r joins list ``taker[r, i]`` at ``offset[r, i]`` places after its end.
    ``plain[r]``: all join one list, in ascending order.
    """

    taker: IntArray
    offset: IntArray
    plain: BoolArray


@lru_cache(maxsize=1024)
def template(letters: tuple[int, ...], takers: int) -> Template:
    """The distributions of digits over so many lists; digits of one letter keep their order."""
    count = len(letters)
    rank = np.array(list(permutations(range(count))), dtype=np.int64).reshape(-1, count)
    for letter in set(letters):
        alike = [i for i in range(count) if letters[i] == letter]
        for one, other in pairwise(alike):
            rank = rank[rank[:, one] < rank[:, other]]
    cuts = _compositions(count, takers)
    taker = np.concatenate([np.repeat(np.arange(takers), cut)[rank] for cut in cuts])
    offset = np.concatenate([_counted(cut)[rank] for cut in cuts])
    ascending = (np.diff(offset, axis=1) == 1).all(axis=1)
    one_list = (taker == taker[:, :1]).all(axis=1)
    return Template(taker, offset, ascending & one_list)


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    """Every way to cut a row of so many into parts, one after the other."""
    if parts == 1:
        return [(total,)]
    return [
        (first, *rest)
        for first in range(total + 1)
        for rest in _compositions(total - first, parts - 1)
    ]


def _counted(cut: Sequence[int]) -> IntArray:
    return np.concatenate([np.arange(count) for count in cut])

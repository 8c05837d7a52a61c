"""Every order of a small grid, for where the bounds of the search do not meet its answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from p2smt.parallelism.placement import IntArray
from p2smt.search.allocation.question import Tree

MOST_CELLS = 64
"""Grids of more cells are not counted."""


def number_of_orders(tree: Tree, cells: int) -> int:
    """How many ways there are to put cells into pools, idle hosts included."""
    sizes = [len(slots) for slots in tree.pools]
    ways = {0: 1}
    for size in sizes:
        grown: dict[int, int] = {}
        for done, count in ways.items():
            for more in range(min(size, cells - done) + 1):
                new = count * math.comb(cells - done, more)
                grown[done + more] = grown.get(done + more, 0) + new
        ways = grown
    return ways.get(cells, 0)


def every_order(tree: Tree, cells: int) -> Iterator[IntArray]:
    """The places of the cells of each order; the hosts of a pool are taken in their order."""
    for pools in _filled([len(slots) for slots in tree.pools], cells):
        free = [iter(slots) for slots in tree.pools]
        yield np.array([next(free[p]) for p in pools], dtype=np.int64)


def _filled(left: Sequence[int], cells: int) -> Iterator[tuple[int, ...]]:
    if not cells:
        yield ()
        return
    for pool, hosts in enumerate(left):
        if hosts:
            rest = [n - (i == pool) for i, n in enumerate(left)]
            for more in _filled(rest, cells - 1):
                yield (pool, *more)

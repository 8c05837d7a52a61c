"""Answers known before any search: hosts sorted by switch, in each significance of the axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations

import numpy as np

from p2smt.cost.rank_list import single_time
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import objective
from p2smt.search.allocation.grids import CellGrid

MAX_SIGNIFICANCES = 24
"""All orders of four axes."""


@dataclass(frozen=True, slots=True)
class HostOrder:
    """The places in the hull of a grid's cells (row-major), and what that costs in seconds."""

    grid: CellGrid
    slots: tuple[int, ...]
    objective_s: float


def cost_s(problem: Problem, ranks: IntArray) -> float:
    """The objective of one collective per request, device by device."""
    seconds = (
        single_time(
            problem.topology, ranks, problem.axis_indices(one), one.kind, one.payload_bytes
        ).seconds
        for one in problem.requests
    )
    return objective(problem, tuple(seconds))


def costed(problem: Problem, grid: CellGrid, slots: IntArray) -> HostOrder:
    """An order with its objective."""
    return HostOrder(grid, tuple(slots.tolist()), cost_s(problem, grid.ranks(slots)))


def filled(grid: CellGrid, orders: Sequence[IntArray]) -> Iterator[IntArray]:
    """Places of the cells: the first of each order, in every significance of the axes."""
    split = [i for i, size in enumerate(grid.outer) if size > 1]
    for slots in orders:
        for chosen in islice(permutations(split), MAX_SIGNIFICANCES):
            yield by_significance(slots[: grid.cells], grid.outer, chosen)


def by_significance(slots: IntArray, outer: Sequence[int], chosen: Sequence[int]) -> IntArray:
    """Places in order, filling a grid whose axes count in this significance, row-major."""
    rest = [i for i in range(len(outer)) if i not in chosen]
    order = [*chosen, *rest]
    return slots.reshape([outer[i] for i in order]).transpose(np.argsort(order)).ravel()

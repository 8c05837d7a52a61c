"""Answers known before any search: hosts sorted by switch, in each significance of the axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations

import numpy as np

from p2smt.cost.rank_list import single_time
from p2smt.parallelism.placement import IntArray, Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import objective
from p2smt.problems.placement import PlacementProblem
from p2smt.result import StopWatch
from p2smt.search.allocation.grids import CellGrid
from p2smt.search.placements import placements

MAX_SIGNIFICANCES = 24
"""All orders of four axes."""
MAX_MATRICES = 200


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


def banded(slots: IntArray, outer: Sequence[int], axis: int, width: int) -> IntArray:
    """Places in order, filling bands of so many columns one after another, each row by row.

    Rows are along ``axis``, columns the cells of the other axes, row-major.  Every second band is
    walked backwards, so that hosts of one switch stay together.  Bands of all columns, or of one,
    are the two significances of a grid of two axes; those between weigh groups along the columns
    against messages along the rows.
    """
    cells = np.arange(len(slots)).reshape(outer)
    rows = np.moveaxis(cells, axis, 0).reshape(outer[axis], -1)
    walk = []
    for number, first in enumerate(range(0, rows.shape[1], width)):
        band = rows[:, first : first + width]
        walk.append((band[::-1] if number % 2 else band).ravel())
    found = np.empty(len(slots), dtype=np.int64)
    found[np.concatenate(walk)] = slots
    return found


def bands(grid: CellGrid, slots: IntArray) -> Iterator[IntArray]:
    """The places in bands of several widths along every axis that has several cells."""
    for axis, size in enumerate(grid.outer):
        columns = grid.cells // size
        if size > 1 and columns > 1:
            for width in sorted({-(-columns // k) for k in (*range(1, 13), 16, 24, 32, columns)}):
                yield banded(slots[: grid.cells], grid.outer, axis, width)


def of_matrices(problem: Problem, grid: CellGrid, watch: StopWatch) -> Iterator[IntArray]:
    """On a full and regular cluster: the orders of parallelism matrices of the grid outside.

    The first ``MAX_MATRICES`` of them; nothing where a place has no host or hosts are left over.
    """
    topology = problem.topology
    outer = topology.sizes[: topology.node_level + 1]
    if topology.uneven or grid.cells < math.prod(outer):
        return
    limits = replace(watch.left(), max_answers=MAX_MATRICES)
    for matrix in placements(PlacementProblem(outer, grid.outer), limits).value or ():
        yield Placement(matrix).rank_tensor().ravel()

"""Rank orders with one collective per request: the default one, and the user's own.

Those that no parallelism matrix expresses are costed device by device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from p2smt.cost.rank_list import single_time
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.parallelism.expressed import matrix_of
from p2smt.parallelism.placement import IntArray, Matrix, Placement, default_ranks
from p2smt.parallelism.rank_list import RankList, RankMap
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.check.restrictions import broken_by_singles
from p2smt.plans.rank_answer import rank_alternative
from p2smt.plans.solution import SAME, RankOrder, Solution, objective
from p2smt.result import Status
from p2smt.units import format_time

GivenRanks = list[int] | list[list[int]]
"""The device of each rank in rank order, or a parallelism matrix."""


def rank_order(problem: Problem, ranks: IntArray, name: str) -> RankOrder:
    """The rank order of a tensor (shape: axis sizes; entries: device ids)."""
    matrix = matrix_of(ranks, problem.topology.sizes)
    seconds = tuple(_seconds(problem, request, ranks, matrix) for request in problem.requests)
    where: RankMap = RankList(_devices(ranks), problem.axis_sizes)
    if matrix is not None:
        where = Placement(matrix)
    breaks = tuple(broken_by_singles(problem, where))
    return RankOrder(name, seconds, objective(problem, seconds), matrix, breaks)


def _devices(ranks: IntArray) -> tuple[int, ...]:
    """The device of each rank, ranks being row-major over the axes."""
    return tuple(ranks.ravel().tolist())


def _seconds(problem: Problem, request: Request, ranks: IntArray, matrix: Matrix | None) -> float:
    axes, kind, payload = problem.axis_indices(request), request.kind, request.payload_bytes
    if matrix is None:
        return single_time(problem.topology, ranks, axes, kind, payload).seconds
    return Scene.of(problem.topology, Placement(matrix), axes).fixed_time(kind, payload).seconds


def with_default(found: Solution, default: RankOrder, top: int) -> Solution:
    """The solution beside the default layout, which leads it where it is faster than any matrix.

    No matrix then expresses it.  Under restrictions that it breaks it is no answer.  What is proved
    of matrices does not bound rank orders: status FEASIBLE, and no bound.
    """
    found, problem, best = replace(found, default=default), found.problem, found.best
    slower = best is None or default.objective_s < best.objective_s * (1 - SAME)
    if default.matrix is not None or default.breaks or not slower:
        return found
    devices = _devices(default_ranks(problem.axis_sizes))
    answer = rank_alternative(problem, RankList(devices, problem.axis_sizes))
    return replace(
        found,
        status=Status.FEASIBLE,
        alternatives=(answer, *found.alternatives)[:top],
        bound_s=0.0,
        physical_bound_s=0.0,
        ranking=Status.TRUNCATED,
        matrices=found.status,
        notes=(*found.notes, _beside(found)),
        near=found.near and found.near.below(default.objective_s),
    )


def _beside(found: Solution) -> str:
    """Why a rank order is the answer, and what is known of the matrices."""
    text = "the answer is the default layout, which no matrix expresses"
    if found.status is Status.INFEASIBLE:
        text += "; no matrix obeys the restrictions (proved)"
    if found.best is not None:
        proved = " (proved)" if found.status is Status.OPTIMAL else ""
        text += f"; the best matrix takes {format_time(found.best.objective_s)}{proved}"
    return f"{text}; bounds hold for matrices, and other rank orders were not tried"


def given_ranks(problem: Problem, given: object) -> IntArray:
    """Devices by rank, given as JSON: a parallelism matrix, or the device of each rank in order."""
    text = str(given)[:60]
    if isinstance(given, list) and given and all(isinstance(row, list) for row in given):
        placement = Placement(tuple(tuple(_whole(e, text) for e in row) for row in given))
        placement.check(problem.topology.sizes, problem.axis_sizes)
        return placement.rank_tensor()
    if not isinstance(given, list):
        raise InputError(f"layout {text}", "is neither a matrix [[..],..] nor a rank list [..]")
    return _permutation(problem, [_whole(entry, text) for entry in given], text)


def _whole(value: object, text: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"layout {text}", f"holds {str(value)[:20]!r}, which is no whole number")
    return value


def _permutation(problem: Problem, devices: Sequence[int], text: str) -> IntArray:
    count = problem.topology.devices
    if sorted(devices) != list(range(count)):
        raise InputError(
            f"rank list {text} with {len(devices)} entries",
            f"must hold each device 0..{count - 1} once",
        )
    return np.array(devices, dtype=np.int64).reshape(problem.axis_sizes)

"""Rank orders with one collective per request: the default one, and the user's own.

They are costed device by device, since no parallelism matrix may express them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from p2smt.cost.rank_list import single_time
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray, Placement, default_ranks
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import RankOrder, objective

GivenRanks = list[int] | list[list[int]]
"""The device of each rank in rank order, or a parallelism matrix."""


def default_order(problem: Problem) -> RankOrder:
    """Ranks row-major over the axes in the order given, devices in hierarchy order."""
    return rank_order(problem, default_ranks(problem.axis_sizes), "default")


def rank_order(problem: Problem, ranks: IntArray, name: str) -> RankOrder:
    """The rank order of a tensor (shape: axis sizes; entries: device ids)."""
    seconds = tuple(
        single_time(
            problem.topology,
            ranks,
            problem.axis_indices(request),
            request.kind,
            request.payload_bytes,
        ).seconds
        for request in problem.requests
    )
    return RankOrder(name, seconds, objective(problem, seconds))


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

"""The requests of a strategy on its placement, as a problem whose matrix is fixed."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.cluster.topology import Topology
from p2smt.parallelism.placement import FixedEntry, Matrix, ParallelismAxis
from p2smt.parallelism.request import DEFAULT_LENGTH, Problem, Request
from p2smt.workload.requests import AxisRequest
from p2smt.workload.strategy import AXES, Strategy


def plan_axes(strategy: Strategy) -> tuple[ParallelismAxis, ...]:
    """The axes of several devices, in Megatron's order; of one device, dp alone."""
    sizes = zip(AXES, strategy.sizes, strict=True)
    found = tuple(ParallelismAxis(name, size) for name, size in sizes if size > 1)
    return found or (ParallelismAxis("dp", 1),)


def plan_request(strategy: Strategy, asked: AxisRequest) -> Request | None:
    """A request along those of its axes that have several devices; None: there is none."""
    several = [axis.name for axis in plan_axes(strategy) if axis.size > 1]
    axes = tuple(name for name in several if name in asked.axes)
    if not axes:
        return None
    return Request(asked.kind, axes, asked.payload_bytes, asked.calls)


def plan_requests(strategy: Strategy, asked: Sequence[AxisRequest]) -> tuple[Request, ...]:
    """The requests that devices send anything for, in their order."""
    found = (plan_request(strategy, one) for one in asked)
    return tuple(request for request in found if request is not None)


def named_seconds(
    strategy: Strategy, asked: Sequence[AxisRequest], seconds: Sequence[float]
) -> dict[str, float]:
    """Seconds of one call of each request by its name, given those of the plan's requests."""
    left = iter(seconds)
    return {one.name: 0.0 if plan_request(strategy, one) is None else next(left) for one in asked}


def plan_matrix(strategy: Strategy, matrix: Matrix) -> Matrix:
    """The rows of the plan's axes."""
    axes = plan_axes(strategy)
    return tuple(
        row for name, row in zip(AXES, matrix, strict=True) if name in [axis.name for axis in axes]
    )


def fixed_problem(
    topology: Topology,
    strategy: Strategy,
    matrix: Matrix,
    asked: Sequence[AxisRequest],
    max_length: int = DEFAULT_LENGTH,
) -> Problem | None:
    """Find programs for the requests on this matrix; None: nothing is sent.

    Every entry is fixed, so a plan that answers it cannot lie elsewhere.
    """
    requests = plan_requests(strategy, asked)
    if not requests:
        return None
    rules = tuple(
        FixedEntry(axis, level, entry)
        for axis, row in enumerate(plan_matrix(strategy, matrix))
        for level, entry in enumerate(row)
    )
    return Problem(topology, plan_axes(strategy), requests, max_length=max_length, rules=rules)

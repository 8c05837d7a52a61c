"""The problem that a plan file answers, and its placement: shape and sizes, no meaning."""

from __future__ import annotations

from p2smt.errors import InputError
from p2smt.placement import ParallelismAxis, Placement
from p2smt.plan_model import PlanModel
from p2smt.request import Problem, Request
from p2smt.topology_model import build_topology


def plan_problem(plan: PlanModel, source: str) -> tuple[Problem, Placement]:
    """The problem and placement of a plan file, their sizes checked."""
    topology = build_topology(plan.topology, source)
    axes = tuple(ParallelismAxis(axis.name, axis.size) for axis in plan.axes)
    for request in plan.requests:
        if len(set(request.axes)) != len(request.axes):
            raise InputError(f"{source}: request {request.axes}", "names an axis twice")
    requests = tuple(Request(r.kind, tuple(r.axes), r.bytes, r.times) for r in plan.requests)
    placement = Placement(tuple(tuple(row) for row in plan.matrix))
    placement.check(topology.sizes, [axis.size for axis in axes])
    return Problem(topology, axes, requests, plan.objective), placement

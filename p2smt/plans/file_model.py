"""The shape of a plan file: its keys as pydantic models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.cluster.file_model import TopologyModel, build_topology
from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError
from p2smt.files.validation import StrictModel
from p2smt.parallelism.placement import ParallelismAxis, Placement
from p2smt.parallelism.request import MAX_CHUNKS, Problem, Request
from p2smt.result import Status

SCHEMA_VERSION = 1
KindName = Annotated[RequestKind, Field(strict=False)]
StatusName = Annotated[Status, Field(strict=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, lt=2**62)]
Bytes = Annotated[int, Field(ge=0, lt=2**62)]
Device = Annotated[int, Field(ge=0, lt=2**31)]
Load = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class AxisModel(StrictModel):
    """A parallelism axis."""

    name: str
    size: Count


class StepModel(StrictModel):
    """One step: all ``groups`` (device ids) run the instruction at the same time.

    ``payload_bytes`` is the vector that the algorithm works on; ``bottleneck`` the level
    whose worst link carries ``load_bytes`` in one direction.
    """

    instruction: str
    groups: list[list[Device]]
    payload_bytes: Load
    seconds: Seconds
    algorithm: str
    protocol: str
    bottleneck: str | None
    load_bytes: Load


class RequestModel(StrictModel):
    """One request with its program; times are of one execution, in seconds.

    In ``chunks`` chunks the program is pipelined: ``seconds`` is the time of all of them, and
    the numbers of ``steps`` are those of one.
    """

    kind: KindName
    axes: Annotated[list[str], Field(min_length=1)]
    bytes: Count
    times: Count
    program: str | None
    chunks: Annotated[int, Field(ge=1, le=MAX_CHUNKS)] = 1
    status: StatusName
    seconds: Seconds
    bound_s: Seconds
    physical_bound_s: Seconds
    single_collective_s: Seconds
    peak_bytes: Bytes
    shards: list[Device] | None
    checked: str
    steps: list[StepModel]


class PlanModel(StrictModel):
    """A plan file.  Devices are numbered in hierarchy order of the embedded topology.

    ``ranks[r]`` is the device of rank r, ranks being row-major over the axes as listed.
    ``restrictions`` are those under which the answer was sought, in words.
    """

    schema_version: Literal[1]
    topology: TopologyModel
    axes: list[AxisModel]
    matrix: list[list[Device]]
    ranks: list[Device]
    restrictions: list[str]
    objective: Literal["sum", "max"]
    objective_s: Seconds
    bound_s: Seconds
    physical_bound_s: Seconds
    status: StatusName
    peak_bytes: Bytes
    requests: list[RequestModel]


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

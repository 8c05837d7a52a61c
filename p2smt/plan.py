"""The plan file: a placement, a program per request, the groups of every step, and costs."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from p2smt.collective import RequestKind
from p2smt.cost import StepTime
from p2smt.errors import InputError
from p2smt.placement import IntArray, Placement
from p2smt.program import lower
from p2smt.result import Status
from p2smt.solution import Alternative, RequestPlan, Solution
from p2smt.topology import Topology
from p2smt.topology_model import TopologyModel, dump_topology
from p2smt.validation import StrictModel, validated

SCHEMA_VERSION = 1
MAX_PLAN_BYTES = 512 * 2**20
KindName = Annotated[RequestKind, Field(strict=False)]
StatusName = Annotated[Status, Field(strict=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, lt=2**62)]


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
    groups: list[list[int]]
    payload_bytes: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    seconds: Seconds
    algorithm: str
    protocol: str
    bottleneck: str | None
    load_bytes: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RequestModel(StrictModel):
    """One request with its program; times are of one execution, in seconds."""

    kind: KindName
    axes: list[str]
    bytes: Count
    times: Count
    program: str | None
    status: StatusName
    seconds: Seconds
    bound_s: Seconds
    physical_bound_s: Seconds
    single_collective_s: Seconds
    peak_bytes: Annotated[int, Field(ge=0)]
    shards: list[int] | None
    checked: str
    steps: list[StepModel]


class PlanModel(StrictModel):
    """A plan file.  Devices are numbered in hierarchy order of the embedded topology."""

    schema_version: Literal[1]
    topology: TopologyModel
    axes: list[AxisModel]
    matrix: list[list[int]]
    objective: Literal["sum", "max"]
    objective_s: Seconds
    bound_s: Seconds
    physical_bound_s: Seconds
    status: StatusName
    peak_bytes: Annotated[int, Field(ge=0)]
    requests: list[RequestModel]


def plan_data(solution: Solution, alternative: Alternative) -> dict[str, Any]:
    """The plan of an alternative as plain data, valid under :class:`PlanModel`."""
    problem = solution.problem
    best = alternative is solution.best
    status = solution.status if best else alternative.status
    return {
        "schema_version": SCHEMA_VERSION,
        "topology": dump_topology(problem.topology),
        "axes": [{"name": axis.name, "size": axis.size} for axis in problem.axes],
        "matrix": [list(row) for row in alternative.matrix],
        "objective": problem.objective,
        "objective_s": alternative.objective_s,
        "bound_s": solution.bound_s,
        "physical_bound_s": solution.physical_bound_s,
        "status": status.value,
        "peak_bytes": alternative.peak_bytes,
        "requests": [
            _request_data(
                problem.topology, alternative.placement, problem.axis_indices(r.request), r
            )
            for r in alternative.requests
        ],
    }


def _request_data(
    topology: Topology, placement: Placement, axes: tuple[int, ...], plan: RequestPlan
) -> dict[str, Any]:
    groups = placement.groups(axes)
    instructions = plan.program.instructions if plan.program else (None,) * len(plan.steps)
    steps = []
    for instruction, step, payload in zip(instructions, plan.steps, plan.payloads, strict=True):
        text = plan.request.kind.value if instruction is None else str(instruction)
        lowered = groups
        if instruction is not None:
            lowered = lower(groups, plan.hierarchy.factors, plan.hierarchy.grouping(instruction))
        steps.append(_step_data(topology, text, lowered, step, payload))
    return {
        "kind": plan.request.kind.value,
        "axes": list(plan.request.axes),
        "bytes": plan.request.payload_bytes,
        "times": plan.request.times,
        "program": None if plan.program is None else str(plan.program),
        "status": plan.status.value,
        "seconds": plan.seconds,
        "bound_s": plan.bound_s,
        "physical_bound_s": plan.physical_bound_s,
        "single_collective_s": plan.single_s,
        "peak_bytes": plan.peak_bytes,
        "shards": None if plan.shards is None else list(plan.shards),
        "checked": plan.checked,
        "steps": steps,
    }


def _step_data(
    topology: Topology, text: str, groups: IntArray, step: StepTime, payload: float
) -> dict[str, Any]:
    return {
        "instruction": text,
        "groups": groups.tolist(),
        "payload_bytes": payload,
        "seconds": step.seconds,
        "algorithm": step.algorithm,
        "protocol": step.protocol,
        "bottleneck": None if step.level is None else topology.names[step.level],
        "load_bytes": step.load_bytes,
    }


def write_atomically(path: str, text: str) -> None:
    """Write a file by way of a temporary one in the same folder: whole or not at all."""
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(
            f"output {path}", f"cannot be written ({error.strerror})", "give another path"
        ) from None


def read_plan(path: str) -> PlanModel:
    """The plan in a JSON file; every problem is an InputError that names the key."""
    try:
        if Path(path).stat().st_size > MAX_PLAN_BYTES:
            raise InputError(f"plan {path}", f"is larger than {MAX_PLAN_BYTES} bytes")
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"plan {path}", f"cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(
            f"plan {path}", f"is not JSON ({error})", "give a file of solve -o"
        ) from None
    except RecursionError:
        raise InputError(f"plan {path}", "is nested too deeply") from None
    if isinstance(data, dict) and data.get("schema_version") != SCHEMA_VERSION:
        raise InputError(
            f"plan {path} of schema_version {str(data.get('schema_version'))[:20]}",
            f"only version {SCHEMA_VERSION} is known",
        )
    return validated(PlanModel, data, f"plan {path}")

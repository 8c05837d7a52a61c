"""The plan file: a placement, a program per request, the groups of every step, and costs."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from p2smt.cost import StepTime
from p2smt.errors import InputError
from p2smt.placement import IntArray, Placement
from p2smt.plan_model import SCHEMA_VERSION, PlanModel
from p2smt.program import lower
from p2smt.restrictions import restrictions
from p2smt.result import Status
from p2smt.solution import Alternative, RequestPlan, Solution
from p2smt.topology import Topology
from p2smt.topology_model import dump_topology
from p2smt.validation import validated

__all__ = ["PlanModel", "plan_data", "read_plan", "write_atomically"]

MAX_PLAN_BYTES = 512 * 2**20


def plan_data(solution: Solution, alternative: Alternative) -> dict[str, Any]:
    """The plan of an alternative as plain data, valid under :class:`PlanModel`."""
    problem = solution.problem
    status = solution.status if alternative is solution.best else Status.FEASIBLE
    return {
        "schema_version": SCHEMA_VERSION,
        "topology": dump_topology(problem.topology),
        "axes": [{"name": axis.name, "size": axis.size} for axis in problem.axes],
        "matrix": [list(row) for row in alternative.matrix],
        "ranks": alternative.placement.rank_tensor().ravel().tolist(),
        "restrictions": list(restrictions(problem)),
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
        "chunks": plan.chunks,
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
    """Write a file by way of a temporary one in the same folder: whole or not at all.

    Raises:
        InputError: it cannot be written; what was there before is still there.
    """
    target = Path(os.path.realpath(path))
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"output {path[:200]!r}", f"cannot be written ({reason})", "give another path"
        ) from None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def read_plan(path: str) -> PlanModel:
    """The plan in a JSON file; every problem is an InputError that names the key."""
    source = f"plan {path[:200]!r}"
    try:
        data = json.loads(_text(path, source), object_pairs_hook=_once)
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(source, f"is not UTF-8 text (byte {error.start})", _REMEDY) from None
    except _RepeatedKeyError as error:
        raise InputError(source, f"has the key {str(error)[:60]!r} twice", _REMEDY) from None
    except ValueError as error:
        raise InputError(source, f"is not JSON ({str(error)[:200]})", _REMEDY) from None
    except RecursionError:
        raise InputError(source, "is nested too deeply", _REMEDY) from None
    if isinstance(data, dict) and data.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise InputError(
            f"{source} of schema_version {str(data['schema_version'])[:20]}",
            f"only version {SCHEMA_VERSION} is known",
        )
    return validated(PlanModel, data, source)


_REMEDY = "give a file that solve -o wrote"


class _RepeatedKeyError(ValueError):
    """A JSON object has a key twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return found


def _text(path: str, source: str) -> str:
    try:
        if not Path(path).is_file():
            kind = "is not a regular file" if Path(path).exists() else "does not exist"
            raise InputError(source, kind, _REMEDY)
        if Path(path).stat().st_size > MAX_PLAN_BYTES:
            raise InputError(source, f"is larger than {MAX_PLAN_BYTES} bytes")
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(source, f"cannot be read ({error.strerror})", _REMEDY) from None

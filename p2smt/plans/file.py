"""The plan file: a placement, a program per request, the groups of every step, and costs."""

from __future__ import annotations

from typing import Any

from p2smt.cluster.file_model import dump_topology
from p2smt.cluster.topology import Topology
from p2smt.cost.alpha_beta import StepTime
from p2smt.cost.pipeline import chunk_counts
from p2smt.errors import InputError
from p2smt.files.json_text import read_json
from p2smt.files.validation import validated
from p2smt.parallelism.placement import FixedEntry, IntArray
from p2smt.parallelism.request import Problem
from p2smt.plans.file_model import SCHEMA_VERSION, PlanModel
from p2smt.plans.solution import Alternative, RequestAnswer, Solution
from p2smt.programs.program import lower
from p2smt.result import Status

__all__ = ["PlanModel", "plan_data", "read_plan", "restrictions"]

MAX_PLAN_BYTES = 512 * 2**20


def plan_data(solution: Solution, alternative: Alternative) -> dict[str, Any]:
    """The plan of an alternative as plain data, valid under :class:`PlanModel`."""
    problem, matrix = solution.problem, alternative.matrix
    status = solution.status if alternative is solution.best else Status.FEASIBLE
    return {
        "schema_version": SCHEMA_VERSION,
        "topology": dump_topology(problem.topology),
        "axes": [{"name": axis.name, "size": axis.size} for axis in problem.axes],
        "matrix": matrix and [list(row) for row in matrix],
        "ranks": list(alternative.ranks),
        "restrictions": list(restrictions(problem)),
        "objective": problem.objective,
        "objective_s": alternative.objective_s,
        "bound_s": solution.bound_s,
        "physical_bound_s": solution.physical_bound_s,
        "status": status.value,
        "peak_bytes": alternative.peak_bytes,
        "requests": [
            _request_data(
                problem.topology, alternative.rank_map.groups(problem.axis_indices(r.request)), r
            )
            for r in alternative.requests
        ],
    }


def _request_data(topology: Topology, groups: IntArray, answer: RequestAnswer) -> dict[str, Any]:
    instructions = answer.program.instructions if answer.program else (None,) * len(answer.steps)
    steps = []
    for instruction, step, payload in zip(instructions, answer.steps, answer.payloads, strict=True):
        text = answer.request.kind.value if instruction is None else str(instruction)
        lowered = groups
        if instruction is not None:
            lowered = lower(
                groups, answer.hierarchy.factors, answer.hierarchy.grouping(instruction)
            )
        steps.append(_step_data(topology, text, lowered, step, payload))
    return {
        "kind": answer.request.kind.value,
        "axes": list(answer.request.axes),
        "bytes": answer.request.payload_bytes,
        "times": answer.request.times,
        "program": None if answer.program is None else str(answer.program),
        "chunks": answer.chunks,
        "status": answer.status.value,
        "seconds": answer.seconds,
        "bound_s": answer.bound_s,
        "physical_bound_s": answer.physical_bound_s,
        "single_collective_s": answer.single_s,
        "peak_bytes": answer.peak_bytes,
        "shards": None if answer.shards is None else list(answer.shards),
        "checked": answer.checked,
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


def read_plan(path: str) -> PlanModel:
    """The plan in a JSON file; every problem is an InputError that names the key."""
    source = f"plan {path[:200]!r}"
    data = read_json(path, source, "give a file that solve -o wrote", MAX_PLAN_BYTES)
    if isinstance(data, dict) and data.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise InputError(
            f"{source} of schema_version {str(data['schema_version'])[:20]}",
            f"only version {SCHEMA_VERSION} is known",
        )
    return validated(PlanModel, data, source)


def restrictions(problem: Problem) -> tuple[str, ...]:
    """What an answer was restricted to: rules, entries, program length, forms and steps."""
    axes, levels = problem.axis_names, problem.topology.names
    found = []
    for rule in problem.rules:
        axis, level = axes[rule.axis], levels[rule.level]
        if isinstance(rule, FixedEntry):
            found.append(f"{axis}={level}:{rule.value}")
        else:
            found.append(f"{axis} {'within' if rule.inside else 'across'} {level}")
    found.append(f"programs of at most {problem.max_length} instructions")
    found += [f"no {form}" for form in sorted(form.value for form in problem.forbidden_forms)]
    found += [f"at most {n} steps across {level}" for level, n in problem.step_limits]
    if problem.pipeline != 1:
        counts = " or ".join(map(str, chunk_counts(problem.pipeline, steps=2)))
        found.append(f"programs of several steps in {counts} chunks")
    return tuple(found)

"""Compares the numbers in a plan file with those that the cost model and the checker find.

Not compared, because only a search proves them: the solver's bounds (beyond that none lies
above its time, and that "optimal" means equal) and the link-level bound of the whole plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from p2smt.cost.alpha_beta import StepTime
from p2smt.cost.bounds import request_bound_s
from p2smt.cost.pipeline import program_s
from p2smt.cost.scene import Scene, step_payloads
from p2smt.parallelism.placement import Placement
from p2smt.plans.file_model import PlanModel, RequestModel, StepModel
from p2smt.programs.program import parse_program
from p2smt.programs.semantics import Trace
from p2smt.result import Status

TOLERANCE = 1e-9
_OPTIMAL = 1e-6  # times are rounded to ticks when a solver proves an optimum


def step_times(model: RequestModel, scene: Scene, trace: Trace) -> tuple[StepTime, ...]:
    """The times of a valid request's steps by the cost model, for one of its chunks."""
    if model.program is not None:
        program = parse_program(model.program)
        return scene.program_times(program, trace.payload_rows, model.bytes, model.chunks)
    return (scene.fixed_time(model.kind, model.bytes),) if model.steps else ()


def request_notes(
    n: int, model: RequestModel, scene: Scene, trace: Trace, steps: Sequence[StepTime]
) -> list[str]:
    """What a valid request misstates; ``n`` counts requests from 0."""
    where, seconds = f"request {n + 1}", program_s(steps, model.chunks)
    single = scene.fixed_time(model.kind, model.bytes).seconds
    bound = request_bound_s(scene.topology, scene.digits, model.kind, model.bytes)
    physical = bound if model.program is not None else seconds
    peak, shards = _memory(model, scene, trace)
    found = [
        *_differ(f"{where} seconds", model.seconds, seconds),
        *_differ(f"{where} single_collective_s", model.single_collective_s, single),
        *_differ(f"{where} physical_bound_s", model.physical_bound_s, physical),
        *_bounds(where, model.bound_s, model.seconds, model.status),
    ]
    if model.peak_bytes != peak:
        found.append(f"{where} peak_bytes says {model.peak_bytes}, the program needs {peak}")
    if model.chunks > 1 and len(steps) <= 1:
        found.append(f"{where} chunks says {model.chunks}, but only several steps are pipelined")
    if model.shards != shards:
        found.append(f"{where} shards are not those that the members end with")
    payloads: Sequence[float] = [model.bytes] * len(steps)
    if model.program is not None:
        size = scene.hierarchy.size
        payloads = step_payloads(trace.payload_rows, size, model.bytes, model.chunks)
    for number, (step, time, payload) in enumerate(
        zip(model.steps, steps, payloads, strict=True), start=1
    ):
        found += _step_notes(f"{where} step {number}", step, time, payload, scene.topology.names)
    return found


def _memory(model: RequestModel, scene: Scene, trace: Trace) -> tuple[int, list[int] | None]:
    """Most bytes that a device holds, and the shard that each member ends with."""
    if model.program is None:
        return model.bytes * (2 if model.steps else 1), None  # sent and received
    peak = -(-model.bytes * trace.peak_rows // scene.hierarchy.size)
    return peak, None if trace.shards is None else list(trace.shards)


def _step_notes(
    where: str, step: StepModel, time: StepTime, payload: float, levels: Sequence[str]
) -> Iterator[str]:
    yield from _differ(f"{where} seconds", step.seconds, time.seconds)
    yield from _differ(f"{where} payload_bytes", step.payload_bytes, payload)
    yield from _differ(f"{where} load_bytes", step.load_bytes, time.load_bytes)
    bottleneck = None if time.level is None else levels[time.level]
    said = (step.algorithm, step.protocol, step.bottleneck)
    if said != (time.algorithm, time.protocol, bottleneck):
        yield f"{where} algorithm, protocol or bottleneck is not that of the cost model"


def plan_notes(plan: PlanModel, objective_s: float) -> list[str]:
    """What a plan misstates as a whole."""
    peak = max(request.peak_bytes for request in plan.requests)
    found = [
        *_differ("objective_s", plan.objective_s, objective_s),
        *_differ("peak_bytes", plan.peak_bytes, peak),
        *_bounds("the plan", plan.bound_s, plan.objective_s, plan.status),
    ]
    ranks = Placement(tuple(tuple(row) for row in plan.matrix)).rank_tensor()
    if plan.ranks != ranks.ravel().tolist():
        found.append("ranks are not those of the matrix")
    settled = all(request.status is Status.OPTIMAL for request in plan.requests)
    if plan.status is Status.OPTIMAL and not settled:
        found.append("the plan is called optimal, but not each of its requests is")
    if plan.physical_bound_s > plan.objective_s * (1 + TOLERANCE):
        found.append("physical_bound_s lies above objective_s")
    return found


def _differ(what: str, said: float, found: float) -> Iterator[str]:
    if abs(said - found) > TOLERANCE * max(abs(found), 1e-30):
        yield f"{what} says {said}, the cost model {found}"


def _bounds(where: str, bound: float, value: float, status: Status) -> Iterator[str]:
    if bound > value * (1 + TOLERANCE):
        yield f"{where}: bound_s lies above the time that it bounds"
    if status is Status.OPTIMAL and bound < value * (1 - _OPTIMAL):
        yield f"{where}: is called optimal, but bound_s lies below its time"
    if status not in (Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN):
        yield f"{where}: the status {status.value} is none of a plan"

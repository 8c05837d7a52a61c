"""Compares the numbers in a plan file with those that the cost model and the checker find.

What only a search proves is not compared: the solver's bounds, beyond that none lies above its
time, that "optimal" means equal, and that a bound is told only where one can be known.  The
link-level bound of a plan is the least over all placements, so that of its own lies above it.
Plans of version 1 counted latencies in theirs, where no library ran: these are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from p2smt.cost.step_time import StepTime
from p2smt.plans.expected import Expected
from p2smt.plans.file_model import (
    AnyPlan,
    PlanModel,
    RequestModel,
    StepModel,
)
from p2smt.result import Status

TOLERANCE = 1e-9
_ROUNDING = 1e-13  # payloads and loads may be fractions of a byte: only float rounding is allowed
PROVED_WITHIN = 1e-6
"""Of a time: to ticks of so much it is rounded when a solver proves an optimum."""


def request_notes(
    n: int, model: RequestModel, expected: Expected, levels: Sequence[str]
) -> Iterator[str]:
    """What a valid request misstates; ``n`` counts requests from 0."""
    where, shards = f"request {n + 1}", expected.shards
    yield from differ(f"{where} seconds", model.seconds, expected.seconds)
    yield from differ(f"{where} single_collective_s", model.single_collective_s, expected.single_s)
    if model.peak_bytes != expected.peak_bytes:
        yield f"{where} peak_bytes says {model.peak_bytes}, it needs {expected.peak_bytes}"
    if model.chunks > 1 and len(expected.steps) <= 1:
        yield f"{where} chunks says {model.chunks}, but only several steps are pipelined"
    if model.shards != (None if shards is None else list(shards)):
        yield f"{where} shards are not those that the members end with"
    found = zip(model.steps, expected.steps, expected.payloads, strict=True)
    for number, (step, time, payload) in enumerate(found, start=1):
        yield from _step_notes(f"{where} step {number}", step, time, payload, levels)


def _step_notes(
    where: str, step: StepModel, time: StepTime, payload: float, levels: Sequence[str]
) -> Iterator[str]:
    yield from differ(f"{where} seconds", step.seconds, time.seconds)
    yield from differ(f"{where} payload_bytes", step.payload_bytes, payload, _ROUNDING)
    yield from differ(f"{where} load_bytes", step.load_bytes, time.load_bytes, _ROUNDING)
    bottleneck = None if time.level is None else levels[time.level]
    said = (step.algorithm, step.protocol, step.bottleneck)
    if said != (time.algorithm, time.protocol, bottleneck):
        yield f"{where} algorithm, protocol or bottleneck is not that of the cost model"


def plan_notes(plan: AnyPlan, objective_s: float, programs_s: float | None) -> Iterator[str]:
    """What a plan misstates as a whole.

    ``programs_s``: on named hosts the objective with programs (None: no request has one), where
    ``objective_s`` is that of one collective per request.
    """
    yield from differ("objective_s", plan.objective_s, objective_s)
    said = plan.with_programs_s if isinstance(plan, PlanModel) else None
    if said is not None and programs_s is None:
        yield f"with_programs_s says {said}, but no request has a program beside its collective"
    elif said is None and programs_s is not None and plan.objective_s is not None:
        yield f"with_programs_s is missing: with the programs of the requests it is {programs_s}"
    elif said is not None and programs_s is not None:
        yield from differ("with_programs_s", said, programs_s)
    peak_bytes = max(request.peak_bytes for request in plan.requests)
    if plan.peak_bytes != peak_bytes:
        yield f"peak_bytes says {plan.peak_bytes}, the largest of its requests {peak_bytes}"


def request_bounds(
    n: int, model: RequestModel, expected: Expected, links_alone: bool
) -> Iterator[str]:
    """What is wrong with the bounds and the status of a valid request.

    ``links_alone``: its link-level bound counts nothing else, as in files of today.
    """
    where, physical_s = f"request {n + 1}", expected.physical_bound_s
    if links_alone:
        yield from differ(f"{where} physical_bound_s", model.physical_bound_s, physical_s)
    if model.bound_s is None or model.seconds is None:
        return
    yield from bound_notes(where, model.bound_s, model.seconds, model.status)
    proved_s = expected.proved_s
    if not expected.searched and model.bound_s > proved_s * (1 + TOLERANCE):
        yield f"{where}: bound_s lies above the only one that is known, {proved_s}"


def plan_bounds(plan: AnyPlan, physical_s: float, on_hosts: bool) -> Iterator[str]:
    """What is wrong with the bounds and the status of a plan.

    ``physical_s`` is the objective of what the links allow on the plan's own placement.
    ``on_hosts``: a rank list on named hosts, whose orders were searched.
    """
    if plan.bound_s is None or plan.objective_s is None or plan.physical_bound_s is None:
        return
    yield from bound_notes("the plan", plan.bound_s, plan.objective_s, plan.status)
    if on_hosts:
        if plan.physical_bound_s > plan.objective_s * (1 + TOLERANCE):
            yield "the plan: physical_bound_s lies above the time that it bounds"
        return
    settled = all(request.status is Status.OPTIMAL for request in plan.requests)
    if plan.status is Status.OPTIMAL and not settled:
        yield "the plan is called optimal, but not each of its requests is"
    if plan.status is Status.OPTIMAL and plan.matrix is None:
        yield "the plan is called optimal, but rank lists were not searched"
    if plan.matrix is None and max(plan.bound_s, plan.physical_bound_s) > 0:
        yield "bound_s and physical_bound_s of a rank list are 0: nothing bounds rank orders"
    if (
        plan.matrix is not None
        and plan.links_alone
        and plan.physical_bound_s > physical_s * (1 + TOLERANCE)
    ):
        yield f"physical_bound_s lies above {physical_s}, which the links allow this placement"


def differ(
    what: str, said: float | None, found: float, tolerance: float = TOLERANCE
) -> Iterator[str]:
    """That a number is not the cost model's, if it is not; None: none is told."""
    if said is not None and abs(said - found) > tolerance * max(abs(found), 1e-30):
        yield f"{what} says {said}, the cost model {found}"


def bound_notes(where: str, bound: float, value: float, status: Status) -> Iterator[str]:
    """What is wrong with a bound on a value, and with what the status says of both."""
    if bound > value * (1 + TOLERANCE):
        yield f"{where}: bound_s lies above the time that it bounds"
    if status is Status.OPTIMAL and bound < value * (1 - PROVED_WITHIN):
        yield f"{where}: is called optimal, but bound_s lies below its time"
    if status not in (Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN):
        yield f"{where}: the status {status.value} is none of a plan"

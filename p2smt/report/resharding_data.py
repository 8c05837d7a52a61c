"""A redistribution as `redistribute --json` prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, assert_never, cast

from p2smt.cost.accuracy import PriceRange
from p2smt.plans.solution import ProofStatus
from p2smt.report.outputs.redistribute import (
    BackwardRedistribution,
    CostRedistributionOutput,
    FoundRedistribution,
    FoundStatus,
    PeerEntry,
    ProofOfRedistribution,
    RedistributeOutput,
    RedistributionStepEntry,
    VerifyRedistributionOutput,
)
from p2smt.report.outputs.shape import range_data
from p2smt.report.text import one_line
from p2smt.resharding.plan_check import CHECKED, OPTIMALITY, RedistributionReport
from p2smt.resharding.reachability import RedistributionAnswer
from p2smt.resharding.redistribution_plan import PlannedStep, RedistributionPlan
from p2smt.resharding.search import RedistributionProof
from p2smt.resharding.steps import ArrayStep, kept_bytes, step_bytes
from p2smt.resharding.types import layout_text, mesh_text
from p2smt.result import Status
from p2smt.units import counted, format_time


def redistribution_data(
    answer: RedistributionAnswer,
    peers: Sequence[ComparedPlanner] | None,
    backward: RedistributionAnswer | None = None,
) -> RedistributeOutput:
    """Status, times, bounds, memory and steps; of no plan these are null and empty."""
    question, least = answer.question, answer.least
    source, target = question.source, question.target
    return RedistributeOutput(
        interrupted=answer.interrupted,
        **vars(_found(answer)),
        cuts=question.cuts.value,
        mesh=mesh_text(source.mesh),
        device_ids=source.mesh.devices,
        to_device_ids=target.mesh.devices,
        shape=source.shape,
        dtype=source.element,
        uneven=source.uneven,
        from_=layout_text(source.layout, source.mesh),
        to=layout_text(target.layout, source.mesh),
        padded_shape=question.ends()[0].frame.shape,
        memory=answer.memory,
        least_limit_bytes=least.limit_bytes,
        least_memory_bytes=least.memory_bytes,
        too_few_steps=least.too_few_steps,
        compared=None if peers is None else [_peer(row) for row in peers],
        backward=None if backward is None else _backward(backward),
    )


def _found(answer: RedistributionAnswer) -> FoundRedistribution:
    plan = answer.plan
    return FoundRedistribution(
        status=cast(FoundStatus, answer.status),
        objective_s=None if plan is None else plan.objective_s,
        **range_data(None if plan is None else plan.within),
        bound_s=None if answer.status is Status.INFEASIBLE else answer.bound_s,
        physical_bound_s=answer.physical_bound_s,
        gap=None if plan is None else relative_gap(plan),
        peak_bytes=None if plan is None else plan.peak_bytes,
        peak_step_bytes=None if plan is None else plan.peak_step_bytes,
        max_steps=answer.question.max_steps if plan is None else plan.max_steps,
        steps=[] if plan is None else steps_data(plan),
    )


def _backward(answer: RedistributionAnswer) -> BackwardRedistribution:
    """The gradient's way back: what was found, and between which types."""
    source, target = answer.question.source, answer.question.target
    return BackwardRedistribution(
        **vars(_found(answer)),
        from_=layout_text(source.layout, source.mesh),
        to=layout_text(target.layout, target.mesh),
    )


def relative_gap(plan: RedistributionPlan) -> float:
    """How far the plan lies above the proved bound, as a part of it: 0 where it is proved best."""
    objective, bound = plan.objective_s, plan.bound_s
    return 0.0 if objective <= 0 else max(0.0, (objective - bound) / objective)


def steps_data(plan: RedistributionPlan) -> list[RedistributionStepEntry]:
    """The steps, each with its time, and its bytes on a device."""
    ranges = plan.step_ranges
    return [_step(plan, number, step, ranges[number]) for number, step in enumerate(plan.steps)]


def _step(
    plan: RedistributionPlan, number: int, planned: PlannedStep, within: PriceRange | None
) -> RedistributionStepEntry:
    frame, step, time = plan.frame, planned.step, planned.time
    level = time.level
    kept = kept_bytes(frame, plan.array_steps, number) if plan.memory.keep_source else 0
    return RedistributionStepEntry(
        kind=step.kind,
        text=step.text(frame),
        after=layout_text(frame.layout(step.after), frame.mesh),
        seconds=time.seconds,
        **range_data(within),
        algorithm=time.algorithm,
        protocol=time.protocol,
        bottleneck=None if level is None else plan.topology.names[level],
        load_bytes=time.load_bytes,
        payload_bytes=int(time.payload_bytes),
        local_bytes=frame.local_bytes(step.after),
        step_bytes=step_bytes(frame, step) + kept,
    )


def _peer(row: ComparedPlanner) -> PeerEntry:
    return PeerEntry(
        name=row.name,
        seconds=row.seconds,
        peak_bytes=row.peak_bytes,
        peak_step_bytes=row.peak_step_bytes,
        over_cap=row.over_cap,
        steps=[step.kind for step in row.steps],
        note=row.note,
    )


# What is shown of other planners beside a plan.


class ComparedPlanner(Protocol):
    """What another planner does; without seconds it has no plan of the six steps."""

    @property
    def name(self) -> str: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def peak_bytes(self) -> int | None: ...
    @property
    def peak_step_bytes(self) -> int | None: ...
    @property
    def over_cap(self) -> bool: ...
    @property
    def steps(self) -> Sequence[ArrayStep]: ...
    @property
    def note(self) -> str: ...


# The verdict on a redistribution's plan file: data for ``--json``, and lines for people.


def checked_plan_data(
    report: RedistributionReport, proof: RedistributionProof | None = None
) -> VerifyRedistributionOutput:
    """The verdict as data; what only valid steps have is null where they are not."""
    plan = report.plan
    settled = [OPTIMALITY] * (proof is not None and proof.status is not ProofStatus.OPEN)
    return VerifyRedistributionOutput(
        verdict="valid" if report.valid else "invalid",
        violations=report.notes,
        objective_s=None if plan is None else plan.objective_s,
        peak_bytes=None if plan is None else plan.peak_bytes,
        peak_step_bytes=None if plan is None else plan.peak_step_bytes,
        checked=[*report.checked, *settled],
        not_checked=[
            what for what in (*CHECKED, OPTIMALITY) if what not in (*report.checked, *settled)
        ],
        proof=None if proof is None else _proof_data(proof),
    )


def plan_cost_data(report: RedistributionReport) -> CostRedistributionOutput:
    """The verdict, and the steps of a plan whose steps are any."""
    verdict = vars(checked_plan_data(report)) | {"proof": None}
    steps = [] if report.plan is None else steps_data(report.plan)
    return CostRedistributionOutput(**verdict, steps=steps)


def _proof_data(proof: RedistributionProof) -> ProofOfRedistribution:
    better = proof.better
    return ProofOfRedistribution(
        status=proof.status,
        objective_s=proof.objective_s,
        bound_s=proof.bound_s,
        max_steps=proof.max_steps,
        better_s=None if better is None else better.objective_s,
        better_steps=None if better is None else steps_data(better),
    )


def checked_plan_lines(
    report: RedistributionReport, proof: RedistributionProof | None = None
) -> Iterator[str]:
    """What is wrong, a line each; then the verdict, what was checked, and what was not."""
    for note in report.notes:
        yield f"{note.kind}: {one_line(note.message, 2000)}"
    plan = report.plan
    steps = (
        "" if plan is None else f": {_counted(len(plan.steps))}, {format_time(plan.objective_s)}"
    )
    yield f"{'valid' if report.valid else 'invalid'}{steps}"
    yield f"checked: {', '.join(report.checked)}"
    if proof is None:
        yield f"{OPTIMALITY}: not checked"
    else:
        yield from _proof_lines(proof)


def _counted(steps: int) -> str:
    return counted(steps, "step")


def _proof_lines(proof: RedistributionProof) -> Iterator[str]:
    own, bound = format_time(proof.objective_s), format_time(proof.bound_s)
    most = "" if proof.max_steps is None else f" of at most {_counted(proof.max_steps)}"
    match proof.status:
        case ProofStatus.PROVED:
            yield f"{OPTIMALITY}: proved, no plan{most} takes less than {own}"
        case ProofStatus.OPEN:
            text = f"the search ended at its limit; no plan{most} takes less than {bound}"
            yield f"{OPTIMALITY}: open, {text}; this one takes {own}"
        case ProofStatus.REFUTED:
            yield from _better_lines(proof)
        case _:
            assert_never(proof.status)


def _better_lines(proof: RedistributionProof) -> Iterator[str]:
    better = proof.better
    if better is None:
        return
    less, own = format_time(better.objective_s), format_time(proof.objective_s)
    yield f"{OPTIMALITY}: refuted, a better plan takes {less}, this one {own}"
    for step in better.steps:
        yield f"  {step.step.text(better.frame)} ({format_time(step.time.seconds)})"

"""The verdict on a redistribution's plan file: data for ``--json``, and lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

from p2smt.plans.redistribution.check import CHECKED, OPTIMALITY, RedistributionReport
from p2smt.plans.solution import ProofStatus
from p2smt.report.arrays.redistribution_data import steps_data
from p2smt.report.text import one_line
from p2smt.search.redistribution.prove import RedistributionProof
from p2smt.units import format_time


def checked_plan_data(
    report: RedistributionReport, proof: RedistributionProof | None = None
) -> dict[str, Any]:
    """The fields that tools rely on; what only valid steps have is null where they are not."""
    plan = report.plan
    settled = [OPTIMALITY] * (proof is not None and proof.status is not ProofStatus.OPEN)
    return {
        "verdict": "valid" if report.valid else "invalid",
        "violations": [
            {
                "kind": note.kind,
                "step": note.step,
                "rank": note.rank,
                "chunk": None if note.chunk is None else list(note.chunk),
                "message": note.message,
            }
            for note in report.notes
        ],
        "objective_s": None if plan is None else plan.objective_s,
        "peak_bytes": None if plan is None else plan.peak_bytes,
        "peak_step_bytes": None if plan is None else plan.peak_step_bytes,
        "checked": [*report.checked, *settled],
        "not_checked": [
            what for what in (*CHECKED, OPTIMALITY) if what not in (*report.checked, *settled)
        ],
        "proof": None if proof is None else _proof_data(proof),
    }


def _proof_data(proof: RedistributionProof) -> dict[str, Any]:
    better = proof.better
    return {
        "status": proof.status.value,
        "objective_s": proof.objective_s,
        "bound_s": proof.bound_s,
        "max_steps": proof.max_steps,
        "better_s": None if better is None else better.objective_s,
        "better_steps": None if better is None else steps_data(better),
    }


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
    return f"{steps} step{'s' * (steps != 1)}"


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

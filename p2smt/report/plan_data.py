"""The verdict on a plan file as plain data for ``--json``."""

from __future__ import annotations

from typing import Any

from p2smt.plans.check import PlanReport
from p2smt.programs.semantics import Violation


def report_data(report: PlanReport) -> dict[str, Any]:
    """The fields that tools rely on; a misstated cost is a violation of kind ``cost``."""
    violations = [_violation(n, broken) for n, broken in report.violations]
    violations += [_note(text) for text in report.cost_notes]
    return {
        "verdict": "valid" if report.valid else "invalid",
        "violations": violations,
        "objective_s": report.objective_s,
        "seconds": report.seconds,
        "checked": report.checked,
    }


def _violation(request: int, broken: Violation) -> dict[str, Any]:
    return {
        "kind": broken.kind.value,
        "request": request + 1,
        "step": broken.step,
        "rank": broken.rank,
        "chunk": broken.chunk,
        "message": broken.message,
    }


def _note(text: str) -> dict[str, Any]:
    places = dict.fromkeys(("request", "step", "rank", "chunk"))
    return {"kind": "cost", **places, "message": text}

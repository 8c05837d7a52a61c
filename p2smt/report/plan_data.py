"""The verdict on a plan file as plain data for ``--json``, and in lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from p2smt.plans.check import Note, PlanReport
from p2smt.programs.semantics import Violation
from p2smt.report.text import one_line


def report_data(report: PlanReport) -> dict[str, Any]:
    """The fields that tools rely on; what is misstated is a violation with a kind of its own."""
    violations = [_violation(n, broken) for n, broken in report.violations]
    violations += [_note(note) for note in report.notes]
    return {
        "verdict": "valid" if report.valid else "invalid",
        "violations": violations,
        "objective_s": report.objective_s,
        "seconds": report.seconds,
        "checked": report.checked,
        "not_checked": report.not_checked,
        "checked_on": report.checked_on,
    }


def report_lines(report: PlanReport) -> Iterator[str]:
    """What is wrong, a line each; then the verdict, what was checked, and what was not."""
    data = report_data(report)
    for broken in data["violations"]:
        yield f"{broken['kind']}: {_where(broken)}{one_line(broken['message'], 2000)}"
    on, count = ", ".join(dict.fromkeys(report.checked_on)), len(report.checked_on)
    yield f"{data['verdict']}: {count} request{'s' * (count != 1)}, checked on {on}"
    yield f"checked: {', '.join(report.checked)}"
    yield from (f"{what}: not checked" for what in report.not_checked)


def _where(broken: dict[str, Any]) -> str:
    """The request, where the message does not begin with it."""
    number = broken["request"]
    named = number is None or broken["message"].startswith(f"request {number}")
    return "" if named else f"request {number}: "


def _violation(request: int, broken: Violation) -> dict[str, Any]:
    return {
        "kind": broken.kind.value,
        "request": request + 1,
        "step": broken.step,
        "rank": broken.rank,
        "chunk": broken.chunk,
        "message": broken.message,
    }


def _note(note: Note) -> dict[str, Any]:
    request = None if note.request is None else note.request + 1
    places = dict.fromkeys(("step", "rank", "chunk"))
    return {"kind": note.kind, "request": request, **places, "message": note.message}

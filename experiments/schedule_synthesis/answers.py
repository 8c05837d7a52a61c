"""What a tool answered, read from what its process printed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments.schedule_synthesis.processes import Ran

FOUND, NONE, LATE, FAILED = "schedule", "none", "no answer in time", "failed"
UNKNOWN, FRONTIER = "unknown", "frontier"


def our_answer(run: Ran) -> tuple[str, str]:
    """The answer of p2smt by its exit code, and its reason; a schedule must be verified."""
    if not run.in_time:
        return LATE, ""
    data = _json(run.printed)
    if "points" in data:
        return FRONTIER, f"{data['status']}: {_points(data)}"
    match run.code, data.get("verdict"):
        case 0, "valid":
            return FOUND, _how(data)
        case 4, None:
            return NONE, str(data.get("reason", ""))
        case 3, None:
            return UNKNOWN, str(data.get("reason", ""))
        case _:
            return FAILED, (run.errors or run.printed).strip()[-200:]


def their_answer(run: Ran) -> tuple[str, str]:
    """The answer of msccl-tools; it says "unsatisfiable" also where z3 says "unknown"."""
    if not run.in_time:
        return LATE, ""
    if "Pareto optimal" in run.printed:
        told = [line for line in run.printed.splitlines() if "Pareto optimal" in line]
        return FRONTIER, told[-1].strip()
    if "synthesized!" in run.printed:
        return FOUND, ""
    if "unsatisfiable." in run.printed:
        return NONE, "unsatisfiable"
    return FAILED, (run.errors or run.printed).strip()[-200:]


def _json(text: str) -> dict[str, Any]:
    """The object that was printed; empty if it is none."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return data if isinstance(data, dict) else {}


def _how(data: dict[str, Any]) -> str:
    family = data.get("class")
    orders = f"group of {data.get('group_order')}"
    return f"class {family}, {orders}" if family else orders


def _points(data: dict[str, Any]) -> str:
    return ", ".join(f"S={point['steps']}: {point['best']}" for point in data["points"])

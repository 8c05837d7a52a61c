"""The verdict of p2smt on one schedule, as a row of the study."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from experiments.published_schedules.custom import CUSTOM, demanded
from p2smt.errors import InputError
from p2smt.interop.reading import Reading
from p2smt.interop.schedule_files import read_schedule, runnable
from p2smt.report.schedules.schedule_data import schedule_lines, wrapped
from p2smt.schedules.verify.verify import verify

if TYPE_CHECKING:
    from p2smt.schedules.model import Schedule
    from p2smt.schedules.verify.report import Report

Row = dict[str, Any]

UNREADABLE = "unreadable"
_LINE = 300


def judged(text: str, custom: str = "", runtime: str = "") -> Row:
    """Columns of a row that are about the schedule itself.

    custom: its collective, by its name in ``CUSTOM``, where the file cannot say it.
    runtime: whose tables it must fit; empty: that of its format.
    """
    start = time.process_time()
    try:
        schedule = _read(text, custom)
    except InputError as error:
        return unreadable(str(error))
    report = verify(schedule)
    seconds = time.process_time() - start
    return _about(schedule, report) | {
        "cpu_s": round(seconds, 3),
        "refused_by_runtime": _refusals(schedule, runtime, text),
    }


def unreadable(reason: str) -> Row:
    """The columns of what is no schedule that can be judged."""
    return {"verdict": UNREADABLE, "reason": " ".join(reason.split())[:_LINE]}


def _read(text: str, custom: str) -> Schedule:
    if not custom:
        return read_schedule(text, "schedule", Reading())
    wanted = CUSTOM[custom]
    return demanded(read_schedule(text, "schedule", Reading(collective=wanted.read_as)), wanted)


def _refusals(schedule: Schedule, runtime: str, text: str) -> list[str]:
    """Why the runtime would not run the file, as p2smt knows its tables."""
    return list(runnable(schedule, runtime or None, text).reasons)


def _about(schedule: Schedule, report: Report) -> Row:
    first = report.violations[0] if report.violations else None
    return {
        "verdict": report.verdict.value,
        "collective": schedule.contract.collective,
        "ranks": schedule.ranks,
        "steps": len(schedule.steps),
        "reason": " ".join((first.message if first else report.reason).split()),
        "kind": first.kind.value if first else "",
        "proof": len(first.order) if first else 0,
        "shortest": first.shortest if first else None,
        "lines": list(wrapped(schedule_lines(schedule, report))) if first else [],
    }

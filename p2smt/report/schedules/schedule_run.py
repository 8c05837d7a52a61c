"""A run of a schedule, as plain data and as lines of text."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Any

from p2smt import __version__
from p2smt.runtime.options import RunOptions
from p2smt.runtime.ranks.run_schedule import ScheduleResult
from p2smt.units import format_bytes, format_time

MOST_ERRORS = 20


def schedule_run_data(result: ScheduleResult, options: RunOptions) -> dict[str, Any]:
    """The result of `run` for JSON; times in seconds, one per repetition (the slowest rank's)."""
    schedule = result.job.schedule
    return {
        "verified": result.verified,
        "verdict": result.verdict or None,
        "schedule": schedule.name,
        "form": schedule.form,
        "collective": schedule.contract.collective,
        "in_place": schedule.in_place,
        "steps_count": len(schedule.steps),
        "payload_bytes": result.payload_bytes(options),
        "fifo_depth": result.job.fifo_depth,
        "errors": list(result.errors),
        "float_checked": result.float_checked,
        "repetitions_checked": result.repetitions_checked,
        "interleavings": result.interleavings,
        "measured_s": result.total.median_s,
        "spread_s": result.total.spread_s,
        "samples_s": list(result.total.samples),
        "options": {
            "backend": options.backend,
            "device": options.device,
            "dtype": _data_type(options),
            "warmup": options.warmup,
            "repeat": options.repeat,
            "seed": options.seed,
        },
        "versions": {"p2smt": __version__, "platform": platform.platform()},
        "ranks": list(result.machines),
    }


def _data_type(options: RunOptions) -> str:
    return "uint64" if options.backend == "reference" else options.data_type.value


def schedule_run_lines(result: ScheduleResult, options: RunOptions) -> Iterator[str]:
    """Verdict, what is wrong, and the time."""
    schedule, ranks = result.job.schedule, len(result.machines)
    verdict = "verified" if result.verified else "WRONG RESULT"
    size = format_bytes(result.payload_bytes(options))
    yield f"{verdict}: {ranks} ranks, {options.backend}, {_data_type(options)}"
    yield f"{schedule.name}: {schedule.contract.collective}, {len(schedule.steps)} steps, {size}"
    yield from result.errors[:MOST_ERRORS]
    if len(result.errors) > MOST_ERRORS:
        yield f".. and {len(result.errors) - MOST_ERRORS} more"
    if result.interleavings:
        yield f"{result.interleavings} interleavings tried"
    if result.total.median_s is not None:
        spread = result.total.spread_s
        more = "" if spread is None else f", spread {format_time(spread)}"
        yield f"{format_time(result.total.median_s)} (median, slowest rank{more})"

"""A run of a redistribution, as plain data and as lines of text."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Any

from p2smt import __version__
from p2smt.arrays.text import layout_text, mesh_text
from p2smt.runtime.options import RunOptions
from p2smt.runtime.ranks.run_arrays import ArrayRunResult
from p2smt.runtime.summary import Times
from p2smt.units import format_bytes, format_time

MOST_ERRORS = 20


def array_run_data(result: ArrayRunResult, options: RunOptions) -> dict[str, Any]:
    """The result of `run` for JSON; times in seconds, one per repetition (the slowest rank's)."""
    job, frame = result.job, result.job.frame
    return {
        "verified": result.verified,
        "mesh": mesh_text(frame.mesh),
        "shape": list(frame.shape),
        "dtype": frame.element.value,
        "errors": list(result.errors),
        "repetitions_checked": result.repetitions_checked,
        "float_checked": result.float_checked,
        "predicted_s": sum(job.predicted_s),
        **_measured(result.total),
        "memory_bytes": result.memory_bytes,
        "predicted_bytes": result.predicted_bytes,
        "steps": [
            {
                "kind": step.kind.value,
                "text": step.text(frame),
                "predicted_s": predicted,
                **_measured(times),
            }
            for step, predicted, times in zip(job.steps, job.predicted_s, result.steps, strict=True)
        ],
        "options": {
            "backend": options.backend,
            "device": options.device,
            "dtype": frame.element.value,
            "warmup": options.warmup,
            "repeat": options.repeat,
            "seed": options.seed,
            "ranks_per_gpu": options.ranks_per_gpu,
        },
        "versions": {"p2smt": __version__, "platform": platform.platform()},
        "ranks": list(result.machines),
    }


def _measured(times: Times) -> dict[str, Any]:
    return {
        "measured_s": times.median_s,
        "spread_s": times.spread_s,
        "samples_s": list(times.samples),
    }


def array_run_lines(result: ArrayRunResult, options: RunOptions) -> Iterator[str]:
    """Verdict, what is wrong, then time and memory against what was predicted."""
    job, frame = result.job, result.job.frame
    verdict = "verified" if result.verified else "WRONG RESULT"
    shape = "x".join(map(str, frame.shape))
    ranks = f"{job.ranks} ranks, {options.backend}"
    yield f"{verdict}: {ranks}, {shape} {frame.element.value} on {mesh_text(frame.mesh)}"
    ends = (layout_text(frame.layout(state), frame.mesh) for state in (job.start, job.end))
    yield f"{' to '.join(ends)}: {len(job.steps)} step{'s' * (len(job.steps) != 1)}"
    yield from result.errors[:MOST_ERRORS]
    if len(result.errors) > MOST_ERRORS:
        yield f".. and {len(result.errors) - MOST_ERRORS} more"
    if result.memory_bytes is not None:
        planned = format_bytes(result.predicted_bytes)
        yield f"memory {format_bytes(result.memory_bytes)} at most on a rank, planned {planned}"
    if result.total.median_s is not None:
        yield f"time {_time(result.total)} (median, slowest rank), {_said(sum(job.predicted_s))}"
        for number, step in enumerate(job.steps):
            times = f"{_time(result.steps[number])}, {_said(job.predicted_s[number])}"
            yield f"step {number + 1}, {step.text(frame)}: {times}"


def _said(seconds: float) -> str:
    return f"predicted {format_time(seconds)}"


def _time(times: Times) -> str:
    spread = "" if times.spread_s is None else f", spread {format_time(times.spread_s)}"
    return f"{format_time(times.median_s or 0.0)}{spread}"

"""The tables of `run`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from p2smt.report.tables import table
from p2smt.runtime.options import RunOptions
from p2smt.runtime.summary import RequestResult, RunResult, Times
from p2smt.units import format_bytes, format_time

MOST_ERRORS = 20


def run_tables(result: RunResult, options: RunOptions) -> Iterator[RenderableType]:
    """Verdict, then a line per request, step and baseline: predicted beside measured."""
    ranks = len(result.machines)
    verdict = "verified" if result.verified else "WRONG RESULT"
    yield f"{verdict}: {ranks} ranks, {options.backend}, {options.data_type.value}"
    yield from _errors(result)
    rows = [row for request in result.requests for row in _rows(request)]
    yield ""
    if any(_measured(request) for request in result.requests):
        heads = ["request and steps", ">predicted", ">measured", ">spread"]
        yield table("median over the repetitions, slowest rank", heads, rows)
    else:
        heads = ["request and steps", ">predicted"]
        yield table("nothing was timed", heads, [row[:2] for row in rows])
    yield from _speedups(result)


def _measured(result: RequestResult) -> bool:
    return any(times.samples for times in (result.total, result.baseline, *result.steps))


def _errors(result: RunResult) -> Iterator[str]:
    errors = [error for request in result.requests for error in request.errors]
    yield from errors[:MOST_ERRORS]
    if len(errors) > MOST_ERRORS:
        yield f".. and {len(errors) - MOST_ERRORS} more"


def _rows(result: RequestResult) -> Iterator[list[str]]:
    request = result.request
    size = format_bytes(request.payload_bytes)
    chunks = f" in {request.chunks} chunks" if request.chunks > 1 else ""
    yield _row(f"{request.name} {size}{chunks}", request.predicted_s, result.total)
    for step, times in zip(request.steps, result.steps, strict=True):
        of = " (one chunk)" if request.chunks > 1 else ""
        yield _row(f"  {step.name}{of}", step.predicted_s, times)
    if result.baseline.samples:
        yield _row("  baseline: one collective", request.baseline_predicted_s, result.baseline)


def _row(name: str, predicted_s: float | None, times: Times) -> list[str]:
    predicted = "not predicted" if predicted_s is None else format_time(predicted_s)
    return [name, predicted, *(_time(s) for s in (times.median_s, times.spread_s))]


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else format_time(seconds)


def _speedups(result: RunResult) -> Iterator[str]:
    for request in result.requests:
        if request.speedup is not None:
            yield f"{request.request.name}: {request.speedup:.3g}x as fast as one collective"
        if request.replicas_agree is False:
            yield f"{request.request.name}: replicas of the random payload differ in their bits"

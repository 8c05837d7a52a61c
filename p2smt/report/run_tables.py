"""Runs of plans, redistributions and schedules on ranks: tables and data."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from rich.console import Group, RenderableType

from p2smt import __version__
from p2smt.report.outputs.runs import (
    HowPlanRun,
    HowRun,
    MeasuredRequest,
    MeasuredStep,
    MeasuredTimes,
    NumberedStep,
    RanOn,
    RunArrayStep,
    RunPlanOutput,
    RunRedistributionOutput,
    RunScheduleOutput,
    RunVersions,
)
from p2smt.report.screen import COLUMNS, LINES, fitted, full_width, room
from p2smt.report.tables import table, table_lines
from p2smt.report.text import one_line
from p2smt.report.transfers.output import RunTransferOutput
from p2smt.resharding.types import layout_text, mesh_text
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.ranks.run_arrays import ArrayRunResult
from p2smt.runtime.ranks.run_schedule import ScheduleResult
from p2smt.runtime.ranks.run_transfer import TransferRunResult
from p2smt.runtime.summary import RequestResult, RunResult, Times
from p2smt.units import counted, format_bytes, format_time, plain

# A run as plain data: everything that is needed to repeat and to judge it.


def run_data(result: RunResult, options: RunOptions) -> RunPlanOutput:
    """The result of `run` for JSON; times in seconds, speedup as baseline over program."""
    requests = [_request_data(request) for request in result.requests]
    total, baseline = result.total_s, result.baseline_s
    return RunPlanOutput(
        verified=result.verified,
        steps=[
            NumberedStep(request=n, **vars(step))
            for n, request in enumerate(requests, start=1)
            for step in request.steps
        ],
        measured_s=total,
        baseline_s=baseline,
        speedup=baseline / total if baseline and total else None,
        requests=requests,
        options=how_plan(options, options.data_type.value),
        **vars(ran_on(result.machines)),
    )


def _how(options: RunOptions, data_type: str) -> HowRun:
    return HowRun(
        backend=options.backend,
        device=options.device,
        dtype=data_type,
        warmup=options.warmup,
        repeat=options.repeat,
        seed=options.seed,
    )


def how_plan(options: RunOptions, data_type: str) -> HowPlanRun:
    """The options of a run of a plan, as they took effect."""
    return HowPlanRun(**vars(_how(options, data_type)), ranks_per_gpu=options.ranks_per_gpu)


def ran_on(machines: Sequence[Mapping[str, str]]) -> RanOn:
    """With which versions, and on what machines."""
    return RanOn(
        versions=RunVersions(p2smt=__version__, platform=platform.platform()), ranks=machines
    )


def _request_data(result: RequestResult) -> MeasuredRequest:
    request, baseline = result.request, result.baseline
    return MeasuredRequest(
        request=request.name,
        kind=request.kind.value,
        payload_bytes=request.payload_bytes,
        times=request.times,
        chunks=request.chunks,
        groups=request.groups,
        verified=result.verified,
        errors=result.errors,
        float_checked=result.float_checked,
        repetitions_checked=result.repetitions_checked,
        replicas_agree=result.replicas_agree,
        predicted_s=cast(float, request.predicted_s),
        **vars(measured_times(result.total)),
        baseline_predicted_s=request.baseline_predicted_s,
        baseline_s=baseline.median_s,
        baseline_spread_s=baseline.spread_s,
        baseline_samples_s=baseline.samples,
        speedup=result.speedup,
        steps=[
            MeasuredStep(
                instruction=step.name,
                groups=step.groups,
                predicted_s=cast(float, step.predicted_s),
                **vars(measured_times(times)),
            )
            for step, times in zip(request.steps, result.steps, strict=True)
        ],
    )


def measured_times(times: Times) -> MeasuredTimes:
    """Times as plain data."""
    return MeasuredTimes(
        measured_s=times.median_s, spread_s=times.spread_s, samples_s=times.samples
    )


# A run of a schedule, as plain data and as lines of text.


def schedule_run_data(result: ScheduleResult, options: RunOptions) -> RunScheduleOutput:
    """The result of `run` for JSON; times in seconds, one per repetition (the slowest rank's)."""
    schedule = result.job.schedule
    return RunScheduleOutput(
        verified=result.verified,
        verdict=result.verdict or None,
        schedule=schedule.name,
        form=schedule.form,
        collective=schedule.contract.collective,
        in_place=schedule.in_place,
        steps_count=len(schedule.steps),
        payload_bytes=result.payload_bytes(options),
        fifo_depth=result.job.fifo_depth,
        errors=result.errors,
        float_checked=result.float_checked,
        repetitions_checked=result.repetitions_checked,
        interleavings=result.interleavings,
        **vars(measured_times(result.total)),
        options=_how(options, _data_type(options)),
        **vars(ran_on(result.machines)),
    )


def _data_type(options: RunOptions) -> str:
    return "uint64" if options.backend == "reference" else options.data_type.value


def schedule_run_lines(result: ScheduleResult, options: RunOptions) -> Iterator[str]:
    """Verdict, what is wrong, and the time."""
    schedule, ranks = result.job.schedule, len(result.machines)
    verdict = "verified" if result.verified else "WRONG RESULT"
    size = format_bytes(result.payload_bytes(options))
    yield f"{verdict}: {counted(ranks, 'rank')}, {options.backend}, {_data_type(options)}"
    steps = counted(len(schedule.steps), "step")
    yield f"{schedule.name}: {schedule.contract.collective}, {steps}, {size}"
    yield from _errors(result.errors)
    if result.interleavings:
        yield f"{result.interleavings} interleavings tried"
    if result.total.median_s is not None:
        spread = result.total.spread_s
        more = "" if spread is None else f", spread {format_time(spread)}"
        yield f"{format_time(result.total.median_s)} (median, slowest rank{more})"


# The tables of `run`.


MOST_ERRORS = 20


def run_tables(result: RunResult, options: RunOptions) -> Iterator[RenderableType]:
    """Verdict, then a line per request, step and baseline: predicted beside measured."""
    yield _verdict(result, options)
    yield from _request_errors(result)
    yield ""
    yield _times_table(result)
    yield from _speedups(result)


def run_screen(result: RunResult, options: RunOptions) -> list[str]:
    """Verdict, what is wrong and the speedups, then as much of the table as fits."""
    said = [_verdict(result, options), *map(one_line, _request_errors(result)), *_speedups(result)]
    head = fitted(full_width(said), LINES // 2)
    return [*head, "", *fitted(table_lines(_times_table(result), COLUMNS), room([""], head))]


def _verdict(result: RunResult, options: RunOptions) -> str:
    verdict = "verified" if result.verified else "WRONG RESULT"
    ranks = counted(len(result.machines), "rank")
    return f"{verdict}: {ranks}, {options.backend}, {options.data_type.value}"


def _times_table(result: RunResult) -> Group:
    rows = [row for request in result.requests for row in _rows(request)]
    if any(_measured(request) for request in result.requests):
        heads = ["request and steps", ">predicted", ">measured", ">spread"]
        return table("median over the repetitions, slowest rank", heads, rows)
    heads = ["request and steps", ">predicted"]
    return table("nothing was timed", heads, [row[:2] for row in rows])


def _measured(result: RequestResult) -> bool:
    return any(times.samples for times in (result.total, result.baseline, *result.steps))


def _request_errors(result: RunResult) -> Iterator[str]:
    return _errors([error for request in result.requests for error in request.errors])


def _errors(errors: Sequence[str]) -> Iterator[str]:
    """The first errors, and how many more there are."""
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
            yield f"{request.request.name}: {plain(request.speedup)}x as fast as one collective"
        if request.replicas_agree is False:
            yield f"{request.request.name}: replicas of the random payload differ in their bits"


# A run of a redistribution, as plain data and as lines of text.


def array_run_data(result: ArrayRunResult, options: RunOptions) -> RunRedistributionOutput:
    """The result of `run` for JSON; times in seconds, one per repetition (the slowest rank's)."""
    job, frame = result.job, result.job.frame
    return RunRedistributionOutput(
        verified=result.verified,
        mesh=mesh_text(frame.mesh),
        shape=frame.shape,
        dtype=frame.element.value,
        errors=result.errors,
        repetitions_checked=result.repetitions_checked,
        float_checked=result.float_checked,
        predicted_s=sum(job.predicted_s),
        **vars(measured_times(result.total)),
        memory_bytes=result.memory_bytes,
        predicted_bytes=result.predicted_bytes,
        steps=[
            RunArrayStep(
                kind=step.kind.value,
                text=step.text(frame),
                predicted_s=predicted,
                **vars(measured_times(times)),
            )
            for step, predicted, times in zip(job.steps, job.predicted_s, result.steps, strict=True)
        ],
        options=how_plan(options, frame.element.value),
        **vars(ran_on(result.machines)),
    )


def array_run_lines(result: ArrayRunResult, options: RunOptions) -> Iterator[str]:
    """Verdict, what is wrong, then time and memory against what was predicted."""
    job, frame = result.job, result.job.frame
    verdict = "verified" if result.verified else "WRONG RESULT"
    shape = "x".join(map(str, frame.shape))
    ranks = f"{counted(job.ranks, 'rank')}, {options.backend}"
    yield f"{verdict}: {ranks}, {shape} {frame.element.value} on {mesh_text(frame.mesh)}"
    ends = (layout_text(frame.layout(state), frame.mesh) for state in (job.start, job.end))
    yield f"{' to '.join(ends)}: {counted(len(job.steps), 'step')}"
    yield from _errors(result.errors)
    if result.memory_bytes is not None:
        planned = format_bytes(result.predicted_bytes)
        yield f"memory {format_bytes(result.memory_bytes)} at most on a rank, planned {planned}"
    if result.total.median_s is not None:
        total = time_and_spread(result.total)
        yield f"time {total} (median, slowest rank), {_said(sum(job.predicted_s))}"
        for number, step in enumerate(job.steps):
            times = f"{time_and_spread(result.steps[number])}, {_said(job.predicted_s[number])}"
            yield f"step {number + 1}, {step.text(frame)}: {times}"


def _said(seconds: float) -> str:
    return f"predicted {format_time(seconds)}"


def time_and_spread(times: Times) -> str:
    """The median, with the spread where there is one."""
    spread = "" if times.spread_s is None else f", spread {format_time(times.spread_s)}"
    return f"{format_time(times.median_s or 0.0)}{spread}"


# What `run` tells of a transfer that ranks have carried out.


def transfer_run_data(result: TransferRunResult, options: RunOptions) -> RunTransferOutput:
    """The result of `run` for JSON; times in seconds, one per repetition (the slowest rank's)."""
    job = result.job
    return RunTransferOutput(
        verified=result.verified,
        tensors=len(job.before.tensors),
        item_bytes=job.item_bytes,
        buckets=job.buckets,
        messages=job.messages,
        sent_bytes=job.sent_bytes,
        compared=job.compared,
        errors=result.errors,
        repetitions_checked=result.repetitions_checked,
        predicted_s=job.predicted_s,
        staged_bytes=result.staged_bytes,
        staging_bytes=job.staging_bytes,
        **vars(measured_times(result.total)),
        options=how_plan(options, counted(job.item_bytes, "byte")),
        **vars(ran_on(result.machines)),
    )


def transfer_run_lines(result: TransferRunResult, options: RunOptions) -> Iterator[str]:
    """Verdict, what is wrong, then staging and time against what was planned."""
    job = result.job
    wrong = bool(result.errors) or not result.checked
    verdict = "WRONG RESULT" if wrong else "verified"
    if result.overstaged and not wrong:
        verdict = "MORE STAGED THAN PLANNED"
    tensors = counted(len(job.before.tensors), "tensor")
    yield f"{verdict}: {counted(job.ranks, 'rank')}, {options.backend}, {tensors}"
    done = "followed" if options.backend == "reference" else "compared"
    yield f"{done} all {job.compared:,} values of {counted(len(job.targets), 'receiver')}"
    pieces, buckets = counted(len(job.pieces), "piece"), counted(job.buckets, "bucket")
    sent = f"{format_bytes(job.sent_bytes)} in {counted(job.messages, 'message')}"
    yield f"sent {sent} of {pieces}, {buckets}"
    yield from _errors(result.errors)
    if result.staged_bytes is not None:
        planned = format_bytes(job.staging_bytes)
        yield f"staged {format_bytes(result.staged_bytes)} at most on a rank, planned {planned}"
    if result.total.median_s is not None:
        total = time_and_spread(result.total)
        predicted = f"predicted {format_time(job.predicted_s)} on the plan's cluster"
        yield f"time {total} (median, slowest rank), {predicted}"

"""What `run` tells of a transfer that ranks have carried out."""

from __future__ import annotations

from collections.abc import Iterator

from p2smt.report.run_tables import MOST_ERRORS, how_plan, measured_times, ran_on, time_and_spread
from p2smt.report.transfers.output import RunTransferOutput
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.ranks.run_transfer import TransferRunResult
from p2smt.units import counted, format_bytes, format_time


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
    yield from result.errors[:MOST_ERRORS]
    if len(result.errors) > MOST_ERRORS:
        yield f".. and {len(result.errors) - MOST_ERRORS} more"
    if result.staged_bytes is not None:
        planned = format_bytes(job.staging_bytes)
        yield f"staged {format_bytes(result.staged_bytes)} at most on a rank, planned {planned}"
    if result.total.median_s is not None:
        total = time_and_spread(result.total)
        predicted = f"predicted {format_time(job.predicted_s)} on the plan's cluster"
        yield f"time {total} (median, slowest rank), {predicted}"

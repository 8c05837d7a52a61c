"""What the reports of all ranks say together."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from p2smt.runtime.job import Job, JobRequest
from p2smt.runtime.payload import RankReport, RequestRun


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds per repetition, each the maximum over the ranks."""

    samples: tuple[float, ...]

    @property
    def median_s(self) -> float | None:
        """Median over the repetitions; None without any."""
        return statistics.median(self.samples) if self.samples else None

    @property
    def spread_s(self) -> float | None:
        """Interquartile range; None with fewer than two repetitions."""
        if len(self.samples) < 2:
            return None
        first, _, third = statistics.quantiles(self.samples, n=4, method="inclusive")
        return third - first


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRun:
    """What all ranks say of a plan or schedule that they ran.

    ``errors``: which results are wrong, in words.  ``checked``: every rank has compared its result;
    ``float_checked``: of random numbers, too, within a finite bound; ``repetitions_checked``: in so
    many timed repetitions.
    """

    errors: tuple[str, ...]
    checked: bool
    float_checked: bool
    repetitions_checked: int
    total: Times
    machines: tuple[dict[str, str], ...]

    @property
    def verified(self) -> bool:
        """Whether every rank had the right result, in every run."""
        return self.checked and not self.errors


@dataclass(frozen=True, slots=True)
class RequestResult:
    """One request on all ranks.

    ``errors`` say which results are wrong.  ``replicas_agree``: the ranks of every group have
    the same bits after the random payload (None: nothing is replicated, or not tried).
    ``checked``: every rank of the request has compared its result; ``repetitions_checked``: in so
    many timed repetitions.
    ``speedup`` is the baseline's median time over the program's.
    """

    request: JobRequest
    errors: tuple[str, ...]
    checked: bool
    replicas_agree: bool | None
    float_checked: bool
    repetitions_checked: int
    total: Times
    baseline: Times
    steps: tuple[Times, ...]

    @property
    def verified(self) -> bool:
        """Whether every rank had the right result."""
        return self.checked and not self.errors

    @property
    def speedup(self) -> float | None:
        """How much faster than the single collective; None where there is none."""
        total, baseline = self.total.median_s, self.baseline.median_s
        return baseline / total if total and baseline else None


@dataclass(frozen=True, slots=True)
class RunResult:
    """A job's results, and what each rank ran on."""

    requests: tuple[RequestResult, ...]
    machines: tuple[dict[str, str], ...] = field(default=())

    @property
    def verified(self) -> bool:
        """Whether every result was right."""
        return all(request.verified for request in self.requests)

    @property
    def total_s(self) -> float | None:
        """Measured time of an iteration: each request as often as it is needed."""
        return _weighted(self.requests, [r.total.median_s for r in self.requests])

    @property
    def baseline_s(self) -> float | None:
        """The same with single collectives; all-to-alls and sends count with their own time."""
        single = [r.baseline.median_s or r.total.median_s for r in self.requests]
        return _weighted(self.requests, single)


def _weighted(requests: Sequence[RequestResult], times: Sequence[float | None]) -> float | None:
    terms = [
        result.request.times * time
        for result, time in zip(requests, times, strict=True)
        if time is not None
    ]
    return sum(terms) if terms else None


def summarize(job: Job, reports: Sequence[RankReport]) -> RunResult:
    """Join the reports of all ranks, in the order of the ranks."""
    requests = tuple(
        _request(request, [report.requests[i] for report in reports])
        for i, request in enumerate(job.requests)
    )
    return RunResult(requests, tuple(report.machine for report in reports))


def _request(request: JobRequest, runs: Sequence[RequestRun]) -> RequestResult:
    errors = list(dict.fromkeys(error for run in runs for error in run.errors))
    errors += _unequal(request, [run.digest for run in runs])
    random = [run.random_digest for run in runs]
    agree = not _unequal(request, random) if any(random) else None
    return RequestResult(
        request,
        tuple(errors),
        all(runs[rank].checked for group in request.groups for rank in group),
        agree,
        any(run.float_checked for run in runs),
        min(runs[rank].repetitions_checked for group in request.groups for rank in group),
        slowest([run.total_s for run in runs]),
        slowest([run.baseline_s for run in runs]),
        tuple(
            slowest([run.steps_s[step] for run in runs if run.steps_s])
            for step in range(len(request.steps))
        ),
    )


def _unequal(request: JobRequest, digests: Sequence[str]) -> list[str]:
    """Ranks whose replicated result is not the one of the first rank of their group."""
    found = []
    for group in request.groups:
        for rank in group[1:]:
            if digests[rank] != digests[group[0]]:
                text = f"its result is not the same as rank {group[0]}'s (hashes differ)"
                found.append(f"{request.name}: rank {rank}: {text}")
    return found


def slowest(samples: Sequence[Sequence[float]]) -> Times:
    taken = [one for one in samples if one]
    return Times(tuple(max(times) for times in zip(*taken, strict=True)))

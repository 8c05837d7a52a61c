"""A run as plain data: everything that is needed to repeat and to judge it."""

from __future__ import annotations

import platform
from typing import Any

from p2smt import __version__
from p2smt.runtime.options import RunOptions
from p2smt.runtime.summary import RequestResult, RunResult, Times


def run_data(result: RunResult, options: RunOptions) -> dict[str, Any]:
    """The result of `run` for JSON; times in seconds, speedup as baseline over program."""
    requests = [_request_data(request) for request in result.requests]
    total, baseline = result.total_s, result.baseline_s
    return {
        "verified": result.verified,
        "steps": [
            {"request": n, **step} for n, r in enumerate(requests, start=1) for step in r["steps"]
        ],
        "measured_s": total,
        "baseline_s": baseline,
        "speedup": baseline / total if baseline and total else None,
        "requests": requests,
        "options": {
            "backend": options.backend,
            "device": options.device,
            "dtype": options.data_type.value,
            "warmup": options.warmup,
            "repeat": options.repeat,
            "seed": options.seed,
            "ranks_per_gpu": options.ranks_per_gpu,
        },
        "versions": {"p2smt": __version__, "platform": platform.platform()},
        "ranks": list(result.machines),
    }


def _request_data(result: RequestResult) -> dict[str, Any]:
    request = result.request
    steps = zip(request.steps, result.steps, strict=True)
    return {
        "request": request.name,
        "kind": request.kind.value,
        "payload_bytes": request.payload_bytes,
        "times": request.times,
        "chunks": request.chunks,
        "groups": [list(group) for group in request.groups],
        "verified": result.verified,
        "errors": list(result.errors),
        "float_checked": result.float_checked,
        "repetitions_checked": result.repetitions_checked,
        "replicas_agree": result.replicas_agree,
        "predicted_s": request.predicted_s,
        **_times(result.total),
        "baseline_predicted_s": request.baseline_predicted_s,
        "baseline_s": result.baseline.median_s,
        "baseline_spread_s": result.baseline.spread_s,
        "baseline_samples_s": list(result.baseline.samples),
        "speedup": result.speedup,
        "steps": [
            {
                "instruction": step.name,
                "groups": [list(group) for group in step.groups],
                "predicted_s": step.predicted_s,
                **_times(times),
            }
            for step, times in steps
        ],
    }


def _times(times: Times) -> dict[str, Any]:
    return {
        "measured_s": times.median_s,
        "spread_s": times.spread_s,
        "samples_s": list(times.samples),
    }

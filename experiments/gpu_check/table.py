"""What was found as JSON and as tables in Markdown."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date
from itertools import groupby
from typing import Any

import torch

from experiments.gpu_check.checking import FAILED, NOT_RUN, VERIFIED, Clock, Row
from p2smt.units import format_time

SHARED = (
    "Ranks that share a GPU or the cores of a machine take turns: their times predict nothing of a "
    "cluster, and the predicted ones are those of two nodes of two GPUs each (dgx-a100:2, two "
    "GPUs of each node)."
)


def data(rows: Sequence[Row], ranks: Sequence[dict[str, str]], clock: Clock) -> dict[str, Any]:
    """Everything; ``ranks`` are the machines that the ranks reported."""
    states = [row.state for row in rows]
    return {
        "machine": machine(ranks),
        "date": date.today().isoformat(),
        "seconds": round(clock.budget_s - clock.left_s),
        **{state.replace(" ", "_"): states.count(state) for state in (VERIFIED, FAILED, NOT_RUN)},
        "cases": [asdict(row) for row in rows],
    }


def machine(ranks: Sequence[dict[str, str]]) -> dict[str, Any]:
    """GPUs, drivers and versions."""
    return {
        "gpu_count": torch.cuda.device_count(),
        "gpus": sorted({rank["gpu"] for rank in ranks if "gpu" in rank}),
        "driver": driver(),
        "cuda": torch.version.cuda,
        "nccl": next((rank["nccl"] for rank in ranks if "nccl" in rank), None),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def driver() -> str | None:
    """The version of the GPU driver; None if it cannot be asked for."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    asked = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return None
    return next(iter(found.stdout.split()), None) if found.returncode == 0 else None


def markdown(found: dict[str, Any]) -> str:
    """One line per start of ranks, the times, then one line per case that is not verified."""
    shown = ", ".join(f"{name} {value}" for name, value in found["machine"].items() if value)
    ways = _ways(found["cases"], found["machine"]["nccl"])
    lines = [f"{found['date']}: {shown}, {found['seconds']} s", "", *ways, ""]
    lines += [*_sets(found["cases"]), "", SHARED, "", *_times(found["cases"])]
    others = [case for case in found["cases"] if case["state"] != VERIFIED]
    return "\n".join([*lines, *(["", *_others(others)] if others else [])]) + "\n"


def _ways(cases: Sequence[dict[str, Any]], nccl: str | None) -> Iterator[str]:
    """A sentence per backend and device: on how many ranks it ran, and what became of them."""
    keys = sorted({(case["backend"], case["device"]) for case in cases}, reverse=True)
    for backend, device in keys:
        own = [case for case in cases if (case["backend"], case["device"]) == (backend, device)]
        right = [case for case in own if case["state"] == VERIFIED]
        where = f"{backend} on {device}"
        if not any(case["ranks"] > 1 for case in right):
            yield f"* {where}: nothing ran on several ranks; {len(right)} cases verified on one."
            continue
        most = max(case["ranks_per_gpu"] for case in right)
        each = f", up to {most} on one GPU{_shared(backend, nccl)}" if most > 1 else ""
        count = max(case["ranks"] for case in right)
        yield f"* {where}: {len(right)} of {len(own)} cases verified, on up to {count} ranks{each}."


def _shared(backend: str, nccl: str | None) -> str:
    """How NCCL was made to accept ranks on one GPU (p2smt.runtime.ranks.worker)."""
    if backend != "nccl" or nccl is None:
        return ""
    if tuple(map(int, nccl.split(".")[:2])) >= (2, 30):
        return " (NCCL_MULTI_RANK_GPU_ENABLE=1)"
    return " (each as a host of its own by NCCL_HOSTID: over NCCL's network transport)"


def _sets(cases: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| backend | device | ranks | per GPU | type | cases | verified | failed | not run |"
    yield "|---|---|---|---|---|---|---|---|---|"
    keys = ("backend", "device", "ranks", "ranks_per_gpu", "data_type", "case_set")
    for key, group in groupby(cases, lambda case: tuple(case[name] for name in keys)):
        states = [case["state"] for case in group]
        counts = " | ".join(str(states.count(state)) for state in (VERIFIED, FAILED, NOT_RUN))
        *where, name = key
        yield f"| {' | '.join(map(str, where))} | {_cell(name)} | {counts} |"


def _times(cases: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| backend | device | per GPU | case | step | measured | predicted |"
    yield "|---|---|---|---|---|---|---|"
    for case in cases:
        if case["measured_s"] is None:
            continue
        where = f"{case['backend']} | {case['device']} | {case['ranks_per_gpu']}"
        name = case["case_set"]
        name += "" if case["case"] == name else f": {case['case']}"
        whole = {**case, "name": "all"}
        for step in (whole, *case["steps"]):
            both = f"{_time(step['measured_s'])} | {_time(step['predicted_s'])}"
            yield f"| {where} | {_cell(name)} | {_cell(step['name'])} | {both} |"


def _others(cases: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Cases that are not verified; those of a set with one reason together."""
    yield "| state | backend | device | ranks | type | case | why |"
    yield "|---|---|---|---|---|---|---|"
    keys = ("state", "backend", "device", "ranks", "data_type", "case_set", "said")
    for key, group in groupby(cases, lambda case: tuple(case[name] for name in keys)):
        names = [case["case"] for case in group]
        *where, name, said = key
        shown = name if names == [name] else f"{name}: {names[0]}"
        shown += f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"| {' | '.join(map(str, where))} | {_cell(shown)} | {_cell(said)} |"


def _time(seconds: float | None) -> str:
    return "" if seconds is None else format_time(seconds)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

"""What was found as JSON and as a table in Markdown."""

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

from experiments.gpu_check.checking import Row
from p2smt import __version__


def data(rows: Sequence[Row], ranks: Sequence[dict[str, str]]) -> dict[str, Any]:
    """Everything; ``ranks`` are the machines that the ranks reported."""
    return {
        "machine": machine(ranks),
        "date": date.today().isoformat(),
        "verified": all(row.reason is None for row in rows),
        "cases": [{**asdict(row), "verified": row.reason is None} for row in rows],
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
        "p2smt": __version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def driver() -> str | None:
    """The version of the GPU driver; None if it cannot be asked for."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    asked = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
    found = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    return next(iter(found.stdout.split()), None) if found.returncode == 0 else None


def markdown(found: dict[str, Any]) -> str:
    """One line per launch, then one per case that failed."""
    shown = ", ".join(f"{name} {value}" for name, value in found["machine"].items() if value)
    lines = [f"{found['date']}: {shown}", "", *_launches(found["cases"])]
    failed = [case for case in found["cases"] if not case["verified"]]
    if failed:
        lines += ["", *_failures(failed)]
    return "\n".join(lines) + "\n"


def _launches(cases: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| backend | device | ranks | ranks per GPU | type | cases | verified |"
    yield "|---|---|---|---|---|---|---|"
    keys = ("backend", "device", "ranks", "ranks_per_gpu", "data_type")
    for key, group in groupby(cases, lambda case: tuple(case[name] for name in keys)):
        right = [case["verified"] for case in group]
        yield f"| {' | '.join(map(str, key))} | {len(right)} | {sum(right)} |"


def _failures(cases: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| backend | ranks | type | case | reason |"
    yield "|---|---|---|---|---|"
    for case in cases:
        reason = case["reason"].replace("|", "\\|")
        where = f"{case['backend']} | {case['ranks']} | {case['data_type']}"
        yield f"| {where} | {case['case']} | {reason} |"

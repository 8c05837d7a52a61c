"""The committed results: one JSON object, a part by each script; measured parts stand apart.

A script of these only measures, so what it measured takes the place of what was there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from experiments.testbed.written import timings

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULTS = HERE / "results.json"
MEASURED = ("beside", "large_plan", "overhead", "plans", "two", "waited")


def read() -> dict[str, Any]:
    """All parts by name; none before a script ran."""
    return {**_computed(), **{key: one["found"] for key, one in timings.read(HERE).items()}}


def _computed() -> dict[str, Any]:
    data: dict[str, Any] = {}
    if RESULTS.exists():
        data = json.loads(RESULTS.read_text(encoding="utf-8"))
    return data


def write(part: str, data: Any) -> None:
    """Replace a part."""
    if part in MEASURED:
        timings.keep(HERE, {part: {"found": data}}, anew=True)
        return
    lines = [
        f"{json.dumps(name)}: {json.dumps(value)}"
        for name, value in sorted({**_computed(), part: data}.items())
    ]
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

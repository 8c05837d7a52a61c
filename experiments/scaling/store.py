"""The committed results: one JSON object, a part by each script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULTS = HERE / "results.json"


def read() -> dict[str, Any]:
    """All parts by name; none before a script ran."""
    if not RESULTS.exists():
        return {}
    data: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return data


def write(part: str, data: Any) -> None:
    """Replace a part."""
    lines = [
        f"{json.dumps(name)}: {json.dumps(value)}"
        for name, value in sorted({**read(), part: data}.items())
    ]
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

"""Results of studies as JSON in which a change can be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def rounded(value: float, digits: int) -> float:
    """A number with so many significant digits."""
    return float(f"{value:.{digits}g}")


def write(path: Path, data: Mapping[str, Any]) -> None:
    """Write a file with one line per entry of its lists."""
    parts = [f"{json.dumps(key)}: {_value(value)}" for key, value in data.items()]
    path.parent.mkdir(exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _value(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return "[\n" + ",\n".join(f" {json.dumps(entry)}" for entry in value) + "\n]"
    return json.dumps(value)


def read(path: Path) -> dict[str, Any]:
    """A file that :func:`write` wrote."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found

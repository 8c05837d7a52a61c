"""Results of the study as JSON: the header of a file, rounding, reading and writing."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGES = ("p2smt", "ortools", "numpy", "scipy")
DIGITS = 9
"""Significant digits of a time: far finer than any model, and the same on every machine."""


def header(seed: int) -> dict[str, Any]:
    """What is needed to run the same again: versions, seed, machine class, commit, date."""
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "seed": seed,
        "commit": _commit(),
        "date": date.today().isoformat(),
    }


def _commit() -> str:
    """The commit of the sources, marked where they have been changed since."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    sources = [f":(top,glob)**/*.{kind}" for kind in ("py", "yaml")]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", *sources)
    return f"{commit}, changed" if changed else commit or "unknown"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(HERE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def rounded(value: float, digits: int = DIGITS) -> float:
    """A number with so many significant digits."""
    return float(f"{value:.{digits}g}")


def write(path: Path, data: Mapping[str, Any]) -> None:
    """Write a file with one line per entry of its lists, so that changes can be read."""
    path.parent.mkdir(exist_ok=True)
    parts = [f"{json.dumps(key)}: {_value(value)}" for key, value in data.items()]
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _value(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return "[\n" + ",\n".join(f" {json.dumps(entry)}" for entry in value) + "\n]"
    return json.dumps(value)


def read(path: Path) -> dict[str, Any]:
    """A file that :func:`write` wrote."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found

"""Results of the study: where they are, the header of a file, rounding."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from experiments.testbed.written import results

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
    return results.rounded(value, digits)

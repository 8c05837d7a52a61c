"""What results were computed with: the header of a study's file."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any


def header(seed: int, packages: Sequence[str], folder: Path) -> dict[str, Any]:
    """What is needed to run the same again: versions, seed, machine class, commit, date."""
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "seed": seed,
        "commit": _commit(folder),
        "date": date.today().isoformat(),
    }


def _commit(folder: Path) -> str:
    """The commit of the sources, marked where they have been changed since."""
    commit = _git(folder, "rev-parse", "--short=12", "HEAD")
    sources = [f":(top,glob)**/*.{kind}" for kind in ("py", "yaml")]
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", *sources)
    return f"{commit}, changed" if changed else commit or "unknown"


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

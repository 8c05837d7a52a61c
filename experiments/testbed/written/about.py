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


def computed(seed: int, packages: Sequence[str]) -> dict[str, Any]:
    """Of what is computed: versions and seed, by which everyone finds the same."""
    return {
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "seed": seed,
    }


def header(seed: int, packages: Sequence[str], folder: Path) -> dict[str, Any]:
    """Of what is measured: also the machine class, the commit and the day."""
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        **computed(seed, packages),
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

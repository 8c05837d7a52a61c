"""Are the programs of a page typed as strictly as the package itself?"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.imports import ROOT


def complaints(pieces: Iterable[str], folder: Path) -> str:
    """What mypy says of the pieces in a row, as one script; empty if nothing.

    The cache is that of ``make types``, where it was run before.
    """
    script = folder / "script.py"
    script.write_text("\n".join(pieces))
    config = ("--config-file", str(ROOT / "pyproject.toml"), "--strict")
    command = [sys.executable, "-m", "mypy", *config, str(script)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode else ""

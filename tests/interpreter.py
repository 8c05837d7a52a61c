"""Programs of their own interpreter, for what must not happen in that of the tests."""

from __future__ import annotations

import subprocess
import sys


def assert_silent(program: str, timeout_s: float = 600) -> None:
    """Run a text of Python to its end: no error, and nothing said."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

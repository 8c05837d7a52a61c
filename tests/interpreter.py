"""Programs of their own interpreter, for what must not happen in that of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.imports import ROOT

LIMIT_S = 600
"""Ends a program that hangs."""


def ran(
    *command: str,
    folder: Path = ROOT,
    environment: Mapping[str, str] = {},
    timeout_s: float = LIMIT_S,
) -> subprocess.CompletedProcess[str]:
    """A command that has come to its end, and what it printed; the environment is added to ours."""
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def python(*words: str, environment: Mapping[str, str] = {}) -> str:
    """What Python prints, which must succeed; the words are those of its command line."""
    done = ran(sys.executable, *words, environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


def shell(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    """What a command of bash prints, which must succeed."""
    done = ran("bash", "-c", command, folder=folder, environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_silent(program: str, timeout_s: float = LIMIT_S) -> None:
    """Run a text of Python to its end: no error, and nothing said."""
    done = ran(sys.executable, "-c", program, timeout_s=timeout_s)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

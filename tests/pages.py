"""Runs the commands of a page of docs/, as a reader would, and says what they print."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.imports import ROOT

ABORTED = "terminate called without an active exception"
"""What a Gloo rank of torch 2.13 may say as its interpreter ends, with or without p2smt.

Its work is done then, but the launcher fails.
"""
ATTEMPTS = 5
MEASURED = re.compile(r"\d+(\.\d+)? (us|ms|s)\b")


def blocks(page: Path, language: str, section: str = "") -> list[str]:
    """The blocks of code of a page, or of one of its sections, in one language."""
    text = page.read_text()
    if section:
        _, found, text = text.partition(f"\n## {section}\n")
        assert found, section
        text = text.partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)


def commands(page: Path, section: str = "") -> Iterator[tuple[str, list[str]]]:
    """Each command of a page or a section, and the lines that it says are printed."""
    for block in blocks(page, "console", section):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *lines = part.splitlines()
            yield command, lines


def script(path: Path) -> Any:
    """A module by its file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def with_programs(folder: Path) -> dict[str, str]:
    """The environment in which p2smt, python and torchrun are those of the tests."""
    python, programs = shlex.quote(sys.executable), folder / "bin"
    programs.mkdir()
    for name, module in (
        ("p2smt", "-m p2smt.cli"),
        ("python", ""),
        ("torchrun", "-m torch.distributed.run"),
    ):
        path = programs / name
        path.write_text(f'#!/bin/sh\nexec {python} {module} "$@"\n')
        path.chmod(0o755)
    found = {"PATH": f"{programs}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **found, "PYTHONPATH": f"{ROOT}"}


def printed(command: str, folder: Path, environment: dict[str, str]) -> list[str]:
    """What a command prints to stdout; its exit code must be 0.

    It is started again where a rank was aborted at its end by torch (``ABORTED``).
    """
    for _ in range(ATTEMPTS):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if done.returncode == 0 or ABORTED not in done.stderr:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.rstrip() for line in done.stdout.splitlines()]


def without_times(lines: list[str]) -> list[str]:
    """Lines whose times are masked: for what is measured."""
    return [MEASURED.sub("TIME", line) for line in lines]


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

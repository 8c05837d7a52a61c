"""Runs the commands of a scene in this process, in a new folder, and says what came of each."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from p2smt.cli import run
from tests.imports import ROOT
from tests.record.scenes import SHELL, Scene

TERMINAL = {"COLUMNS": "100", "LINES": "40", "NO_COLOR": "1", "TERM": "dumb"}
KEPT = ("PATH", "HOME", "TMPDIR", "SYSTEMROOT")
"""Variables of the machine that programs need to start; no other is seen by a command."""

OLD_S = 1.0
"""A time of change, in seconds since 1970."""

SEEDED = (
    *("solve", "compare", "programs", "placements", "crossings"),
    *("redistribute", "synthesize", "plan"),
)
"""Commands whose ``--seed`` is that of a solver."""


@dataclass(frozen=True)
class Outcome:
    """Exit code, what was printed, and the files that are new or other than before (None: gone)."""

    command: str
    code: int
    out: str
    err: str
    written: Mapping[str, bytes | None]


Printed = tuple[int, str, str]
"""Exit code, stdout and stderr."""
Start = Callable[[list[str]], Printed]
"""Runs p2smt with these words."""


def in_process(words: list[str]) -> Printed:
    """Run p2smt in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words)
    return code, out.getvalue(), err.getvalue()


def as_process(words: list[str]) -> Printed:
    """Run p2smt in a process of its own."""
    command = [sys.executable, "-m", "p2smt.cli", *words]
    return _started(command, {**os.environ, "PYTHONPATH": f"{ROOT}"})


def play(scene: Scene, seed: int | None = None, start: Start = in_process) -> list[Outcome]:
    """What each command of a scene does; with another solver seed where the command takes one."""
    played = list[Outcome]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        scene.furnish(folder)
        with chdir(folder), _alone():
            for command in scene.commands:
                before = _aged(folder)
                code, out, err = _run(command, seed, start)
                out, err = (text.replace(str(folder), "FOLDER") for text in (out, err))
                outcome = Outcome(command, code, out, err, _written(folder, before))
                played.append(outcome if seed is None else _unseeded(outcome, seed))
    return played


def _unseeded(outcome: Outcome, seed: int) -> Outcome:
    """The outcome with the seed that every command has by itself, where it tells its seed."""
    given, usual = f'"seed": {seed}', '"seed": 0'
    written = {
        name: content and content.replace(given.encode(), usual.encode())
        for name, content in outcome.written.items()
    }
    return replace(outcome, out=outcome.out.replace(given, usual), written=written)


def _run(command: str, seed: int | None, start: Start) -> Printed:
    """Run a command line, of p2smt or (after ``!``) of the shell."""
    if command.startswith(SHELL):
        return _started(["bash", "-c", command.removeprefix(SHELL)], os.environ)
    words = shlex.split(command)
    if seed is not None and words[0] in SEEDED and not {"--seed", "--help"} & {*words}:
        words[1:1] = ["--seed", str(seed)]
    return start(words)


def _started(command: list[str], environment: Mapping[str, str]) -> Printed:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@contextmanager
def _alone() -> Iterator[None]:
    """A terminal of one width, nothing on stdin, and no variable that a command could heed."""
    seen = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment = patch.dict(os.environ, {**seen, **TERMINAL}, clear=True)
    with environment, patch.object(sys, "stdin", io.StringIO()):
        yield


def _files(folder: Path) -> dict[str, Path]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in found}


def _aged(folder: Path) -> set[str]:
    """The names of the files there, all of them made old: what is written then is not."""
    found = _files(folder)
    for path in found.values():
        os.utime(path, (OLD_S, OLD_S))
    return {*found}


def _written(folder: Path, before: set[str]) -> dict[str, bytes | None]:
    """The files that are not old any more, and those that are gone."""
    found = _files(folder)
    young = {k: path.read_bytes() for k, path in found.items() if path.stat().st_mtime != OLD_S}
    return {**young, **dict.fromkeys(sorted(before - found.keys()))}

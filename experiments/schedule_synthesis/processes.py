"""Whole processes: CPU seconds as the system counts them, and wall seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True, slots=True)
class Ran:
    """A process that ended.

    cpu_s: user and system seconds of it and of the children that it waited for.
    code: its exit code; negative: the signal that ended it.
    printed, errors: its standard output and error.
    in_time: whether it ended by itself.
    """

    cpu_s: float
    wall_s: float
    code: int
    printed: str
    errors: str
    in_time: bool


def ran(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, limit_s: float
) -> Ran:
    """Run a command in a folder; it and its children are killed after so many wall seconds."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        late = threading.Event()
        timer = threading.Timer(limit_s, _kill, (process.pid, late))
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
        wall_s = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        printed, said = _text(output), _text(errors)
    cpu_s = usage.ru_utime + usage.ru_stime
    return Ran(cpu_s, wall_s, process.returncode, printed, said, not late.is_set())


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def _kill(group: int, late: threading.Event) -> None:
    late.set()
    os.killpg(group, signal.SIGKILL)

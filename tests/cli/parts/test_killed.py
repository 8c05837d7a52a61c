"""`kill -9` of a command that searches in parts: nothing of it stays behind but its journal."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.tools import command

# Far more than a test has time for: it is killed as soon as it has begun.
LONG = (
    *("plan", "-m", "llama-3-8b", "-t", "dgx-h100:16", "--global-batch", "1024", "--seq", "8192"),
    *("--prices", "programs", "--workers", "1"),
)
WAYS = [
    pytest.param(("--processes", "2"), id="processes"),
    pytest.param(("--engine", "dask", "--processes", "1"), id="dask", marks=pytest.mark.exhaustive),
]


@pytest.mark.cluster
@pytest.mark.parametrize("way", WAYS)
def test_a_killed_command_leaves_no_temporary_file(way: tuple[str, ...], tmp_path: Path) -> None:
    """The table of programs is there when the journal has its header."""
    if "dask" in way:
        pytest.importorskip("distributed")
    temporary, journal = tmp_path / "temporary", tmp_path / "j.jsonl"
    temporary.mkdir()
    running = subprocess.Popen(
        command(*LONG, *way, "--journal", str(journal)),
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not (journal.exists() and journal.read_bytes()):
            assert running.poll() is None
            time.sleep(0.01)
    finally:
        running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    left = [path.name for path in temporary.iterdir() if "dask" not in path.name]
    assert left == []

"""Semaphores of a process that is killed are freed without a word."""

from __future__ import annotations

import subprocess
import sys

import pytest

LEFT = """
import multiprocessing, os, signal
from p2smt.parallel_search.engines.processes import start_tracker
if {quiet}:
    start_tracker()
kept = multiprocessing.get_context("spawn").Lock()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("quiet", [True, False])
def test_what_a_killed_process_leaves_is_freed_without_a_word(quiet: bool) -> None:
    """Without the product's call Python prints a warning: else this would test nothing."""
    command = [sys.executable, "-c", LEFT.format(quiet=quiet)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode < 0
    assert ("leaked semaphore" in done.stderr) is not quiet

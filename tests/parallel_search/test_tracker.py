"""Semaphores of a process that is killed are freed without a word."""

from __future__ import annotations

import sys

import pytest

from tests.interpreter import ran

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
    done = ran(sys.executable, "-c", LEFT.format(quiet=quiet))
    assert done.returncode < 0
    assert ("leaked semaphore" in done.stderr) is not quiet

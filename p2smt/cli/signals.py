"""What the command line does when it is told to end: Ctrl-C, and SIGTERM from Slurm or `timeout`.

The first signal interrupts what runs, as Ctrl-C does in Python, so that the best found is still
written; a second one ends the process at once.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

SIGNALLED = 128
"""The exit code of a signal is this and its number, as shells have it."""
_AGAIN_S = 0.02


class Interrupts:
    """Turns SIGINT and SIGTERM into KeyboardInterrupt; ``number`` is the signal that came."""

    def __init__(self) -> None:
        self.number: int | None = None

    def install(self) -> None:
        """Take the two signals, unless whoever started this process has them ignored."""
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, self._interrupt)

    @property
    def terminated(self) -> bool:
        """Whether it was SIGTERM."""
        return self.number == signal.SIGTERM

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        if self.number is not None:
            os._exit(SIGNALLED + number)
        self.number = number
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        sys.unraisablehook = _unraisable
        raise KeyboardInterrupt


def _unraisable(problem: UnraisableHookArgs) -> None:
    """Interrupt again if an object's end swallowed the interrupt (Python ignores what ends raise).

    Of other objects, cut short in the making, nothing is said.
    """
    if isinstance(problem.exc_value, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)

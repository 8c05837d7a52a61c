"""What the command line does when it is told to end: Ctrl-C, and SIGTERM from Slurm or `timeout`.

The first signal interrupts what runs, as Ctrl-C does in Python, so that the best found is still
written; one that comes a second or more later ends the process at once.  One that comes sooner
counts as the same: `timeout` signals its child, and then the process group that the child is in.

Inside z3's bindings an interrupt waits: ctypes takes a KeyboardInterrupt in its conversions for a
wrong argument, and ends of objects swallow it.  So it comes at the next line of their caller.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

SIGNALLED = 128
"""The exit code of a signal is this and its number, as shells have it."""
AGAIN_S = 1.0
"""From so long after the first signal on, in seconds, a signal is a second one."""
_REPEAT_S = 0.02
_BINDINGS = ("z3", "ctypes")


class Interrupts:
    """Turns SIGINT and SIGTERM into KeyboardInterrupt; ``number`` is the signal that came."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._came_s = 0.0

    def install(self) -> None:
        """Take the two signals, unless whoever started this process has them ignored."""
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, self._interrupt)

    def uninstall(self) -> None:
        """Let the two signals end the process: nothing is left to be saved."""
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) == self._interrupt:
                signal.signal(number, signal.SIG_DFL)

    @property
    def terminated(self) -> bool:
        """Whether it was SIGTERM."""
        return self.number == signal.SIGTERM

    def caused(self, error: BaseException) -> bool:
        """Whether an error stands for the interrupt: a library's, stopped while it was loaded."""
        cause = error.__cause__
        return self.number is not None and isinstance(cause, KeyboardInterrupt)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        now_s = time.monotonic()
        if self.number is not None:
            if now_s - self._came_s >= AGAIN_S:
                os._exit(SIGNALLED + number)
            return
        self.number, self._came_s = number, now_s
        signal.signal(signal.SIGALRM, self._raise)
        sys.unraisablehook = _unraisable
        self._raise(number, frame)

    def _raise(self, _number: int, frame: FrameType | None) -> None:
        """Interrupt: here, or at the next line of the code that called the bindings."""
        caller = _caller_of_bindings(frame)
        if caller is None:
            raise KeyboardInterrupt
        caller.f_trace = _interrupt_line
        sys.settrace(_no_other_code)


def _caller_of_bindings(frame: FrameType | None) -> FrameType | None:
    """The code that called a library's bindings, if they, or what they call, are at work."""
    caller = None
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _BINDINGS:
            caller = frame.f_back
        frame = frame.f_back
    return caller


def _interrupt_line(_frame: FrameType, _event: str, _argument: object) -> None:
    sys.settrace(None)
    raise KeyboardInterrupt


def _no_other_code(_frame: FrameType, _event: str, _argument: object) -> None:
    """Trace functions that start meanwhile: not at all."""


def _unraisable(problem: UnraisableHookArgs) -> None:
    """Interrupt again if an object's end swallowed the interrupt (Python ignores what ends raise).

    Of other objects, cut short in the making, nothing is said.
    """
    if isinstance(problem.exc_value, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _REPEAT_S)

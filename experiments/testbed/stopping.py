"""Signals that stop a program: made exceptions, and held back while something must finish."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
REPEAT_S = 1.0

Handler = Callable[[int, FrameType | None], object] | int


@contextmanager
def stops_as_exceptions() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP raise SystemExit, as Ctrl-C raises KeyboardInterrupt.

    What comes within REPEAT_S after one that acted is taken for the same, so that a burst of them
    does not cut off the cleaning up that the first one begins.  A signal that the program ignores
    or handles stays as it is.  Python handles signals in its main thread alone: in another one
    this does nothing.
    """
    default = (signal.SIG_DFL, signal.default_int_handler)
    usual = {s: h for s, h in _handlers().items() if h in default}
    acted_s = -math.inf

    def act(number: int, _frame: FrameType | None) -> None:
        nonlocal acted_s
        if time.monotonic() - acted_s >= REPEAT_S:
            acted_s = time.monotonic()
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    with _replaced(usual, act):
        yield


@contextmanager
def stops_later() -> Iterator[None]:
    """Inside, the signals of STOPS wait; afterwards the first that came acts, once."""
    # Not by blocking them: another thread would take the signal, and Python would still run the
    # handler in this one.
    waiting: list[int] = []

    def wait(number: int, _frame: FrameType | None) -> None:
        waiting.append(number)

    try:
        with _replaced(_handlers(), wait):
            yield
    finally:
        if waiting:
            signal.raise_signal(waiting[0])


@contextmanager
def _replaced(usual: Mapping[signal.Signals, Handler], handler: Handler) -> Iterator[None]:
    """Inside, ``handler`` takes the signals of ``usual``, which get their handlers back."""
    for number in usual:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, before in usual.items():
            signal.signal(number, before)


def _handlers() -> dict[signal.Signals, Handler]:
    """The handlers of STOPS that Python knows and may change here."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    found = {number: signal.getsignal(number) for number in STOPS}
    return {number: handler for number, handler in found.items() if handler is not None}

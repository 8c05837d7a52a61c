"""Stopping solvers that have become useless, for whoever asks them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from p2smt.encodings import interruptible


def stopping_when(useless: Callable[[int | None], bool]) -> AbstractContextManager[None]:
    """Within it, solvers that this thread asks are stopped as soon as ``useless`` says so.

    It is asked before each solve and about every 50 ms, with the lower bound in ticks that the
    solve has proved so far, rounded down (None: nothing is known, or no ticks are minimised).  A
    solve that is stopped answers as if its time had run out: FEASIBLE, UNKNOWN or TRUNCATED, with
    the bound that it has proved.
    """
    return interruptible.stopping_when(useless)

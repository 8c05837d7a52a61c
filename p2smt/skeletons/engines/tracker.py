"""Python's tracker of semaphores, which outlives a coordinator that is killed.

It then frees what that has left, which is its work, and would print a warning of leaks into the
terminal of a user who has just killed a search.
"""

from __future__ import annotations

import sys
from multiprocessing import resource_tracker

_RULE = "ignore:resource_tracker:UserWarning"


def start_tracker() -> None:
    """Start the tracker, if it does not run yet, so that it frees what is left without a word.

    It is a process of its own, which is started with the warning options of this one.
    """
    sys.warnoptions.append(_RULE)
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(_RULE)

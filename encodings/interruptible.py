"""Running a solver so that a signal reaches Python while it works.

A solver holds the calling thread inside C++, where a KeyboardInterrupt does not arrive.  So it
runs in a thread of its own while the caller's thread waits in short steps; on an interrupt the
search is stopped, awaited, and the interrupt goes on to the caller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

_POLL_S = 0.05
T = TypeVar("T")


def run_interruptibly(search: Callable[[], T], stop: Callable[[], None]) -> T:
    """What ``search`` returns or raises; ``stop`` ends it early, and may be called repeatedly.

    Raises:
        KeyboardInterrupt: after the search has ended.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []
    stopped, done = threading.Event(), threading.Event()

    def work() -> None:
        try:
            if not stopped.is_set():
                outcome.append(search())
        except BaseException as error:  # handed to the caller's thread below
            failure.append(error)
        finally:
            done.set()

    # Waiting for the event, not for the thread: an interrupted Thread.join takes a running
    # thread for an ended one (in CPython 3.11).
    thread = threading.Thread(target=work, name="solver", daemon=True)
    try:
        thread.start()
        while not done.wait(_POLL_S):
            pass
    except KeyboardInterrupt:
        stopped.set()
        while thread.ident is not None and not done.is_set():
            stop()  # again and again: before the search begins it has no effect
            done.wait(_POLL_S)
        raise
    if failure:
        raise failure[0]
    return outcome[0]

"""Running a solver so that a signal reaches Python while it works.

A solver holds the calling thread inside C++, where a KeyboardInterrupt does not arrive.  So it
runs in a thread of its own while the caller's thread waits in short steps; on an interrupt the
search is stopped, awaited, and the interrupt goes on to the caller.

An interrupt arrives between any two lines of Python.  Inside ``threading`` it would leave a lock
held that the solver's thread waits for, for ever.  So signals wait while the thread is started,
and the caller's thread then waits for a lock alone, whose ``acquire`` an interrupt cannot split.

While it waits it can also ask whether the search is still of use (``stopping_when``).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Useless = Callable[[int | None], bool]
"""Whether a search has become useless, by the lower bound that it has proved on its objective in
ticks; None: it has none, or none is known yet."""

_POLL_S = 0.05
_useless: ContextVar[Useless | None] = ContextVar("useless", default=None)
_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGALRM})
T = TypeVar("T")


@contextmanager
def stopping_when(useless: Useless) -> Iterator[None]:
    """Within it, solvers that this thread calls are stopped as soon as they are useless.

    They are asked about before they begin, and about every 50 ms.  One that is stopped ends as if
    its time had run out: what it has proved by then holds, and nothing else is claimed.
    """
    token = _useless.set(useless)
    try:
        yield
    finally:
        _useless.reset(token)


def is_useless(bound: int | None = None) -> bool:
    """Whether whoever called :func:`stopping_when` calls a search with this bound useless."""
    useless = _useless.get()
    return useless is not None and useless(bound)


def is_watched() -> bool:
    """Whether this is called within :func:`stopping_when`."""
    return _useless.get() is not None


def run_interruptibly(
    search: Callable[[], T],
    stop: Callable[[], None],
    bound: Callable[[], int | None] = lambda: None,
) -> T:
    """What ``search`` returns or raises; ``stop`` ends it early, and may be called repeatedly.

    ``bound`` gives what it has proved so far, for :func:`stopping_when`.

    Raises:
        KeyboardInterrupt: after the search has ended.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []
    stopped: list[bool] = []
    ended: list[bool] = []
    over = threading.Lock()
    over.acquire()

    def work() -> None:
        try:
            if not stopped:
                outcome.append(search())
        except BaseException as error:  # handed to the caller's thread below
            failure.append(error)
        finally:
            ended.append(True)
            over.release()

    # Waiting for the lock, not for the thread: an interrupted Thread.join takes a running
    # thread for an ended one (in CPython 3.11).
    thread = threading.Thread(target=work, name="solver", daemon=True)
    try:
        _start(thread)
        while not over.acquire(timeout=_POLL_S):
            if is_useless(bound()):
                stop()
    except BaseException:
        stopped.append(True)
        while thread.ident is not None and not ended:
            stop()  # again and again: before the search begins it has no effect
            time.sleep(_POLL_S)
        raise
    if failure:
        raise failure[0]
    return outcome[0]


def _start(thread: threading.Thread) -> None:
    """Start a thread whole: signals that come meanwhile are taken afterwards, by the caller."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

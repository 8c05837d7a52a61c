"""Messages to all workers, sent by a thread: whoever has one does not wait for the slowest."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from p2smt.skeletons.cube import Member

CutoffMessage = tuple[Member | None, bool]
"""A new cutoff, and whether the search has ended."""


@contextmanager
def sent(
    send: Callable[[Member | None, bool], None], patience_s: float
) -> Iterator[queue.SimpleQueue[CutoffMessage | None]]:
    """Where messages are put; ``send`` takes each in its turn, in another thread.

    At the end those that are left are sent, for so many seconds.
    """
    messages: queue.SimpleQueue[CutoffMessage | None] = queue.SimpleQueue()

    def work() -> None:
        while (message := messages.get()) is not None:
            send(*message)

    thread = threading.Thread(target=work, name="p2smt-broadcast", daemon=True)
    thread.start()
    try:
        yield messages
    finally:
        messages.put(None)
        thread.join(patience_s)

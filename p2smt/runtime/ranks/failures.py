"""Which of several failures was the cause, and what it means, for whoever started the ranks.

A death explains the connections that others lose by it; what a rank says itself comes next.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from p2smt.errors import BackendError, ExecutionError

Event = Mapping[str, Any]
"""What a machine's process tells (:mod:`p2smt.runtime.ranks.node`)."""


def likeliest_cause(failures: Sequence[Event]) -> Event:
    """The failure that caused the others."""
    return min(failures, key=_weight)


def _weight(failure: Event) -> int:
    """Which of several failures is the cause: 0 most likely.

    A rank that ends without a word breaks the connections of its neighbours, whatever its exit
    code is; these tell of it and end.
    """
    if failure["event"] == "exit":
        return 3 if failure["told"] else 0
    if failure["event"] == "error":
        return 1 if failure["kind"] != "failure" else 2
    return 4


def _end(event: Event) -> str:
    code, where = event["code"], event["where"] or "its start"
    if code >= 0:
        return f"ended by itself with exit code {code} during {where}"
    return f"{_killed(-code)} during {where}"


def _killed(number: int) -> str:
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(number).name}"
    return f"was killed by signal {number}"


def failure_of(event: Event) -> Exception:
    """The error for a failure of a rank, or of a port that cannot be opened."""
    if event["event"] == "exit":
        return ExecutionError(f"rank {event['rank']}: {_end(event)}")
    if event["event"] == "node":
        return ExecutionError(f"rank 0: cannot open the port of the ranks: {event['text']}")
    match event["kind"]:
        case "BackendError":
            return BackendError(event["text"])
        case "failure":
            return ExecutionError(f"rank {event['rank']}: {event['text']}")
    return ExecutionError(event["text"])


def no_start(code: int, last_words: str) -> Exception:
    """The error of a process that ended before it had started its ranks, or while they ran."""
    if "No module named 'torch'" in last_words:
        return BackendError(
            "torch: is not installed; install p2smt with its torch extra, "
            "or use --backend reference"
        )
    end = _killed(-code) if code < 0 else f"ended with exit code {code}"
    words = f": {last_words}" if last_words else ""
    return ExecutionError(f"the process that starts the ranks {end}{words}")

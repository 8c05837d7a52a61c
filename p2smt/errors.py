"""Errors that carry a message a user can act on.

An error keeps what it was made of as its ``args``, and words its message from that when it is
asked: so every one survives pickling and copying, and comes out of another process whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable


class InputError(ValueError):
    """Bad input: names what was given, the rule it breaks, and the remedy.

    The command line prints it as one line and exits with code 2.
    """

    def __init__(self, given: str, rule: str, remedy: str = "") -> None:
        self.given, self.rule, self.remedy = given, rule, remedy
        super().__init__(given, rule, remedy)

    def __str__(self) -> str:
        text = f"{self.given}: {self.rule}" + (f"; {self.remedy}" if self.remedy else "")
        return " ".join(text.split())


class EncodingBug(RuntimeError):
    """A solver's decoded answer failed the independent check.

    The message holds problem and answer as JSON, so that the case can be replayed.
    """

    def __init__(self, reason: str, problem: object, answer: object) -> None:
        super().__init__(reason, _plain(problem), _plain(answer))

    def __str__(self) -> str:
        reason, problem, answer = self.args
        detail = json.dumps({"problem": problem, "answer": answer})
        return f"{reason}; please report this with the following case: {detail}"


def _plain(value: object) -> object:
    """A value as JSON has it; what JSON cannot hold is a text."""
    try:
        return json.loads(json.dumps(value, default=str))
    except (TypeError, ValueError):
        return str(value)


class OutOfTimeError(Exception):
    """A limit was reached: neither an answer nor a proof.  Never reaches a user."""


class GaveUpError(OutOfTimeError):
    """The solver ended without an answer or a proof; the text says which limit, or why."""


class TooLarge(InputError):
    """A problem exceeds a documented limit of the method that was asked for."""


class ExecutionError(RuntimeError):
    """A run on real ranks failed: names the rank.  The command line exits with code 6."""


class OutOfSpace(ExecutionError):
    """A file cannot be written any further: a full disk, a quota, a size limit.  Exit code 6."""


class BackendError(RuntimeError):
    """What a run needs is not installed or not built in.  The command line exits with code 5."""


def did_you_mean(word: str, known: Iterable[str], least: float = 0.6) -> str:
    """``did you mean 'x'?`` for the known word nearest to ``word``, or an empty text.

    ``least``: how alike they must be, 0 to 1.
    """
    from difflib import get_close_matches

    near = get_close_matches(word[:60], list(known), n=1, cutoff=least)
    return f"did you mean {near[0]!r}?" if near else ""

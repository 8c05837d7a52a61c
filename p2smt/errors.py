"""Errors that carry a message a user can act on."""

from __future__ import annotations

import json


class InputError(ValueError):
    """Bad input: names what was given, the rule it breaks, and the remedy.

    The command line prints it as one line and exits with code 2.
    """

    def __init__(self, given: str, rule: str, remedy: str = "") -> None:
        self.given, self.rule, self.remedy = given, rule, remedy
        text = f"{given}: {rule}" + (f"; {remedy}" if remedy else "")
        super().__init__(" ".join(text.split()))


class EncodingBug(RuntimeError):
    """A solver's decoded answer failed the independent check.

    The message holds problem and answer as JSON, so that the case can be replayed.
    """

    def __init__(self, reason: str, problem: object, answer: object) -> None:
        detail = json.dumps({"problem": problem, "answer": answer}, default=str)
        super().__init__(f"{reason}; please report this with the following case: {detail}")


class OutOfTimeError(Exception):
    """A limit was reached: neither an answer nor a proof.  Never reaches a user."""


class GaveUpError(OutOfTimeError):
    """The solver ended without an answer or a proof; the text says which limit, or why."""


class TooLarge(InputError):
    """A problem exceeds a documented limit of the method that was asked for."""


class ExecutionError(RuntimeError):
    """A run on real ranks failed: names the rank.  The command line exits with code 6."""


class BackendError(RuntimeError):
    """What a run needs is not installed or not built in.  The command line exits with code 5."""

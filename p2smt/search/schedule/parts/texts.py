"""Schedules as the texts that stand for members: JSON without blanks, in the one way there is."""

from __future__ import annotations

import json

from p2smt.errors import InputError
from p2smt.files.json_text import loads
from p2smt.files.plain import from_plain, to_plain
from p2smt.problems.sums import SumSchedule


def messages_text(sums: SumSchedule) -> str:
    """The messages and results of a schedule."""
    return json.dumps(to_plain(sums), separators=(",", ":"))


def messages_of(text: str) -> SumSchedule:
    """The schedule of a text that :func:`messages_text` wrote.

    Raises:
        InputError: it is none, or is written in another way.
    """
    given = f"schedule {text[:60]!r}"
    try:
        found = from_plain(SumSchedule, loads(text))
    except (ValueError, RecursionError):
        raise InputError(given, "is no JSON") from None
    if messages_text(found) != text:
        raise InputError(given, "is not written in the one way there is")
    return found

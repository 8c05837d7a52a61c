"""Text that is safe to show: printable, on one line, and short enough."""

from __future__ import annotations

from collections.abc import Sequence

MAX_MESSAGE = 560
_TAIL = 160
_WORD = 60
"""The longest word, in characters, that is left out rather than cut."""


def printable(text: str) -> str:
    """The text with control characters, and all else that does not print, written as escapes."""
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def one_line(text: str, most: int = MAX_MESSAGE) -> str:
    """The text on one printable line; from the middle of a long one whole words are left out.

    A word that is itself long is cut.
    """
    line = printable(" ".join(text.split()))
    if len(line) <= most:
        return line
    head, tail = line[: most - _TAIL - 6], line[-_TAIL:]
    start, end = head.rfind(" "), tail.find(" ")
    head = head[:start] if len(head) - start <= _WORD else head
    tail = tail[end + 1 :] if 0 <= end <= _WORD else tail
    return f"{head} [..] {tail}"


def no_time_line(levels: Sequence[str]) -> str:
    """Why times are not told, where nobody stated the bandwidth of these levels."""
    return f"the bandwidth of {' and '.join(levels)} uplinks is not stated, so no time is told"

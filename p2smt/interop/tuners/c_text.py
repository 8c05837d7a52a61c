"""Texts as C reads them: lines through a buffer, columns by strtok, numbers by strtoull and atoi.

Texts are bytes one character each (Latin-1), since buffers count bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LINE_BYTES = 255
"""What a buffer of 256 bytes takes of a line; the rest is the next line."""
_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?)([0-9]*)")
_LARGEST, _LONG = 2**64 - 1, 2**63


def as_bytes(text: str) -> str:
    """A text, one character a byte."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def buffered_lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Pieces as the buffer gives them, without line ends: the line, the piece, whether a rest."""
    for number, line in enumerate(text.split("\n"), 1):
        for start in range(0, max(1, len(line)), LINE_BYTES):
            yield number, line[start : start + LINE_BYTES].partition("\0")[0], start > 0


def columns(line: str, most: int) -> list[str]:
    """The first columns between commas, of which several in a row count as one."""
    return [word.strip(" \t") for word in re.findall("[^,]+", line)[:most]]


def unsigned(text: str) -> int:
    """What strtoull makes of a text."""
    sign, digits = _digits(text)
    value = int(digits or "0")
    if value > _LARGEST:
        return _LARGEST
    return -value % 2**64 if sign == "-" else value


def integer(text: str) -> int:
    """What atoi makes of a text: of a long its lower half."""
    sign, digits = _digits(text)
    value = int(digits or "0")
    value = max(-_LONG, -value) if sign == "-" else min(_LONG - 1, value)
    return (value + 2**31) % 2**32 - 2**31


def is_number(text: str) -> bool:
    """Whether a text is a whole number and nothing else."""
    return re.fullmatch(r"[+-]?[0-9]+\s*", text) is not None


def _digits(text: str) -> tuple[str, str]:
    found = _NUMBER.match(text)
    sign, digits = found.groups() if found else ("", "")
    return sign, digits.lstrip("0")[:40]

"""Journals of searches: written line by line, continued, and verified."""

from __future__ import annotations

from pathlib import Path

SIGN = b'{"record": "header"'
"""How each begins, of which one is told without reading it."""


def is_journal(path: str) -> bool:
    """Whether a regular file looks like a journal: it starts with its header."""
    if not Path(path).is_file():  # a pipe would be waited for, for ever
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(SIGN)) == SIGN
    except OSError:
        return False

"""Columns of a file of runs, and one row's texts as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p2smt.errors import InputError
from p2smt.files.suggest import did_you_mean

NEEDED = (
    *("id", "group", "model", "layers", "hidden", "heads", "kv_heads", "ffn", "gated", "vocab"),
    *("seq", "gbs", "mbs", "hardware", "precision", "tp", "sp", "cp", "pp", "vpp", "dp"),
    *("zero", "recompute", "flash", "step_s"),
)
"""Columns that every file of runs has."""
OPTIONAL = ("sweep", "kind", "status", "assumed", "framework")
"""Columns that are read where a file has them; others are left alone."""
MOST_DIGITS = 9


def check_header(header: Sequence[str], source: str) -> None:
    """Refuse a file that lacks a column, or has one twice.

    Raises:
        InputError: naming the columns.
    """
    missing = [name for name in NEEDED if name not in header]
    if len(missing) == len(NEEDED):
        remedy = f"its first line names the columns: {', '.join(NEEDED)}"
        raise InputError(source, "has none of the columns of a runs file", remedy)
    if missing:
        rest = [name for name in header if name not in (*NEEDED, *OPTIONAL)]
        remedy = f"the columns are {', '.join(NEEDED)}"
        near = did_you_mean(missing[0], rest)
        given = f"{source}: no column {', '.join(missing)}"
        raise InputError(given, "every one of these is needed", near or remedy)
    twice = [name for name in (*NEEDED, *OPTIONAL) if header.count(name) > 1]
    if twice:
        raise InputError(f"{source}: column {twice[0]}", "is there twice", "keep one of them")


class RunRow:
    """A line of the file: ``where`` names it in messages."""

    __slots__ = ("_texts", "where")

    def __init__(self, texts: Mapping[str, str], where: str) -> None:
        self._texts, self.where = texts, where

    def text(self, column: str) -> str:
        """What a column says; empty also where the file has no such column."""
        return self._texts.get(column, "").strip()

    def named(self, column: str) -> str:
        """As :meth:`text`, which must say something.

        Raises:
            InputError: it is empty.
        """
        found = self.text(column)
        if not found:
            raise self.error(column, "must not be empty")
        return found

    def count(self, column: str, least: int = 1) -> int:
        """A whole number.

        Raises:
            InputError: it is none, or below ``least``.
        """
        text = self.text(column)
        if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
            raise self.error(column, f"must be a whole number of at most {MOST_DIGITS} digits")
        if int(text) < least:
            raise self.error(column, f"must be at least {least}")
        return int(text)

    def switch(self, column: str) -> bool:
        """0 or 1.

        Raises:
            InputError: it is neither.
        """
        if self.text(column) not in ("0", "1"):
            raise self.error(column, "must be 0 or 1")
        return self.text(column) == "1"

    def seconds(self, column: str) -> float:
        """A time above zero.

        Raises:
            InputError: it is none.
        """
        try:
            value = float(self.text(column))
        except ValueError:
            raise self.error(column, "must be a number of seconds") from None
        if not 0 < value < 10**MOST_DIGITS:
            rule = f"must be more than 0 seconds and less than 1e{MOST_DIGITS}"
            raise self.error(column, rule, "leave out runs that were not timed")
        return value

    def error(self, column: str, rule: str, remedy: str = "correct the file") -> InputError:
        """An error about a column of this line."""
        return InputError(f"{self.where}: {column} {self.text(column)[:40]!r}", rule, remedy)

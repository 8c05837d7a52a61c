"""The first screen of `verify`: the verdict, then as much of what is wrong as fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from p2smt.report.screen import COLUMNS, LINES, fitted, full_width, room, wrapped

_LISTED = " " * 4
_VERDICTS = ("valid", "invalid", "unproved", "unknown")


def checked_screen(
    lines: Iterable[str],
    below: Sequence[str] = (),
    written: Sequence[str] = (),
    verdict: str | tuple[str, ...] = _VERDICTS,
) -> list[str]:
    """What a check says: its verdict first, whatever stood before it, long lines wrapped.

    Where not all fit, lists go first, which are indented by four blanks.  ``below``: what stays;
    ``written``: lines on files, whose names are not broken; ``verdict``: how its line begins.
    """
    found = [*lines]
    at = next((n for n, line in enumerate(found) if line.startswith(verdict)), 0)
    found = [found[at], *found[:at], *found[at + 1 :]]
    last = [*fitted(full_width(below), LINES // 2), *written]
    space = room(last)
    laid = _laid(found)
    if len(laid) <= space:
        return [*laid, *last]
    laid = _laid(_outline(found))[: space - 1]
    return [*laid, "the rest: --details", *last]


def _outline(lines: Sequence[str]) -> Iterator[str]:
    """The lines without the lists that stand below some of them."""
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        if not line.startswith(_LISTED):
            yield line.rstrip(":") if following.startswith(_LISTED) else line


def _laid(lines: Iterable[str]) -> list[str]:
    """Lines of the screen's width; those of a text that is broken are indented by more."""
    laid: list[str] = []
    for line in lines:
        start = " " * (len(line) - len(line.lstrip(" ")))
        first, *others = wrapped(line.lstrip(" "), COLUMNS - len(start) - 4)
        laid += [start + first, *(f"{start}    {one}" for one in others)]
    return laid

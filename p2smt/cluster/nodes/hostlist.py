"""Names of hosts as text: ``node[01-05,09],login1``, as Slurm writes and reads them.

Brackets hold numbers and ranges; their zeros are kept, and several brackets multiply.  How many
names a text stands for is counted before they are written out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, product

from p2smt.errors import InputError

MAX_HOSTS = 2**20
"""Most names that one text may stand for."""
MAX_TEXT = 2**24
MAX_NAME = 255
"""Longest name of a host, as in the domain name system."""
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
_LAST_NUMBER = re.compile(r"(.*?)(\d{1,15})(\D*)")
_REMEDY = "write it like node[01-05,09]"


def parse_hostlist(text: str) -> tuple[str, ...]:
    """The hosts that a text names, in its order; names may repeat.

    Raises:
        InputError: brackets that do not close, ranges that fall, odd characters, or too many names.
    """
    if len(text) > MAX_TEXT:
        raise InputError("host list", f"is longer than {MAX_TEXT} characters")
    entries = [entry.strip() for entry in _split(text)]
    if any(not entry for entry in entries):
        raise InputError(f"host list {_shown(text)}", "has an empty name", _REMEDY)
    parts = [_parts(entry, text) for entry in entries]
    if any(sum(map(_length, found)) > MAX_NAME for found in parts):
        raise InputError(f"host list {_shown(text)}", f"a name is longer than {MAX_NAME}")
    if sum(math.prod(map(_count, found)) for found in parts) > MAX_HOSTS:
        rule = f"names more than {MAX_HOSTS} hosts"
        raise InputError(f"host list {_shown(text)}", rule, "name those of one cluster")
    return tuple(name for found in parts for name in _names(found))


def format_hostlist(names: Sequence[str]) -> str:
    """A text that stands for these names in this order, runs of numbers in brackets.

    Raises:
        InputError: a name has characters that no host list can hold.
    """
    for name in names:
        if not _NAME.fullmatch(name):
            raise InputError(f"host {name[:80]!r}", "has characters that no host list can hold")
        if len(name) > MAX_NAME:
            raise InputError(f"host {name[:80]!r}", f"is longer than {MAX_NAME} characters")
    return ",".join(_folded(names))


_Part = str | tuple[tuple[int, int, int], ...]
"""Plain text, or the ranges of a bracket: first, last, digits."""


def _shown(text: str) -> str:
    return repr(text[:80]) if len(text) <= 80 else repr(text[:80] + "..")


def _split(text: str) -> Iterator[str]:
    """The entries between commas outside brackets."""
    depth = start = 0
    for at, character in enumerate(text):
        if character in "[]":
            depth += 1 if character == "[" else -1
            if depth not in (0, 1):
                raise InputError(f"host list {_shown(text)}", "has odd brackets", _REMEDY)
        elif character == "," and not depth:
            yield text[start:at]
            start = at + 1
    if depth:
        raise InputError(f"host list {_shown(text)}", "has a bracket that does not close", _REMEDY)
    yield text[start:]


def _parts(entry: str, text: str) -> list[_Part]:
    found: list[_Part] = []
    for piece in re.split(r"(\[[^\]]*\])", entry):
        if piece.startswith("["):
            found.append(tuple(_range(one, text) for one in piece[1:-1].split(",")))
        elif piece:
            if not _NAME.fullmatch(piece):
                rule = f"has characters that no host has ({piece[:40]!r})"
                raise InputError(f"host list {_shown(text)}", rule, _REMEDY)
            found.append(piece)
    return found


def _range(piece: str, text: str) -> tuple[int, int, int]:
    found = _RANGE.fullmatch(piece.strip())
    if found is None:
        rule = f"has {piece[:40]!r} in brackets, which is no number or range"
        raise InputError(f"host list {_shown(text)}", rule, _REMEDY)
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise InputError(f"host list {_shown(text)}", f"has the range {piece[:40]}, which falls")
    return first, last, len(found[1])


def _length(part: _Part) -> int:
    """Characters of a part, at most."""
    if isinstance(part, str):
        return len(part)
    return max(max(digits, len(str(last))) for _, last, digits in part)


def _count(part: _Part) -> int:
    return 1 if isinstance(part, str) else sum(last - first + 1 for first, last, _ in part)


def _names(parts: Iterable[_Part]) -> Iterator[str]:
    each = [(part,) if isinstance(part, str) else tuple(_numbers(part)) for part in parts]
    return map("".join, product(*each))


def _numbers(ranges: tuple[tuple[int, int, int], ...]) -> Iterator[str]:
    for first, last, digits in ranges:
        for number in range(first, last + 1):
            yield f"{number:0{digits}d}"


def _folded(names: Sequence[str]) -> Iterator[str]:
    """Entries of successive names that differ in their last number alone."""
    for (head, tail), run in groupby(map(_ends, names), key=lambda found: found[:2]):
        numbers = [digits for *_, digits in run]
        if tail is None:
            yield from (head for _ in numbers)
            continue
        ranges = list(_ranges(numbers))
        single = len(numbers) == 1
        yield f"{head}{numbers[0]}{tail}" if single else f"{head}[{','.join(ranges)}]{tail}"


def _ends(name: str) -> tuple[str, str | None, str]:
    """What stands before and after the last number of a name, and its digits.

    Without a number: the name, None and an empty text.
    """
    found = _LAST_NUMBER.fullmatch(name)
    return (name, None, "") if found is None else (found[1], found[3], found[2])


def _ranges(numbers: Sequence[str]) -> Iterator[str]:
    """Runs of numbers that follow each other when written with the digits of the first."""
    start = last = numbers[0]
    for digits in [*numbers[1:], ""]:
        if digits and digits == f"{int(last) + 1:0{len(start)}d}":
            last = digits
            continue
        yield start if start == last else f"{start}-{last}"
        start = last = digits

"""Abbreviated values of options, and what they are read as: `8k` is 8192, `1G` is 1 GiB."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from p2smt.errors import InputError
from p2smt.units import exact_bytes, exact_time, parse_bytes, parse_count, parse_duration

_SHORT = re.compile(r"(?<!\w)(?<!\d\.)[0-9]+(?:\.[0-9]+)? ?[kKMGT](?![\w/]|\.(?!\.))", re.ASCII)
_LONG_TIME = re.compile(r"\s*[0-9]+(?:\.[0-9]+)?\s*[mhd]\s*", re.ASCII)
_COUNTS = re.compile(r"\b[NMKSC]\b|SIZE|CHANGE")


def abbreviations(values: Iterable[tuple[str, object]]) -> dict[str, str]:
    """Abbreviations in the values of options, each given with the metavar of its option.

    What no command will read is left out: its error says so.
    """
    texts = (
        (metavar, text)
        for metavar, value in values
        for text in (value if isinstance(value, list) else [value])
        if isinstance(text, str)
    )
    with suppress(InputError):
        return dict(pair for one in texts for pair in told(*one))
    return {}


def told(metavar: str, text: str) -> Iterator[tuple[str, str]]:
    """Each abbreviation in the value of an option, and what it stands for.

    ``metavar``: how the option's help shows a value: ``SIZE``, ``N``, ``TIME``, ..
    """
    if metavar == "TIME" and _LONG_TIME.fullmatch(text):
        yield text.strip(), exact_time(parse_duration(text))
    if not _COUNTS.search(metavar):
        return
    for found in _SHORT.finditer(text):
        if _is_size(metavar, text[: found.start()]):
            yield found[0], exact_bytes(parse_bytes(found[0]))
        else:
            yield found[0], str(parse_count(found[0], "value", 2**62))


def _is_size(metavar: str, before: str) -> bool:
    """Whether a value is a size there: behind ``*`` it is how often, of a dispatch its experts."""
    if metavar == "CHANGE":
        return before.rstrip().endswith("memory=")
    if before.rstrip().endswith("*") or "SIZE" not in metavar:
        return False
    return not metavar.startswith("AXES") or before.count("=") == 1

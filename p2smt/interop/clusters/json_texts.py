"""JSON that other tools print: lists of things, bounded, with where each stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from p2smt.errors import InputError
from p2smt.files.json_text import loads

MAX_ITEMS = 2**18
"""Of one list: nodes, or instances."""


MAX_PARTS = 2**23
"""Values of a text, which take some 100 bytes of memory each: kubectl prints one in 40 bytes."""


def parsed(text: str, source: str) -> Any:
    """The data of a JSON text.

    Raises:
        InputError: it is none, nested too deeply, or has too many parts.
    """
    if sum(map(text.count, ",[{")) > MAX_PARTS:
        rule = f"has more than {MAX_PARTS} parts"
        raise InputError(source, rule, "cut it down to names and labels (jq)")
    try:
        return loads(text)
    except ValueError as error:
        rule = f"is not JSON ({str(error)[:120]})"
        raise InputError(source, rule, "give the whole output") from None
    except RecursionError:
        raise InputError(source, "is nested too deeply", "give the output as it is") from None


def each_of(data: Any, source: str, key: str) -> Iterator[tuple[Any, str]]:
    """The items of a list, or of the list under a key; with what messages call each.

    Raises:
        InputError: there is none, it is empty, or it is too long.
    """
    items = data.get(key) if isinstance(data, dict) else data
    if not isinstance(items, list):
        raise InputError(source, f"has no list of {key}", "give the whole output of the command")
    if not 1 <= len(items) <= MAX_ITEMS:
        raise InputError(
            f"{source}: {len(items)} {key}", f"must be 1 to {MAX_ITEMS}", "list those of one job"
        )
    for number, item in enumerate(items):
        yield item, f"{source}: {key}[{number}]"

"""Plain data, written and read strictly: whole numbers are ints, fractions texts, no key lacks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, TypeVar

from p2smt.errors import InputError

MAX_DIGITS = 4000
MAX_SHOWN_BITS = 256
_FRACTION = re.compile(r"(0|[1-9][0-9]*)(?:/([1-9][0-9]*))?", re.ASCII)
_REMEDY = "give a file that synthesize --certificate wrote"
T = TypeVar("T")


def data_of(value: Any) -> Any:
    """A value as a file has it: a dataclass by its fields, a set ascending, a map as its pairs."""
    if isinstance(value, Fraction):
        return str(value)
    if is_dataclass(value):
        return {one.name: data_of(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return [list(pair) for pair in sorted(value.items())]
    if isinstance(value, frozenset):
        return sorted(value)
    return [data_of(part) for part in value] if isinstance(value, tuple) else value


def refused(source: str, what: str, rule: str) -> InputError:
    """The error for a part of a file."""
    return InputError(f"{source}: {what}", rule, _REMEDY)


def parsed(text: str, source: str) -> Any:
    """The data of a JSON text; no key twice, no number that is not whole.

    Raises:
        InputError: it is none.
    """

    def no_float(given: str) -> Any:
        rule = "is no whole number; fractions are written as texts, such as 7/24"
        raise refused(source, f"{given[:20]}", rule)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise refused(source, "an object", "has a key twice")
        return found

    try:
        return json.loads(
            text, parse_float=no_float, parse_constant=no_float, object_pairs_hook=once
        )
    except InputError:
        raise
    except RecursionError:
        raise refused(source, "the text", "is nested too deeply") from None
    except ValueError as error:
        raise refused(source, "the text", f"is not JSON ({str(error)[:100]})") from None


def keys(data: Any, names: Sequence[str], source: str) -> list[Any]:
    """The values of an object with just these keys, in this order."""
    if not isinstance(data, dict) or set(data) != set(names):
        raise refused(source, "an object", f"must have the keys {', '.join(names)} and no other")
    return [data[name] for name in names]


def row(data: Any, length: int, source: str, what: str) -> list[Any]:
    """A list of so many entries."""
    if not isinstance(data, list) or len(data) != length:
        raise refused(source, what, f"must be a list of {length} entries")
    return data


def whole(data: Any, below: int, source: str, what: str) -> int:
    """A whole number from 0, below another."""
    if type(data) is not int or not 0 <= data < below:
        raise refused(source, f"{what} {str(data)[:20]}", f"must be a whole number below {below}")
    return data


def text(data: Any, source: str, what: str) -> str:
    """A text."""
    if not isinstance(data, str):
        raise refused(source, what, "must be a text")
    return data


def fraction(data: Any, source: str, what: str) -> Fraction:
    """A number of 0 or more, as a text such as ``7/24``."""
    found = _FRACTION.fullmatch(data) if isinstance(data, str) and len(data) <= MAX_DIGITS else None
    if found is None:
        rule = "must be a text such as 7/24: whole numbers from 0, none of them 0 below the stroke"
        raise refused(source, f"{what} {str(data)[:20]!r}", rule)
    return Fraction(int(found[1]), int(found[2] or 1))


def words(number: Fraction) -> str:
    """A number as a message shows it: that of a long one says how long it is."""
    bits = max(number.numerator.bit_length(), number.denominator.bit_length())
    return str(number) if bits <= MAX_SHOWN_BITS else f"a fraction of {bits} bits"


def items(data: Any, read: Callable[[Any], T], source: str, what: str) -> tuple[T, ...]:
    """A list, each entry read."""
    if not isinstance(data, list):
        raise refused(source, what, "must be a list")
    return tuple(read(one) for one in data)


def open_number(data: Any, below: int, source: str, what: str) -> int | None:
    """A whole number from 0, or null."""
    return None if data is None else whole(data, below, source, what)

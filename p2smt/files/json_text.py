"""Reads JSON of users: whole files of a bounded size, or a text.

No object has a key twice, and every number is finite: Python's own reader takes ``NaN``, makes an
infinity of ``1e400``, and makes whole numbers that no float can hold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from p2smt.errors import InputError

MAX_DIGITS = 100
"""Of a whole number: none that is meant has as many, and a float can hold these."""


class _RefusedError(ValueError):
    """JSON has something that is refused, in words."""


def read_json(path: str, source: str, remedy: str, max_bytes: int) -> Any:
    """The data of a JSON file.

    Args:
        path: the file.
        source: what messages call it.
        remedy: what to give instead, for messages.
        max_bytes: larger files are refused.

    Raises:
        InputError: no regular file, too large, not UTF-8, not JSON, a key twice, or a number
            that is not finite.
    """
    try:
        text = _text(path, source, remedy, max_bytes)
    except UnicodeDecodeError as error:
        raise InputError(source, f"is not UTF-8 text (byte {error.start})", remedy) from None
    return parse_json(text, source, remedy)


def json_kind(path: str, max_bytes: int) -> object:
    """The ``kind`` that a JSON file says it is of; None: it says none, or is no JSON file."""
    try:
        data = read_json(path, "file", "", max_bytes)
    except InputError:
        return None
    return data.get("kind") if isinstance(data, dict) else None


def parse_json(text: str | bytes, source: str, remedy: str) -> Any:
    """The data of a text in JSON, or of its bytes in UTF-8; the rest as :func:`read_json`."""
    try:
        return loads(text if isinstance(text, str) else text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(source, f"is not UTF-8 text (byte {error.start})", remedy) from None
    except _RefusedError as error:
        raise InputError(source, str(error), remedy) from None
    except ValueError as error:
        raise InputError(source, f"is not JSON ({str(error)[:200]})", remedy) from None
    except RecursionError:
        raise InputError(source, "is nested too deeply", remedy) from None


def loads(text: str) -> Any:
    """The data of a text in JSON, for a reader with messages of its own.

    Raises:
        ValueError: no JSON, a key twice, or a number that is not finite.
        RecursionError: nested too deeply.
    """
    return json.loads(
        text,
        object_pairs_hook=_once,
        parse_constant=refuse_constant,
        parse_float=finite,
        parse_int=bounded_int,
    )


def refuse_constant(text: str) -> NoReturn:
    """Refuse ``NaN`` and ``Infinity``, which are none of JSON; raises ValueError."""
    raise _RefusedError(f"has {text}, which is no number of JSON")


def finite(text: str) -> float:
    """A number with a fraction or an exponent; raises ValueError where no float is as large."""
    found = float(text)
    if not math.isfinite(found):
        raise _RefusedError(f"has the number {_short(text)}, which is too large")
    return found


def bounded_int(text: str) -> int:
    """A whole number; raises ValueError where it has more digits than any that is meant."""
    if len(text) > MAX_DIGITS:
        raise _RefusedError(f"has a number of {len(text)} digits, more than {MAX_DIGITS}")
    return int(text)


def _short(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:18]}.."


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = first_repeated(key for key, _ in pairs)
        raise _RefusedError(f"has the key {twice[:60]!r} twice")
    return found


def first_repeated(keys: Iterable[str]) -> str:
    """The first of some keys that is there twice; nothing if none is."""
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    return ""


def _text(path: str, source: str, remedy: str, max_bytes: int) -> str:
    try:
        if not Path(path).is_file():
            kind = "is not a regular file" if Path(path).exists() else "does not exist"
            raise InputError(source, kind, remedy)
        if Path(path).stat().st_size > max_bytes:
            raise InputError(source, f"is larger than {max_bytes} bytes")
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(source, f"cannot be read ({error.strerror})", remedy) from None

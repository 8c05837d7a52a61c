"""Reads JSON of users: whole files of a bounded size, or a text; no object has a key twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from p2smt.errors import InputError


class _RepeatedKeyError(ValueError):
    """A JSON object has a key twice."""


def read_json(path: str, source: str, remedy: str, max_bytes: int) -> Any:
    """The data of a JSON file.

    Args:
        path: the file.
        source: what messages call it.
        remedy: what to give instead, for messages.
        max_bytes: larger files are refused.

    Raises:
        InputError: no regular file, too large, not UTF-8, not JSON, or a key twice.
    """
    try:
        text = _text(path, source, remedy, max_bytes)
    except UnicodeDecodeError as error:
        raise InputError(source, f"is not UTF-8 text (byte {error.start})", remedy) from None
    return parse_json(text, source, remedy)


def parse_json(text: str | bytes, source: str, remedy: str) -> Any:
    """The data of a text in JSON, or of its bytes in UTF-8; the rest as :func:`read_json`."""
    try:
        return json.loads(
            text if isinstance(text, str) else text.decode("utf-8"), object_pairs_hook=_once
        )
    except UnicodeDecodeError as error:
        raise InputError(source, f"is not UTF-8 text (byte {error.start})", remedy) from None
    except _RepeatedKeyError as error:
        raise InputError(source, f"has the key {str(error)[:60]!r} twice", remedy) from None
    except ValueError as error:
        raise InputError(source, f"is not JSON ({str(error)[:200]})", remedy) from None
    except RecursionError:
        raise InputError(source, "is nested too deeply", remedy) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return found


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

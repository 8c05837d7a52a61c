"""JSON text to checked values that know their line and their path in the file.

Size, nesting and the number of values are bounded before the parser runs, so that a hostile
file costs no more than reading it.  Positions come from one pass over strings and braces:
objects end in the order in which the parser hands them out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.files.json_text import bounded_int, finite, first_repeated, refuse_constant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 4_000_000
MAX_NUMBER = 2**32 - 1
"""Largest number that the runtime can hold in the fields that are read here."""

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[{}\[\]]', re.DOTALL)


class _Object(dict[str, object]):
    """The keys of a JSON object and the line it starts on."""

    line: int = 1


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A JSON value: ``path`` is where it is in ``source``, ``line`` where its object starts."""

    data: object
    source: str
    path: str = ""
    line: int = 1

    def error(self, rule: str, remedy: str) -> InputError:
        """An error about this value; it names the file, the line and the path."""
        where = f"{self.source}, line {self.line}"
        return InputError(f"{where}: {self.path[:200]}" if self.path else where, rule, remedy)

    def has(self, key: str) -> bool:
        """Whether this object has the key with something in it."""
        return self._object().get(key) is not None

    def at(self, key: str) -> JsonValue:
        """The value of a key; InputError if it is missing."""
        held = self._object()
        if key not in held:
            raise self.error(f"the key {key!r} is missing", "add it")
        path = f"{self.path}.{key}" if self.path else key
        return self._child(held[key], path)

    def items(self, key: str, *, optional: bool = False) -> list[JsonValue]:
        """The entries of a list; none if it is optional and missing."""
        if optional and not self.has(key):
            return []
        found = self.at(key)
        if not isinstance(found.data, list):
            raise found.error(f"must be a list, not {_type(found.data)}", "write [..]")
        return [found._child(item, f"{found.path}[{i}]") for i, item in enumerate(found.data)]

    def integer(self, low: int = 0, high: int = MAX_NUMBER) -> int:
        """This value as a whole number between two bounds."""
        if not isinstance(self.data, int) or isinstance(self.data, bool):
            raise self.error(f"must be a whole number, not {_type(self.data)}", "write digits")
        if not low <= self.data <= high:
            shown = str(self.data) if abs(self.data) < 10**18 else "the number"
            raise self.error(f"{shown} is not between {low} and {high}", "correct it")
        return self.data

    def text(self) -> str:
        """This value as text on one line."""
        if not isinstance(self.data, str):
            raise self.error(f"must be text, not {_type(self.data)}", "put it in quotes")
        if any("\ud800" <= char <= "\udfff" for char in self.data):
            raise self.error("holds half of a surrogate pair", "write the character")
        return " ".join(self.data.split())

    def flag(self, key: str, default: bool) -> bool:
        """The value of a key as true or false."""
        if not self.has(key):
            return default
        found = self.at(key)
        if not isinstance(found.data, bool):
            raise found.error(f"must be true or false, not {_type(found.data)}", "write one")
        return found.data

    def number(self, key: str, default: int, low: int = 0, high: int = MAX_NUMBER) -> int:
        """The value of a key as a whole number, or the default where it is missing."""
        return self.at(key).integer(low, high) if self.has(key) else default

    def word(self, key: str, default: str | None = None) -> str:
        """The value of a key as text, or the default where it is missing and there is one."""
        return default if default is not None and not self.has(key) else self.at(key).text()

    def _object(self) -> _Object:
        if not isinstance(self.data, _Object):
            raise self.error(f"must be an object, not {_type(self.data)}", "write {..}")
        return self.data

    def _child(self, data: object, path: str) -> JsonValue:
        line = data.line if isinstance(data, _Object) else self.line
        return JsonValue(data, self.source, path, line)


def _type(data: object) -> str:
    names = {_Object: "an object", list: "a list", str: "text", bool: "true or false"}
    return "null" if data is None else names.get(type(data), "a number")


def load_json(text: str, source: str) -> JsonValue:
    """One JSON document; ``source`` names it in messages.

    Raises:
        InputError: not JSON, a key given twice, NaN, or larger or deeper than the limits.
    """
    if len(text) > MAX_BYTES:
        raise InputError(source, f"is longer than {MAX_BYTES} characters", "shorten it")
    if text.count(",") + text.count("{") + text.count("[") > MAX_VALUES:
        raise InputError(source, f"holds more than {MAX_VALUES} values", "shorten it")
    lines = iter(_object_lines(text, source))
    try:
        data = json.loads(
            text,
            object_pairs_hook=_keeper(lines, source),
            parse_constant=refuse_constant,
            parse_float=finite,
            parse_int=bounded_int,
        )
    except json.JSONDecodeError as error:
        where = f"{source}, line {error.lineno}"
        raise InputError(where, f"is not valid JSON: {error.msg}", "correct that line") from None
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(source, f"is not valid JSON: {str(error)[:80]}", "correct it") from None
    found = JsonValue(data, source)
    return JsonValue(data, source, line=data.line) if isinstance(data, _Object) else found


def _object_lines(text: str, source: str) -> list[int]:
    """The line each object starts on, in the order in which the objects end."""
    ended: list[int] = []
    opened: list[int] = []
    line, seen = 1, 0
    for token in _TOKEN.finditer(text):
        match text[token.start()]:
            case "{" | "[":
                line += text.count("\n", seen, token.start())
                seen = token.start()
                opened.append(line)
                if len(opened) > MAX_DEPTH:
                    where = f"{source}, line {line}"
                    raise InputError(where, f"nesting is deeper than {MAX_DEPTH}", "flatten it")
            case "}" if opened:
                ended.append(opened.pop())
            case "]" if opened:
                opened.pop()
    return ended


def _keeper(lines: Iterator[int], source: str) -> Callable[[list[tuple[str, object]]], _Object]:
    def keep(pairs: list[tuple[str, object]]) -> _Object:
        held = _Object(pairs)
        held.line = next(lines, 1)
        if len(held) < len(pairs):
            twice = first_repeated(name for name, _ in pairs)
            where = f"{source}, line {held.line}: key {twice[:60]!a}"
            raise InputError(where, "is given twice in one object", "keep one of them")
        return held

    return keep

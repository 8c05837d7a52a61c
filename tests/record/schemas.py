"""What a JSON Schema allows, without the names of its parts and what it says about them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

SAID = ("title", "description", "$defs", "$schema", "$id", "$ref", "discriminator")
KEYED = {"properties": ".{}", "patternProperties": "./{}/"}
LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLE = {"items": "[]", "additionalProperties": ".*", "propertyNames": "<key>"}
SINGLE |= {word: f"<{word}>" for word in ("if", "then", "else", "not")}
SETS = ("required", "enum", "type")
"""Keywords whose lists have no order."""

LEAST_LINES = 6
"""A part of fewer lines is shown wherever it stands."""
LONGEST_PATTERN = 50

Lines = tuple[tuple[str, str], ...]
Above = tuple[tuple[str, str], ...]
"""The names of the parts around a place, each with the path to it."""


class Schemas:
    """Shows schemas; a large part that one of them has shown before, by the place where it was."""

    def __init__(self) -> None:
        self._first: dict[Lines, str] = {}

    def shown(self, name: str, schema: dict[str, Any]) -> list[str]:
        """One line a place: the path of keys to it, and what a value there must be.

        Parts that stand in a schema by ``$ref`` stand where they are used, but for one inside
        itself: there is said which end of its path to leave out to find it.
        """
        lines = self._part(schema, "", schema.get("$defs", {}), (), name)
        return [f"{path or '.'} {what}" for path, what in lines]

    def _part(self, part: Any, path: str, named: dict[str, Any], above: Above, of: str) -> Lines:
        """The lines of a part, their paths from it."""
        if not isinstance(part, dict):
            return (("", json.dumps(part)),)
        if isinstance(name := part.get("$ref"), str):
            outer = dict(above)
            if name in outer:
                return (("", f"as without {path[len(outer[name]) :]}"),)
            above = (*above, (name, path))
            part = {**named[name.rpartition("/")[2]], **{k: part[k] for k in part if k != "$ref"}}
        lines: Lines = (("", _plain(part)),)
        for step, inner in _inner(part):
            found = self._part(inner, path + step, named, above, of)
            lines += tuple((step + rest, what) for rest, what in found)
        if len(lines) < LEAST_LINES:
            return lines
        if lines in self._first:
            return (("", f"the same as {self._first[lines]}"),)
        self._first[lines] = f"{of} {path or '.'}"
        return lines


def _inner(part: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The parts of a part, and the step to each; keys by name."""
    for word, form in KEYED.items():
        yield from ((form.format(k), v) for k, v in sorted(part.get(word, {}).items()))
    for word in LISTED:
        yield from ((f"<{word} {n}>", value) for n, value in enumerate(part.get(word, ())))
    for word, step in SINGLE.items():
        if not isinstance(part.get(word, False), bool):
            yield step, part[word]


def _plain(part: dict[str, Any]) -> str:
    """What a part says of itself."""
    left_out = (*SAID, *KEYED, *LISTED)
    plain = {
        key: value
        for key, value in part.items()
        if key not in left_out and (key not in SINGLE or isinstance(value, bool))
    }
    for key in SETS:
        if isinstance(plain.get(key), list):
            plain[key] = sorted(plain[key], key=json.dumps)
    if "discriminator" in part:
        plain["by"] = part["discriminator"]["propertyName"]
    if len(pattern := plain.get("pattern", "")) > LONGEST_PATTERN:
        digest = hashlib.sha256(pattern.encode()).hexdigest()[:8]
        plain["pattern"] = f"{pattern[:20]}~{digest}"
    return json.dumps(plain, sort_keys=True)

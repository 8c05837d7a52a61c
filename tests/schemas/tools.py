"""Validation by the jsonschema library, and which fields of a schema a value has."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator

from p2smt.report.outputs.catalogue import schema_of


@cache
def validator(name: str) -> Validator:
    """A validator of the schema of this name, which is itself a valid schema."""
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def complaints(name: str, value: Any) -> list[str]:
    """What the schema of this name says against a value."""
    errors = validator(name).iter_errors(value)
    return [f"{error.json_path}: {error.message[:200]}" for error in errors]


def fields(value: object, above: str = "") -> Iterator[str]:
    """The keys of a value as paths; those of the parts of a list together."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{above}.{key}"
            yield from fields(inner, f"{above}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, f"{above}[]")


def declared(schema: dict[str, Any]) -> Iterator[str]:
    """The keys that a schema declares, as paths; files inside an output are left out."""
    yield from _declared(schema, schema, "")


def _declared(part: dict[str, Any], root: dict[str, Any], above: str) -> Iterator[str]:
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        if not name.endswith("Model"):
            yield from _declared(root["$defs"][name], root, above)
        return
    for key, inner in part.get("properties", {}).items():
        yield f"{above}.{key}"
        yield from _declared(inner, root, f"{above}.{key}")
    if isinstance(part.get("items"), dict):
        yield from _declared(part["items"], root, f"{above}[]")
    for inner in part.get("anyOf", ()):
        yield from _declared(inner, root, above)

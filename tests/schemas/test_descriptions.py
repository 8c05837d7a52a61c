"""Every key of every schema is described: by itself, or by the model that it refers to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from p2smt.report.outputs.catalogue import listed
from p2smt.report.outputs.descriptions import STANDS_FOR, WORDS, description_of
from tests.schemas.tools import validator

Part = Mapping[str, Any]


def checked(name: str) -> Part:
    """The schema of this name, made and found valid once."""
    return cast(Part, validator(name).schema)


def keys(schema: Part) -> Iterator[tuple[str, str, Part]]:
    """Model, key and what the schema has for it."""
    for name, part in ((schema.get("title", ""), schema), *schema.get("$defs", {}).items()):
        for key, value in part.get("properties", {}).items():
            yield name, key, value


def refers_to_words(value: Any, models: Part) -> bool:
    """Whether a model that it refers to, in whatever depth, is described."""
    if isinstance(value, Mapping):
        target = models.get(str(value.get("$ref", "")).rpartition("/")[2], {})
        return "description" in target or any(refers_to_words(v, models) for v in value.values())
    return isinstance(value, list) and any(refers_to_words(one, models) for one in value)


@pytest.mark.parametrize("name", listed())
def test_every_key_is_described(name: str) -> None:
    schema = checked(name)
    bare = [
        f"{model}.{key}"
        for model, key, value in keys(schema)
        if "description" not in value and not refers_to_words(value, schema.get("$defs", {}))
    ]
    assert bare == []


def test_words_are_sentences_of_keys_that_need_them() -> None:
    """What nothing needs any more would be a sentence too many."""
    used = set()
    for name in listed():
        for model, key, value in keys(checked(name)):
            used |= {
                one for one in (f"{model}.{key}", key) if WORDS.get(one) == value.get("description")
            }
    assert set(WORDS) - used == set()
    assert [words for words in WORDS.values() if words[0].islower() or words[-1] != "."] == []
    models = {model for name in listed() for model, _, _ in keys(checked(name))}
    assert set(STANDS_FOR) <= models


def test_where_descriptions_come_from() -> None:
    told = {"description": "Own."}
    assert description_of("M", "speed", told, "``speed``: how fast.") == "Own."
    assert description_of("M", "speed", {}, "A car.  ``speed``: how fast; else.") == "How fast."
    assert description_of("M", "speed", {}, "A car.\n\nspeed: how\n    fast.\nx: y.") == "how fast."
    assert description_of("StrategyBlock", "offload", {}, "").startswith("The part of the layers")
    inside = {"anyOf": [{"type": "null"}, {"description": "Such as 1 s."}]}
    assert description_of("M", "speed", inside, "") == "Such as 1 s."
    assert description_of("M", "seconds", {}, "") == WORDS["seconds"]
    assert description_of("M", "seconds", {"items": {"$ref": "#/$defs/X"}}, "") == ""
    assert description_of("M", "speed", {}, "") == ""

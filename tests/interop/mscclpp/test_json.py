"""JSON with lines and paths: what it finds, and what it refuses within bounds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.interop.mscclpp import checked_json
from p2smt.interop.mscclpp.checked_json import JsonValue, load_json


def _refusal(text: str) -> str:
    with pytest.raises(InputError) as caught:
        load_json(text, "a.json")
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_objects_know_their_line_and_path() -> None:
    text = '{"x": "{[\\"}",\n "ops": [\n{"name":"a"}, {"name": "b",\n"in": [{"name": "c"}]}]}'
    ops = load_json(text, "a.json").items("ops")
    assert [op.line for op in ops] == [3, 3]
    inner = ops[1].items("in")[0]
    assert (inner.line, inner.path) == (4, "ops[1].in[0]")
    assert "a.json, line 4: ops[1].in[0]" in str(inner.error("is wrong", "correct it"))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(_JSON, st.sampled_from([None, 1]))
def test_the_data_is_that_of_the_parser(data: object, indent: int | None) -> None:
    assert load_json(json.dumps(data, indent=indent), "a.json").data == data


@given(_JSON)
def test_every_object_starts_on_the_line_it_says(data: object) -> None:
    text = json.dumps({"a": data}, indent=1)
    lines = text.split("\n")
    todo = [load_json(text, "a.json")]
    while todo:
        value = todo.pop()
        if isinstance(value.data, dict):
            assert "{" in lines[value.line - 1]
            todo += [value.at(key) for key in value.data]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"a": 1,\n"b": }', "line 2"),
        ('{"a": 1, "a": 2}', "'a': is given twice"),
        ('{"a": NaN}', "has NaN, which is no number of JSON"),
        ('{"a": -1e400}', "has the number -1e400, which is too large"),
        ('{"a": ' + "9" * 301 + "}", "has a number of 301 digits, more than 100"),
        ("[" * 100_000, "nesting is deeper"),
        ('{"a":' * 100_000, "nesting is deeper"),
        ("9" * 5000, "is not valid JSON"),
        ("", "is not valid JSON"),
        ('"' + '\\"' * 100_000, "is not valid JSON"),
        ("}}]]", "is not valid JSON"),
        ('{"a": "\n"}', "line 1"),
    ],
)
def test_what_is_refused(text: str, part: str) -> None:
    assert part in _refusal(text)


def test_files_with_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_json, "MAX_VALUES", 10)
    assert "more than 10 values" in _refusal(json.dumps(list(range(20))))
    monkeypatch.setattr(checked_json, "MAX_BYTES", 10)
    assert "longer than 10 characters" in _refusal(json.dumps(list(range(20))))


def _value(data: object) -> JsonValue:
    return load_json(json.dumps(data), "a.json")


@pytest.mark.parametrize(
    ("data", "part"),
    [
        ({}, "'n' is missing"),
        ({"n": True}, "must be a whole number, not true or false"),
        ({"n": 1.0}, "must be a whole number, not a number"),
        ({"n": "1"}, "not text"),
        ({"n": -1}, "-1 is not between"),
        ({"n": 10**90}, "the number is not between"),
        ([], "must be an object, not a list"),
    ],
)
def test_wrong_numbers(data: object, part: str) -> None:
    with pytest.raises(InputError, match=part):
        _value(data).at("n").integer()


def test_wrong_texts_lists_and_flags() -> None:
    with pytest.raises(InputError, match="surrogate"):
        load_json('{"n": "\\ud800"}', "a.json").word("n")
    with pytest.raises(InputError, match="must be text, not null"):
        _value({"n": None}).at("n").text()
    with pytest.raises(InputError, match="must be a list, not an object"):
        _value({"n": {}}).items("n")
    with pytest.raises(InputError, match="must be true or false"):
        _value({"n": 1}).flag("n", default=False)


def test_defaults_stand_for_missing_keys() -> None:
    value = _value({"n": 3, "t": "x\ny"})
    assert value.number("n", 7) == 3
    assert value.number("m", 7) == 7
    assert value.word("t", "z") == "x y"
    assert value.word("u", "z") == "z"
    assert value.items("v", optional=True) == []

"""JSON of users: no number that is not finite, no key twice, one line for each mistake."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.files.json_text import MAX_DIGITS, loads, parse_json, read_json
from tests.strategies.json_values import LEAVES, json_values

JSON = json_values(leaves=LEAVES | st.floats(allow_nan=False, allow_infinity=False))


@given(JSON)
def test_what_is_written_is_read(data: object) -> None:
    assert loads(json.dumps(data)) == data


def test_a_whole_number_may_be_as_long_as_a_float_is_large() -> None:
    assert loads("9" * MAX_DIGITS) == 10**MAX_DIGITS - 1
    assert float(loads("9" * MAX_DIGITS)) == 10.0**MAX_DIGITS


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("NaN", "has NaN, which is no number of JSON"),
        ("[-Infinity]", "has -Infinity, which is no number of JSON"),
        ("1e400", "has the number 1e400, which is too large"),
        ("-1" + "0" * 400 + ".5", "has the number -10000000000000000.., which is too large"),
        ("1" + "0" * MAX_DIGITS, f"has a number of {MAX_DIGITS + 1} digits, more than"),
        ("9" * 5000, "has a number of 5000 digits, more than"),
        ('{"a": 1, "b": 2, "a": 3}', "has the key 'a' twice"),
        ("[" * 100_000, "is nested too deeply"),
        ("{", "is not JSON"),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_refused(text: str, rule: str, tmp_path: Path) -> None:
    (tmp_path / "it.json").write_text(text)
    readers: list[Callable[[], object]] = [
        lambda: parse_json(text, "it", "write another"),
        lambda: parse_json(text.encode(), "it", "write another"),
        lambda: read_json(str(tmp_path / "it.json"), "it", "write another", 10**6),
    ]
    for read in readers:
        with pytest.raises(InputError) as caught:
            read()
        assert str(caught.value).startswith(f"it: {rule}")
        assert str(caught.value).endswith("; write another")

"""What a text shows of itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.files.text_kind import seems


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        (" \n# a comment\n---\n", "is empty"),
        ("\0\0", "is binary"),
        ("<system version='1'/>", "is XML of <system>"),
        ("\ufeff<?xml version='1'?>\n<!DOCTYPE a>\n<!-- <b> > -->\n<c:d>", "is XML of <c:d>"),
        ('{"a": 1, "b": {"c": 2}, "d": 0, "e": 1}', "is JSON with the keys a, b, c, d"),
        ('[{"a-b": 1}]', "is JSON with the keys a-b"),
        ("[1, 2]", "begins with '[1, 2]'"),
        ("# x\n---\na.b: 1\nc:\n- d: 2\n", "is YAML with the keys a.b, c"),
        ("\n  import torch\nx: 1\n", "begins with 'import torch'"),
        ("a" * 99, f"begins with '{'a' * 60}'"),
    ],
)
def test_what_it_is(text: str, what: str) -> None:
    assert seems(text) == what


def test_comments_without_an_element_take_no_longer_than_they_are() -> None:
    assert seems("<!-- a -->" * 10_000).startswith("begins with")
    assert seems("<!--" * 10_000).startswith("begins with")


@given(st.text())
def test_any_text_is_something(text: str) -> None:
    assert seems(text).startswith(("is ", "begins with "))

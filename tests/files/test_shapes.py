"""Dataclasses as the shape of files: two readers of one shape, and what the strict one refuses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

import pytest

from p2smt.cluster.library.file import (
    packaged_library,
    packaged_names,
    packaged_text,
    parse_library,
)
from p2smt.cluster.library.model import Library
from p2smt.errors import InputError
from p2smt.files.plain import from_plain, to_plain
from p2smt.files.shapes import FileKey, FileTable, Limits, ReadBy, file_data, reader_of
from p2smt.files.validation import validated
from p2smt.units import exact_time, parse_time


class Colour(Enum):
    RED = "red"


Seconds = Annotated[float, ReadBy(parse_time, write=exact_time)]


@dataclass(frozen=True, slots=True)
class Inner:
    colour: Colour
    wait_s: Annotated[float, FileKey("wait"), ReadBy(parse_time, 7.0, exact_time)]


@dataclass(frozen=True, slots=True)
class Outer:
    inner: Annotated[tuple[Inner, ...], Limits(min_length=1)]
    times: Annotated[tuple[tuple[tuple[str, Colour], Seconds], ...], FileTable()] = ()
    count: Annotated[int, Limits(ge=1)] = 1
    least: Inner | None = None


GOOD: dict[str, Any] = {
    "inner": [{"colour": "red", "wait": "2 s"}, {"colour": "red"}],
    "times": {"a": {"red": "1 s"}, "b": {"red": "3 s"}},
    "least": {"colour": "red", "wait": None},
}


def test_both_readers_make_the_same_value() -> None:
    waits = (Inner(Colour.RED, 2.0), Inner(Colour.RED, 7.0))
    times = ((("a", Colour.RED), 1.0), (("b", Colour.RED), 3.0))
    wanted = Outer(waits, times, 1, waits[1])
    assert validated(Outer, GOOD, "f") == wanted
    assert reader_of(Outer)(GOOD) == wanted


def test_a_value_is_written_as_files_have_it() -> None:
    """What is as it would be without its key is left out."""
    said = {"inner": GOOD["inner"], "times": GOOD["times"], "least": {"colour": "red"}}
    assert file_data(validated(Outer, GOOD, "f")) == said
    assert file_data(Outer((Inner(Colour.RED, 7.0),))) == {"inner": [{"colour": "red"}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inner": []}, "f: inner (list): must have at least 1, and has 0"),
        ({"inner": "red"}, "f: inner 'red': must be a list"),
        ({"inner": [3]}, "f: inner[0] 3: must be a mapping with colour"),
        ({"inner": [{}]}, "f: inner[0].colour: this key is missing"),
        ({"inner": [{"colour": "blue"}]}, "f: inner[0].colour 'blue': must be 'red'"),
        ({"inner": [{"colour": "red", "wait_s": "1 s"}]}, "f: unknown key 'wait_s' in inner[0]"),
        ({"times": {"a": {"red": 4}}}, "f: times.a.red: time 4"),
        ({"times": []}, "f: times (list): must be a mapping"),
        ({"count": 0}, "f: count 0: must be at least 1"),
        ({"count": True}, "f: count True: must be a whole number"),
        ({"count": "2"}, "f: count '2': must be a whole number"),
        ({"other": 1}, "f: unknown key 'other': the keys here are inner, times, count, least"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        validated(Outer, GOOD | change, "f")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("name", packaged_names())
def test_a_packaged_library_is_read_as_one_of_others(name: str) -> None:
    assert packaged_library(name) == parse_library(packaged_text(name), name)


@pytest.mark.parametrize("name", packaged_names())
def test_a_packaged_library_is_written_as_it_is_read(name: str) -> None:
    written = json.dumps(file_data(packaged_library(name)))
    again = parse_library(written, name)
    assert again == packaged_library(name)
    assert json.dumps(file_data(again)) == written
    plain = json.dumps(to_plain(again))
    assert json.dumps(to_plain(from_plain(Library, json.loads(plain)))) == plain

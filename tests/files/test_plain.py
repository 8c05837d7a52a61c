"""Frozen values as JSON data and back: whole, exact, and nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology, preset_names
from p2smt.cluster.library.file import packaged_names
from p2smt.cluster.library.model import Library
from p2smt.cluster.library.registry import library_of
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.files.plain import from_plain, to_plain


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: float = 0.0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise InputError(f"x {self.x}", "must not be negative")


@dataclass(frozen=True, slots=True)
class Line:
    """Of every kind that there is."""

    ends: tuple[Point, Point]
    name: str | None
    colours: frozenset[Colour]
    what: Point | Colour | int
    style: Literal["solid", "dotted"] = "solid"
    points: tuple[Point, ...] = ()
    closed: bool = False


points = st.builds(Point, st.integers(0), st.floats(allow_nan=False))
lines = st.builds(
    Line,
    st.tuples(points, points),
    st.none() | st.text(max_size=3),
    st.frozensets(st.sampled_from(Colour)),
    points | st.sampled_from(Colour) | st.integers(),
    st.sampled_from(["solid", "dotted"]),
    st.lists(points, max_size=2).map(tuple),
    st.booleans(),
)
LINE = Line((Point(1, math.inf), Point(2, 0.1)), None, frozenset(Colour), Colour.RED)


@given(lines)
def test_what_is_written_is_read(line: Line) -> None:
    text = json.dumps(to_plain(line), allow_nan=False)
    assert from_plain(Line, json.loads(text)) == line


@given(st.frozensets(st.sampled_from(Colour)))
def test_a_value_has_one_text(colours: frozenset[Colour]) -> None:
    other = replace(LINE, colours=frozenset(reversed(list(colours))))
    assert to_plain(replace(LINE, colours=colours)) == to_plain(other)


@pytest.mark.parametrize("name", preset_names())
def test_topologies_come_back(name: str) -> None:
    topology = load_topology(name)
    assert from_plain(Topology, json.loads(json.dumps(to_plain(topology)))) == topology


@pytest.mark.parametrize("name", packaged_names())
def test_libraries_come_back(name: str) -> None:
    library = library_of(name)
    assert from_plain(Library, json.loads(json.dumps(to_plain(library)))) == library


@pytest.mark.parametrize(
    "change",
    [
        {"ends": []},
        {"ends": [{"x": 1}, {"x": -1}]},
        {"ends": [{"x": 1}, {"x": 1, "z": 1}]},
        {"ends": [{"x": 1}, {}]},
        {"ends": [{"x": True}, {"x": 1}]},
        {"ends": [{"x": 1, "y": "nan"}, {"x": 1}]},
        {"name": 3},
        {"colours": ["green"]},
        {"style": "dashed"},
        {"what": "green"},
        {"closed": 1},
        {"points": {"x": 1}},
        {"more": 1},
    ],
)
def test_other_data_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        from_plain(Line, {**to_plain(LINE), **change})


def test_a_value_without_a_form_is_refused() -> None:
    with pytest.raises(InputError):
        to_plain(object())


@given(st.fractions())
def test_fractions_are_texts(value: Fraction) -> None:
    assert from_plain(Fraction, json.loads(json.dumps(to_plain(value)))) == value


@pytest.mark.parametrize("text", ["", "1/0", "2/4", "0.5", "1/-2", "-0", "1e9", "1" * 1500, 3, 0.5])
def test_what_is_no_fraction_is_refused(text: object) -> None:
    with pytest.raises(InputError):
        from_plain(Fraction, text)

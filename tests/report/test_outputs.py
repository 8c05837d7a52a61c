"""How outputs become JSON, and that their schemas say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Annotated

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from p2smt.report.outputs.shape import Noted, Output, OutputPart, Said, json_of, printed
from tests.interpreter import assert_silent


class Colour(Enum):
    """A word."""

    RED = "red"


@dataclass(frozen=True)
class Plain:
    """A value of another package; its default is no reason to leave the key out."""

    size: int
    name: str | None = None


class Before(OutputPart):
    """What stands before the fields of who inherits it."""

    class_: Colour


class Shown(Before, Output):
    """An output."""

    rate: Annotated[float | None, Said("A rate.", gt=0)]
    rows: Annotated[Sequence[Sequence[int]], Said("Rows.", ge=1)]
    inner: Annotated[Plain, Noted(size=Said("Its size.", ge=0))]
    extra: str | None = None


ONE = Shown(class_=Colour.RED, rate=0.5, rows=((1, 2),), inner=Plain(3))


def test_keys_are_the_fields_in_their_order() -> None:
    assert list(printed(ONE).items()) == [
        ("schema_version", 1),
        ("class", "red"),
        ("rate", 0.5),
        ("rows", [[1, 2]]),
        ("inner", {"size": 3, "name": None}),
    ]
    shown = Shown(class_=Colour.RED, rate=None, rows=(), inner=Plain(3), extra="x")
    assert list(printed(shown))[-1] == "extra"


def test_what_json_lacks() -> None:
    assert json_of((float("inf"), float("nan"), 1.5, Fraction(7, 2), True)) == [
        *(None, None, 1.5, "7/2", True)
    ]


def validator() -> Draft202012Validator:
    return Draft202012Validator(TypeAdapter(Shown).json_schema())


def test_the_schema_takes_what_is_printed() -> None:
    assert list(validator().iter_errors(printed(ONE))) == []


@pytest.mark.parametrize(
    "change",
    [
        {"rate": 0},
        {"rows": [[0]]},
        {"inner": {"size": -1, "name": None}},
        {"inner": {"size": 1}},
        {"inner": {"size": 1, "name": None, "more": 1}},
        {"class": "blue"},
        {"class_": "red"},
        {"schema_version": 2},
    ],
    ids=str,
)
def test_the_schema_refuses_what_the_notes_exclude(change: dict[str, object]) -> None:
    assert list(validator().iter_errors(printed(ONE) | change))


@pytest.mark.parametrize("key", ["schema_version", "class", "rate", "rows", "inner"])
def test_the_schema_wants_every_key_without_a_default(key: str) -> None:
    left = {name: value for name, value in printed(ONE).items() if name != key}
    assert list(validator().iter_errors(left))


def test_outputs_are_loaded_without_pydantic() -> None:
    assert_silent(
        "import sys\n"
        "from p2smt.report.outputs import orders, programs, runs, schedules, shape, solve\n"
        "assert 'pydantic' not in sys.modules, 'pydantic'\n"
    )

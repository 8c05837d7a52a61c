"""Values written as text and made again."""

from __future__ import annotations

import enum
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np
import pytest
from pydantic import BaseModel, Field

from p2smt.parallelism.placement import AxisRule
from tests.exploring.found import add_case, case_of, read_cases
from tests.exploring.text import UnwritableError, Writer, value_of
from tests.strategies.draws import Draws, Shuffle

HOME = sys.modules[__name__]


class Size(enum.Enum):
    SMALL = 1


class Switch(enum.Flag):
    A = 1
    B = 2


@dataclass(frozen=True)
class Box:
    size: Size
    inside: tuple[object, ...] = ()
    double: int = field(init=False, default=2)


class Pair(NamedTuple):
    left: int
    right: float


class Held:
    def __init__(self, one: int, two: str) -> None:
        self.one, self.two, self._seen = one, two, 0


class Odd:
    """Another one each time that it is made."""

    made = 0

    def __init__(self, n: int) -> None:
        Odd.made += 1
        self.n = n + Odd.made


class Model(BaseModel):
    number: int = Field(alias="n")


CHECKS: list[Callable[[int], bool]] = [lambda n: n > 0, lambda n: n < 0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        ((1,), "(1,)"),
        (math.inf, 'float("inf")'),
        (-math.inf, 'float("-inf")'),
        ({"b": [0.1, True], "a": b"\x00"}, "{'b': [0.1, True], 'a': b'\\x00'}"),
        (frozenset({2, 1}), "frozenset([1, 2])"),
        (Size.SMALL, "Size.SMALL"),
        (Switch.A | Switch.B, "Switch(3)"),
        (Box(Size.SMALL, (set(),)), "Box(size=Size.SMALL, inside=(set([]),))"),
        (Pair(1, 2.5), "Pair(1, 2.5)"),
        (Fraction(2, 3), "Fraction(2, 3)"),
        (Decimal("1.00"), "Decimal('1.00')"),
        (PurePosixPath("a/b"), "PurePosixPath('a/b')"),
        (AxisRule(0, 1, inside=True), None),
        (range(3), "range(0, 3)"),
        (Box, "Box"),
        (math.floor, "floor"),
        (partial(math.pow, 2.0), "partial(pow, 2.0)"),
        (Draws(1, [Size.SMALL]), "Draws(1, [Size.SMALL])"),
        (Shuffle(7), "Shuffle(7)"),
        (Held(1, "x"), "Held(one=1, two='x')"),
        (Model(n=3), "Model.model_validate({'n': 3})"),
        (CHECKS[1], "CHECKS[1]"),
        (np.float64(0.5), "float64(0.5)"),
        (np.array([[1, 2]]), "array([[1, 2]], dtype='<i8')"),
        (np.zeros((0, 3)), "array([], dtype='<f8').reshape((0, 3))"),
    ],
)
def test_values_have_a_text_that_makes_them_again(value: object, text: str | None) -> None:
    writer = Writer(HOME)
    written = writer.text(value)
    assert text is None or written == text
    again = value_of(written, writer.names)
    assert type(again) is type(value)
    assert Writer(HOME).text(again) == written


@pytest.mark.parametrize(
    "value", [object(), lambda: 1, iter([1])], ids=["object", "function", "iterator"]
)
def test_what_has_no_text_is_told(value: object) -> None:
    with pytest.raises(UnwritableError):
        Writer(HOME).text([value])


def test_a_value_that_is_made_otherwise_again_is_told() -> None:
    with pytest.raises(UnwritableError, match=r"n: Odd\(n=.*\) made of Odd"):
        case_of("t.py::test", "", {"n": Odd(1)}, HOME)


@dataclass(frozen=True)
class Picky:
    number: int

    def __post_init__(self) -> None:
        if sys._getframe(2).f_code.co_name != "test_a_value_that_its_class_refuses_again_is_told":
            raise ValueError("not today")


def test_a_value_that_its_class_refuses_again_is_told() -> None:
    with pytest.raises(UnwritableError, match="ValueError: not today"):
        case_of("t.py::test", "", {"n": Picky(1)}, HOME)


def test_draws_are_handed_out_again_and_no_more_of_them() -> None:
    from hypothesis import strategies as st

    given = Draws(3, "x")
    assert [given.draw(st.integers()), given.draw(st.text())] == [3, "x"]
    with pytest.raises(LookupError, match="a case of 2 draws"):
        given.draw(st.integers())
    assert repr(given) == "Draws(3, 'x')"
    assert Shuffle(5).random() == Shuffle(5).random()


def test_cases_are_read_back_and_kept_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("found") / "found.json"
    assert read_cases(path) == []
    case = case_of("t.py::test", "no", {"box": Box(Size.SMALL), "n": 1}, HOME)
    for _ in range(2):
        add_case(case, path)
    assert read_cases(path) == [case]
    assert case.arguments() == {"box": Box(Size.SMALL), "n": 1}

"""Equality types: which of the digits of one level are zero, and which are alike.

A level of n values is seen through equality alone: a step may ask whether a digit is zero, and
whether two digits are the same.  So a tuple of digits stands for its type: zero keeps its number,
the other values are numbered 1, 2, .. as they first appear.  A type with m values other than zero
occurs on every level of more than m values, and on no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache

Type = tuple[int, ...]
Digits = Mapping[str, int]
"""The digits of one level by variable."""


class Where(Enum):
    """What a formula asks of the digits of one level.

    ``d``, ``e`` are members of a group, ``f`` its first; ``u``, ``v`` rows; ``c`` a contribution.
    """

    ANY = auto()
    VARIES = auto()  # the level is of the group's slice: the first member has zero there
    FIXED = auto()  # all members of a group have the same digit
    ZERO = auto()  # only devices with zero there take part
    FIRST = auto()  # zero
    NEXT = auto()  # the first member has zero, the other one has not
    OWN_ROW = auto()  # rows with the device's own digit
    SAME_ROW = auto()  # the other row has the same digit
    LIKE_ROW = auto()  # the other row is zero there, too, or not zero, either


class Witnesses(Enum):
    """How many values the digits of a level may have where something is said to exist."""

    ANY = auto()  # on levels of as many values as it takes
    ON_EVERY_SIZE = auto()  # on each level that has the output's values, at least two
    TWO_VALUES = auto()  # on each level


@dataclass(frozen=True, slots=True)
class Formula:
    """The ``output`` for which other digits exist with all of ``holds`` and none of ``fails``.

    Each entry names the variables of a relation, one letter each.
    """

    holds: tuple[str, ...]
    fails: tuple[str, ...]
    output: str

    @property
    def variables(self) -> str:
        """All variables, each once."""
        return "".join(dict.fromkeys("".join((self.output, *self.holds, *self.fails))))


def _members(digits: Digits) -> Iterable[int]:
    return (digits[name] for name in "def" if name in digits)


_ASKS: Mapping[Where, Callable[[Digits], bool]] = {
    Where.ANY: lambda _: True,
    Where.VARIES: lambda digits: digits.get("f", 0) == 0,
    Where.FIXED: lambda digits: len(set(_members(digits))) == 1,
    Where.ZERO: lambda digits: set(_members(digits)) == {0},
    Where.FIRST: lambda digits: digits["d"] == 0 == digits.get("e", 0),
    Where.NEXT: lambda digits: digits["d"] == 0 != digits["e"],
    Where.OWN_ROW: lambda digits: digits["u"] == digits["d"],
    Where.SAME_ROW: lambda digits: digits["v"] == digits["u"],
    Where.LIKE_ROW: lambda digits: (digits["v"] == 0) == (digits["u"] == 0),
}


@cache
def types(variables: int) -> tuple[Type, ...]:
    """Every type of so many digits."""
    found: tuple[Type, ...] = ((),)
    for _ in range(variables):
        found = tuple((*one, new) for one in found for new in range(max((0, *one)) + 2))
    return found


@cache
def number_of(kind: Type) -> int:
    """The place of a type among those of as many digits."""
    return types(len(kind)).index(kind)


def type_of(digits: Iterable[int]) -> Type:
    """The type of some digits."""
    names = {0: 0}
    return tuple(names.setdefault(digit, len(names)) for digit in digits)


def values(kind: Type) -> int:
    """How many values a level must have for the type to occur: those of the type, and zero."""
    return 1 + max((0, *kind))


def _admitted(joint: Type, output: Type, witnesses: Witnesses) -> bool:
    match witnesses:
        case Witnesses.ANY:
            return True
        case Witnesses.TWO_VALUES:
            return values(joint) <= 2
        case Witnesses.ON_EVERY_SIZE:
            return values(joint) <= max(2, values(output))


Choices = tuple[tuple[tuple[int, ...], ...], ...]


@cache
def choices(formula: Formula, where: Where, witnesses: Witnesses) -> Choices:
    """At one level, for each type of the output, the types that the relations may have together.

    Types by number; a choice has one for each relation of the formula, ``holds`` first.
    """
    found: list[dict[tuple[int, ...], None]] = [{} for _ in types(len(formula.output))]
    names = formula.variables
    for joint in types(len(names)):
        digits = dict(zip(names, joint, strict=True))
        output = type_of(digits[name] for name in formula.output)
        if _ASKS[where](digits) and _admitted(joint, output, witnesses):
            relations = (*formula.holds, *formula.fails)
            chosen = tuple(number_of(type_of(digits[n] for n in one)) for one in relations)
            found[number_of(output)][chosen] = None
    return tuple(tuple(one) for one in found)

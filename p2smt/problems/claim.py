"""Whole-number terms, and claims about them: the frozen input of a proof for all sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Operator(StrEnum):
    """What a term does with its parts; the value is how it is written, or called in messages."""

    NUMBER = "int"
    NAME = "name"
    NEGATE = "neg"
    NOT = "not"
    IF = "if"
    MIN = "min"
    MAX = "max"
    LOG2 = "log2"
    OR = "or"
    AND = "and"
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    EQUAL = "=="
    UNEQUAL = "!="
    XOR = "xor"
    PLUS = "+"
    MINUS = "-"
    TIMES = "*"
    FLOOR = "//"
    MOD = "mod"
    POWER = "^"


# Looked up once: in Python 3.11 a member takes seven times as long as a comparison of texts.
_NUMBER, _NAME = Operator.NUMBER, Operator.NAME

COMPARISONS = (
    *(Operator.LESS, Operator.AT_MOST, Operator.MORE, Operator.AT_LEAST),
    *(Operator.EQUAL, Operator.UNEQUAL),
)


@dataclass(frozen=True, slots=True)
class Term:
    """An expression over whole numbers; truth is 1 or 0.

    args: its parts: none of NUMBER (``value``) and NAME (``name``); one of NEGATE, NOT and
        LOG2; condition, then, else of IF; at least one of MIN, MAX, AND and OR; two of others.
    """

    op: Operator
    args: tuple[Term, ...] = ()
    value: int = 0
    name: str = ""

    def names(self) -> Iterator[str]:
        """The names in it, each as often as it occurs."""
        if self.op is _NAME:
            yield self.name
        for part in self.args:
            yield from part.names()


def whole(value: int) -> Term:
    """The term of a number."""
    return Term(_NUMBER, value=value)


def named(name: str) -> Term:
    """The term of a name."""
    return Term(_NAME, name=name)


def infix(op: Operator, left: Term, right: Term) -> Term:
    """The term of an operator between two terms."""
    return Term(op, (left, right))


def both(parts: tuple[Term, ...]) -> Term:
    """The conjunction; of nothing it is true."""
    return Term(Operator.AND, parts) if parts else whole(1)


def substituted(term: Term, values: dict[str, Term]) -> Term:
    """The term with names replaced by terms, all at once."""
    if term.args:
        return Term(term.op, tuple(substituted(part, values) for part in term.args))
    return values.get(term.name, term) if term.op is _NAME else term


@dataclass(frozen=True, slots=True)
class Claim:
    """``conclusion`` holds for all whole numbers for which all ``given`` hold.

    size: the name of the number of ranks, at least 1 by ``given``: "mod" is by it alone.
    """

    title: str
    size: str
    given: tuple[Term, ...]
    conclusion: Term

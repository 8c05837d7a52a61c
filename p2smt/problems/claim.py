"""Whole-number terms, and claims about them: the frozen input of a proof for all sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """An expression over whole numbers; truth is 1 or 0.

    op: "int" (``value``), "name" (``name``), "neg", "not", "if" (condition, then, else), "min",
    "max", "log2", or one of the infix operators ``or and < <= > >= == != xor + - * // mod ^``.
    """

    op: str
    args: tuple[Term, ...] = ()
    value: int = 0
    name: str = ""

    def names(self) -> Iterator[str]:
        """The names in it, each as often as it occurs."""
        if self.op == "name":
            yield self.name
        for part in self.args:
            yield from part.names()


def whole(value: int) -> Term:
    """The term of a number."""
    return Term("int", value=value)


def named(name: str) -> Term:
    """The term of a name."""
    return Term("name", name=name)


def infix(op: str, left: Term, right: Term) -> Term:
    """The term of an operator between two terms."""
    return Term(op, (left, right))


def both(parts: tuple[Term, ...]) -> Term:
    """The conjunction; of nothing it is true."""
    return Term("and", parts) if parts else whole(1)


def substituted(term: Term, values: dict[str, Term]) -> Term:
    """The term with names replaced by terms, all at once."""
    if term.op == "name":
        return values.get(term.name, term)
    if not term.args:
        return term
    return Term(term.op, tuple(substituted(part, values) for part in term.args))


@dataclass(frozen=True, slots=True)
class Claim:
    """``conclusion`` holds for all whole numbers for which all ``given`` hold.

    size: the name of the number of ranks, at least 1 by ``given``: "mod" is by it alone.
    """

    title: str
    size: str
    given: tuple[Term, ...]
    conclusion: Term

"""What memory holds, as intervals of ranks: the invariants of loops.

    BUFFER[NAME] is chunk EXPRESSION of ranks FIRST..LAST [when CONDITION]
    BUFFER[NAME] is chunk EXPRESSION of rank EXPRESSION [when CONDITION]

Ranks count round: n - 1 is followed by 0.  Of several lines for a chunk the first whose
condition holds counts; a chunk without one may hold anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.problems.claim import Operator, Term, infix, substituted, whole
from p2smt.schedules.language.expression import TokenStream, take_term
from p2smt.schedules.model import Buffer

_WORDS = frozenset({"is", "chunk", "of", "ranks", "when"})


@dataclass(frozen=True, slots=True)
class Content:
    """The sum of a chunk of ``length`` ranks from ``first`` on; of no rank: anything."""

    first: Term
    length: Term
    chunk: Term

    def replaced(self, values: dict[str, Term]) -> Content:
        """With names replaced."""
        parts = (substituted(part, values) for part in (self.first, self.length, self.chunk))
        return Content(*parts)


NOTHING = Content(whole(0), whole(0), whole(0))


def choose(condition: Term, then: Content, other: Content) -> Content:
    """One content or the other."""
    pairs = ((then.first, other.first), (then.length, other.length), (then.chunk, other.chunk))
    return Content(*(Term(Operator.IF, (condition, a, b)) for a, b in pairs))


@dataclass(frozen=True, slots=True)
class Holds:
    """A line of an invariant, about chunk ``cell`` of a buffer of rank ``rank``."""

    buffer: Buffer
    cell: str
    content: Content
    when: Term


def parse_holds(text: str) -> Holds:
    """The line of an invariant.

    Raises:
        InputError: the text is none.
    """
    tokens = TokenStream(text, _WORDS)
    buffer, cell = _cell(tokens)
    for word in ("is", "chunk"):
        tokens.expect(word)
    chunk = take_term(tokens)
    tokens.expect("of")
    first, length = _ranks(tokens)
    when = take_term(tokens) if tokens.accept("when") else whole(1)
    if tokens.peek():
        raise tokens.error("expected the end", "see docs/schedule-file.md")
    return Holds(buffer, cell, Content(first, length, chunk), when)


def _cell(tokens: TokenStream) -> tuple[Buffer, str]:
    if tokens.peek() not in ("i", "o", "s"):
        raise tokens.error("expected a chunk", "such as i[c]")
    buffer = Buffer(tokens.take())
    tokens.expect("[")
    name = take_term(tokens)
    if name.op is not Operator.NAME or name.name == "rank":
        raise InputError("the chunk of an invariant", "must be a name", "such as i[c]")
    tokens.expect("]")
    return buffer, name.name


def _ranks(tokens: TokenStream) -> tuple[Term, Term]:
    if not tokens.accept("ranks"):
        tokens.expect("rank")
        return take_term(tokens), whole(1)
    first = take_term(tokens)
    tokens.expect("..")
    last = take_term(tokens)
    return first, infix(Operator.PLUS, infix(Operator.MINUS, last, first), whole(1))

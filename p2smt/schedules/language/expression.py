"""Whole-number expressions of schedule files: a small language, parsed and evaluated by itself.

Loosest first: ``a if condition else b``, ``or``, ``and``, ``not``, comparisons, ``xor`` (of
bits), ``+ -``, ``* // mod`` (rounding down), ``-x``, ``^`` (power); ``min(..)``, ``max(..)``,
``log2(..)`` (rounded down) and parentheses.  Truth is 1 or 0.  Nothing else can be named, and
numbers stay below 2^62, so that a file can neither run code nor compute for long.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.problems.race import COMPARISONS, Operator, Term, infix, named, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_TEXT = 20_000
MAX_DEPTH = 60
MAX_OPERATORS = 200
MAX_VALUE = 2**62
_NUMBER, _NAME = Operator.NUMBER, Operator.NAME  # looked up once, as in problems/claim.py
_STRENGTH: dict[str, int] = {
    Operator.OR: 1,
    Operator.AND: 2,
    **dict.fromkeys(COMPARISONS, 4),
    Operator.XOR: 5,
    Operator.PLUS: 6,
    Operator.MINUS: 6,
    Operator.TIMES: 7,
    Operator.FLOOR: 7,
    Operator.MOD: 7,
    Operator.POWER: 9,
}
_NOT, _MINUS = 3, 8
_INFIX = {word: Operator(word) for word in _STRENGTH}
_MANY = (Operator.MIN, Operator.MAX)
_FUNCTIONS = (*_MANY, Operator.LOG2)
_OPERATOR_WORDS = {"or", "and", "not", "xor", "mod", "if", "else", *_FUNCTIONS}
_GOES_ON = {*_STRENGTH, "if"}  # a number before another word is a whole expression
_TOKEN = re.compile(
    r'\s*([0-9]+|[A-Za-z_][A-Za-z0-9_]*|"(?:[^"\\]|\\.)*"|->|\.\.|//|[<>=!]=|[-+*^()\[\]<>.,@=])'
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class TokenStream:
    """The words of a text, taken from the left."""

    def __init__(self, text: str, reserved: frozenset[str] = frozenset()) -> None:
        self.text, self.at, self.depth, self.operators = text, 0, 0, 0
        self.reserved = reserved | _OPERATOR_WORDS
        self.words = [*_split(text), "", ""]

    def peek(self) -> str:
        """The next word; empty at the end."""
        return self.words[self.at]

    def after(self) -> str:
        """The word after the next one; empty at the end."""
        return self.words[self.at + 1]

    def take(self) -> str:
        """The next word, which is taken."""
        word = self.words[self.at]
        self.at += word != ""
        return word

    def accept(self, word: str) -> bool:
        """Take the next word if it is this one."""
        if self.words[self.at] != word:
            return False
        self.at += 1
        return True

    def expect(self, word: str) -> None:
        """Take the next word, which must be this one.

        Raises:
            InputError: it is another one.
        """
        if not self.accept(word):
            raise self.error(f"expected {word!r}")

    def error(self, rule: str, remedy: str = "") -> InputError:
        """An error at the next word."""
        here = f"at {self.peek()[:40]!r}" if self.peek() else "at its end"
        return InputError(f"{self.text[:120]!r} {here}", rule, remedy)


def _split(text: str) -> list[str]:
    if len(text) > MAX_TEXT:
        raise InputError(f"{text[:40]!r}..", f"is longer than {MAX_TEXT} characters", "split it")
    words: list[str] = _TOKEN.findall(text)
    if "".join(words) == "".join(text.split()):  # all of it, so that nothing was passed over
        return words
    words, at, end = [], 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            shown = text[at:].lstrip()[:1]
            raise InputError(f"{text[:120]!r}", f"the character {shown!r} means nothing here")
        words.append(found.group(1))
        at = found.end()
    return words


def parse(text: str) -> Term:
    """The term of a text.

    Raises:
        InputError: the text is no expression.
    """
    tokens = TokenStream(text)
    term = take_term(tokens)
    if tokens.peek():
        raise tokens.error("expected an operator")
    return term


def take_term(tokens: TokenStream) -> Term:
    """The longest expression that comes next.

    Raises:
        InputError: no expression comes next.
    """
    if tokens.words[tokens.at].isdigit() and tokens.words[tokens.at + 1] not in _GOES_ON:
        return _number(tokens)
    tokens.operators *= tokens.depth > 0
    tokens.depth += 1
    if tokens.depth > MAX_DEPTH:
        raise tokens.error(f"is nested deeper than {MAX_DEPTH}", "flatten it")
    term = _infix(tokens, 1)
    if tokens.accept("if"):
        condition = _infix(tokens, 1)
        tokens.expect("else")
        term = Term(Operator.IF, (condition, term, take_term(tokens)))
    tokens.depth -= 1
    return term


def take_atom(tokens: TokenStream) -> Term:
    """A number, a name, a function's value or something in parentheses.

    Raises:
        InputError: something else comes next.
    """
    word = tokens.peek()
    if word.isdigit():
        return _number(tokens)
    if word == "(" or word in _FUNCTIONS:
        return _parentheses(tokens)
    if not _WORD.fullmatch(word) or word in tokens.reserved:
        raise tokens.error("expected a number, a name or '('")
    return named(tokens.take())


def _number(tokens: TokenStream) -> Term:
    if len(tokens.words[tokens.at]) > 18:
        raise tokens.error("the number is too large", "numbers stay below 2^62")
    return whole(int(tokens.take()))


def _parentheses(tokens: TokenStream) -> Term:
    function = tokens.take() if tokens.peek() != "(" else ""
    tokens.expect("(")
    args = [take_term(tokens)]
    while function in _MANY and tokens.accept(","):
        args.append(take_term(tokens))
    tokens.expect(")")
    return Term(Operator(function), tuple(args)) if function else args[0]


def _prefix(tokens: TokenStream) -> Term:
    word, operators = tokens.peek(), 0
    while tokens.peek() == word and word in ("-", "not"):
        tokens.take()
        operators += 1
        if operators > 1:
            raise tokens.error(f"{word!r} is given twice", "use parentheses")
    if word == "-":
        return Term(Operator.NEGATE, (_infix(tokens, _MINUS),))
    if word == "not":
        return Term(Operator.NOT, (_infix(tokens, _NOT),))
    return take_atom(tokens)


def _infix(tokens: TokenStream, least: int) -> Term:
    """Operators that bind at least so strongly; equals from the left, comparisons not in rows."""
    left = _prefix(tokens)
    while (strength := _STRENGTH.get(tokens.peek(), 0)) >= least:
        op = _INFIX[tokens.take()]
        tokens.operators += 1
        if tokens.operators > MAX_OPERATORS:
            raise tokens.error(f"has more than {MAX_OPERATORS} operators", "simplify it")
        left = infix(op, left, _infix(tokens, strength + 1))
        if op in COMPARISONS and tokens.peek() in COMPARISONS:
            raise tokens.error("comparisons cannot be in a row", "join them by 'and'")
    return left


def evaluate(term: Term, values: Mapping[str, int]) -> int:
    """The value of a term where names have these values.

    Raises:
        InputError: a name has no value, a divisor is not positive, an exponent is negative, or
            a value is 2^62 or more.
    """
    if term.op is _NUMBER:
        return term.value
    if term.op is _NAME:
        return _named(term.name, values)
    operation = _OPERATIONS.get(term.op)
    if operation is None:
        return _lazy(term, values)
    result = int(operation(*(evaluate(part, values) for part in term.args)))
    if abs(result) >= MAX_VALUE:
        given = f"a value of {term.op.value!r}"
        raise InputError(given, "is 2^62 or more", "use smaller numbers")
    return result


def _named(name: str, values: Mapping[str, int]) -> int:
    if name not in values:
        known = ", ".join(values) or "none"
        raise InputError(f"name {name[:60]!r}", f"is not known here; known: {known}")
    return values[name]


def _lazy(term: Term, values: Mapping[str, int]) -> int:
    """The value of a term whose parts are looked at as far as needed."""
    match term.op:
        case Operator.IF:
            condition, then, other = term.args
            return evaluate(then if evaluate(condition, values) else other, values)
        case Operator.AND:
            return int(all(evaluate(part, values) for part in term.args))
        case Operator.OR:
            return int(any(evaluate(part, values) for part in term.args))
    raise NotImplementedError(f"the value of {term.op.value!r}")


def _floor(a: int, b: int) -> int:
    if b < 1:
        raise InputError(f"{a} // {b}", "the divisor must be positive")
    return a // b


def _mod(a: int, b: int) -> int:
    if b < 1:
        raise InputError(f"{a} mod {b}", "the divisor must be positive")
    return a % b


def _power(a: int, b: int) -> int:
    if not 0 <= b <= 62:
        raise InputError(f"{a} ^ {b}", "the exponent must be 0 to 62")
    return int(a**b)


def _log2(a: int) -> int:
    if a < 1:
        raise InputError(f"log2({a})", "must be of a positive number")
    return a.bit_length() - 1


_OPERATIONS: Mapping[Operator, Callable[..., int | bool]] = {
    Operator.NEGATE: lambda a: -a,
    Operator.NOT: lambda a: not a,
    Operator.MIN: lambda *all_: min(all_),
    Operator.MAX: lambda *all_: max(all_),
    Operator.LOG2: _log2,
    Operator.PLUS: lambda a, b: a + b,
    Operator.MINUS: lambda a, b: a - b,
    Operator.TIMES: lambda a, b: a * b,
    Operator.FLOOR: _floor,
    Operator.MOD: _mod,
    Operator.XOR: lambda a, b: a ^ b,
    Operator.POWER: _power,
    Operator.LESS: lambda a, b: a < b,
    Operator.AT_MOST: lambda a, b: a <= b,
    Operator.MORE: lambda a, b: a > b,
    Operator.AT_LEAST: lambda a, b: a >= b,
    Operator.EQUAL: lambda a, b: a == b,
    Operator.UNEQUAL: lambda a, b: a != b,
}

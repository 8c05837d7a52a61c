"""Expressions of schedule files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.problems.race import Operator, Term, named, substituted, whole
from p2smt.schedules.language.expression import MAX_DEPTH, MAX_OPERATORS, evaluate, parse

VALUES = {"n": 7, "rank": 3, "t": 2}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(rank - t - 1) mod n", 0),
        ("rank - t - 2 mod n", -1),
        ("(0 - 1) mod n", 6),
        ("-7 // 2", -4),
        ("-2^2", -4),
        ("2^t*3", 12),
        ("rank xor 2^t", 7),
        ("rank xor 1 + 1", 1),
        ("10 - 3 - 2", 5),
        ("100 // 7 // 2", 7),
        ("min(rank, t, n)", 2),
        ("max(rank, t) + log2(9)", 6),
        ("rank < n - 1 and t == 2", 1),
        ("not rank < n or t != 2", 0),
        ("1 or 0 and 0", 1),
        ("10 if rank >= n else 20 if t <= 1 else 30", 30),
        ("n // 0 if 0 else 4", 4),
        ("0 and n // 0", 0),
        ("(1)", 1),
    ],
)
def test_values(text: str, value: int) -> None:
    assert evaluate(parse(text), VALUES) == value


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "expected a number"),
        ("1 +", "expected a number"),
        ("1 2", "expected an operator"),
        ("(1", r"expected '\)'"),
        ("1 < 2 < 3", "cannot be in a row"),
        ("--1", "given twice"),
        ("1 if 2", "expected 'else'"),
        ("min", r"expected '\('"),
        ("log2(1, 2)", r"expected '\)'"),
        ("mod", "expected a number"),
        ("__import__('os')", "means nothing"),
        ("a.b", "expected an operator"),
        ("f(1)", "expected an operator"),
        ("9" * 19, "too large"),
        ("(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1), "nested deeper"),
        ("1" + "+1" * (MAX_OPERATORS + 1), "operators"),
        ("1" * 20_001, "longer than"),
    ],
)
def test_no_expression(text: str, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        parse(text)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("1 // (n - 7)", "divisor"),
        ("1 mod (0 - n)", "divisor"),
        ("2 ^ 63", "exponent"),
        ("2 ^ (0 - 1)", "exponent"),
        ("2 ^ 62", "is 2\\^62 or more"),
        ("(2^60) * 4", "is 2\\^62 or more"),
        ("log2(0)", "positive"),
        ("k + 1", "not known here; known: n, rank, t"),
    ],
)
def test_no_value(text: str, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        evaluate(parse(text), VALUES)


def test_messages_name_the_operator_as_it_is_written() -> None:
    with pytest.raises(InputError, match=r"^a value of '\*': is 2\^62 or more"):
        evaluate(parse("2 ^ 40 * 2 ^ 40"), {})


PARTS = {
    Operator.NUMBER: 0,
    Operator.NAME: 0,
    Operator.NEGATE: 1,
    Operator.NOT: 1,
    Operator.LOG2: 1,
}
PARTS[Operator.IF] = 3


@pytest.mark.parametrize("op", Operator)
def test_every_operator_has_a_value(op: Operator) -> None:
    parts = tuple(whole(number) for number in (5, 3, 2)[: PARTS.get(op, 2)])
    term = Term(op, parts, value=7, name="n")
    assert isinstance(evaluate(term, {"n": 7}), int)
    assert [*term.names()] == ["n"] * (op is Operator.NAME)


def test_names_are_replaced_all_at_once() -> None:
    swapped = substituted(parse("a - 2 * b if a < b else 7"), {"a": named("b"), "b": named("a")})
    assert swapped == parse("b - 2 * a if b < a else 7")


numbers = st.integers(0, 40).map(str)
terms = st.recursive(
    numbers,
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(
        lambda parts: f"({' '.join(parts)})"
    ),
    max_leaves=8,
)


@given(terms, st.sampled_from(["//", "%", "<", "<=", "==", "!=", "^"]), st.integers(1, 30))
def test_agrees_with_python(left: str, op: str, right: int) -> None:
    ours = {"%": "mod", "^": "xor"}.get(op, op)
    wanted = int(eval(f"{left} {op} {right}"))
    assert evaluate(parse(f"{left} {ours} {right}"), {}) == wanted

"""Claims about all whole numbers: those proved hold, those that do not hold are not proved."""

from __future__ import annotations

from itertools import product

import pytest

from p2smt.encodings.claim.z3 import prove_claim
from p2smt.problems.race import Claim
from p2smt.result import SearchLimits, Status
from p2smt.schedules.language.expression import evaluate, parse

LIMITS = SearchLimits()
KNOWN = ("n >= 2", "0 <= r", "r < n", "0 <= t", "t <= n - 2")


def claim(conclusion: str, *given: str) -> Claim:
    """A claim about n ranks, rank r and turn t."""
    return Claim("x", "n", tuple(map(parse, (*KNOWN, *given))), parse(conclusion))


def holds_for_small(made: Claim) -> bool:
    """Whether it holds for n up to 6."""
    ranges = product(range(2, 7), range(-1, 7), range(-1, 7))
    values = [{"n": n, "r": r, "t": t} for n, r, t in ranges]
    allowed = [one for one in values if all(evaluate(term, one) for term in made.given)]
    return all(evaluate(made.conclusion, one) for one in allowed)


@pytest.mark.parametrize(
    "conclusion",
    [
        "((r + 1) mod n - 1) mod n == r",
        "(r + 1) mod n != r",
        "(r - t - 1) mod n < n and (r - t - 1) mod n >= 0",
        "(r - (r - t) mod n) mod n == t",
        "min(r, t) <= max(r, t)",
        "(r if r < t else t) == min(r, t)",
        "not (r < t and t < r)",
        "2 * r < 2 * n or 0",
        "-r <= 0",
        "r // t == r // t",
        "(r == t) + (r != t) == 1",
    ],
)
def test_true_claims_are_proved(conclusion: str) -> None:
    found = prove_claim(
        claim(conclusion, "t >= 1") if "//" in conclusion else claim(conclusion), LIMITS
    )
    assert found.status is Status.COMPLETE
    assert found.value is True


@pytest.mark.parametrize(
    "conclusion",
    [
        "(r + 2) mod n != r",
        "(r + 1) mod n == r + 1",
        "(r - t) mod n == t",
        "r < n - 1",
        "min(r, t) == r",
        "r * t == t * t",
        "(9 * n) mod n == 1",
        "0",
    ],
)
def test_false_claims_are_not(conclusion: str) -> None:
    made = claim(conclusion)
    assert not holds_for_small(made)
    assert prove_claim(made, LIMITS).status is Status.UNKNOWN


def test_what_lies_outside_of_the_encoding_is_unknown() -> None:
    """True, but of turns that the encoding of "mod" says nothing about."""
    made = claim("(9 * n) mod n == 0")
    assert holds_for_small(made)
    assert prove_claim(made, LIMITS).status is Status.UNKNOWN


def test_what_is_given_counts() -> None:
    assert prove_claim(claim("r < n - 1", "r < t"), LIMITS).status is Status.COMPLETE


def test_no_time_is_no_proof() -> None:
    found = prove_claim(claim("(r + 1) mod n != r"), SearchLimits(time_limit_s=0.0))
    assert found.status is Status.UNKNOWN

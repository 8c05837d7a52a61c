"""Rows of placements in a search, where data parallelism may be shards and their copies (HSDP).

Rules and answers have one row of dp (and of ed).  Where copies are searched for, a search divides
it: its outer parts are copies, as :func:`~p2smt.parallelism.folded.with_copies` has it, so of each
number of copies a matrix has one division, or none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import gcd, prod

import numpy as np

from p2smt.parallelism.folded import (
    PP_OUTERMOST,
    WITH_COPIES,
    divided,
    experts_numbered,
    with_copies,
)
from p2smt.parallelism.matrices import PlacementRules, count_matrices, matrices
from p2smt.parallelism.placement import AxisRule, FixedEntry, IntArray, Matrix, Placement
from p2smt.search.placements import obeys
from p2smt.training.search.question import PlanQuestion
from p2smt.training.strategy import AXES

MANY = len(AXES)
"""Rows of a matrix as rules and answers have it; with copies it has one more."""
_COPIED = ("pp", "dpr", "dp", "cp", "tp", "edr", "ed", "ep", "et")
"""The rows of both by the names of requests, which call shards dp and ed."""
_Sizes = tuple[int, ...]


def request_axes(question: PlanQuestion) -> tuple[str, ...]:
    """The rows of a question's placements, attention's first, by the names that requests have."""
    if not question.copied:
        return PP_OUTERMOST.rows if question.model.experts else AXES
    return _COPIED if question.model.experts else _COPIED[: MANY + 1]


def row_names(question: PlanQuestion) -> tuple[str, ...]:
    """The same by the names that users see."""
    if not question.copied:
        return question.axes
    return WITH_COPIES.rows if question.model.experts else WITH_COPIES.attention


def joined_sizes(question: PlanQuestion, sizes: Sequence[int]) -> tuple[_Sizes, int]:
    """Sizes of a question's axes of those of the rows, and how many copies there are."""
    if not question.copied:
        return tuple(sizes), 1
    pp, copies, shards, cp, tp, *theirs = sizes
    experts = (copies * theirs[1], *theirs[2:]) if theirs else ()
    return (pp, copies * shards, cp, tp, *experts), copies


def joined_rows(side: Matrix) -> Matrix:
    """The rows of one side as answers have them: copies and shards are one."""
    if len(side) != MANY + 1:
        return side
    pp, copies, shards, *rest = side
    return (pp, tuple(a * b for a, b in zip(copies, shards, strict=True)), *rest)


def side_matrices(levels: _Sizes, sizes: Sequence[int], rules: PlacementRules) -> IntArray:
    """Every matrix of one side: of five sizes the second is copies, and rules are on four rows."""
    if len(sizes) != MANY + 1:
        return matrices(levels, sizes, rules)
    pp, copies, shards, *rest = sizes
    return divided(matrices(levels, (pp, copies * shards, *rest), rules), copies)


def placed_rows(side: Matrix, copies: int | None) -> Matrix:
    """The rows of one side as a search has them; None: copies are not searched for.

    Raises:
        InputError: they cannot be divided so.
    """
    return side if copies is None else with_copies(Placement(side), copies).matrix


def divides(row: Sequence[int], copies: int) -> bool:
    """Whether the outer parts of a row multiply to so many copies."""
    for part in row:
        taken = gcd(part, copies)
        copies //= taken
        if copies > 1 and taken < part:
            return False
    return copies == 1


def side_rules(rules: PlacementRules, *, of_experts: bool) -> tuple[AxisRule | FixedEntry, ...]:
    """The rules on the rows of one side, by its own rows; those on pp are on both."""
    shift = MANY - 1 if of_experts else 0
    first, end = (MANY, 2 * MANY) if of_experts else (1, MANY)
    return tuple(
        replace(rule, axis=max(0, rule.axis - shift))
        for rule in rules
        if rule.axis == 0 or first <= rule.axis < end
    )


def copied_count(question: PlanQuestion, sizes: _Sizes, copies: int) -> int:
    """How many placements, or pairs, of these sizes of a question's axes can be divided."""
    levels, rules = question.topology.sizes, question.rules
    own = side_rules(rules, of_experts=False)
    attention = _by_stages(levels, sizes[:MANY], own, copies)
    if not question.model.experts:
        return sum(attention.values())
    theirs = side_rules(rules, of_experts=True)
    experts = _by_stages(levels, (sizes[0], *sizes[MANY:]), theirs, copies)
    return sum(many * experts[stages] for stages, many in attention.items())


def numbered_count(question: PlanQuestion, sizes: _Sizes, copies: int) -> int:
    """How many pairs of these sizes there are whose ranks are numbered once, copies divided."""
    levels, own = question.topology.sizes, side_rules(question.rules, of_experts=False)
    theirs = side_rules([rule for rule in question.rules if rule.axis], of_experts=True)
    if prod(levels).bit_count() == 1 and not theirs:  # powers of two are parts of each other
        return count_matrices(levels, MANY, own).get(sizes[:MANY], 0)
    return len(numbered_pairs(matrices(levels, sizes[:MANY], own), sizes, theirs, copies))


def numbered_pairs(
    attention: IntArray, sizes: _Sizes, theirs: PlacementRules, copies: int
) -> IntArray:
    """Which matrices of attention leave experts one under their rules, ranks numbered once."""
    at, experts = experts_numbered(attention, (sizes[0], *sizes[MANY:]))
    kept = [
        n
        for n, one in zip(at.tolist(), experts.tolist(), strict=True)
        if obeys(one, theirs)
        and divides(one[1], copies)
        and divides(attention[n, 1].tolist(), copies)
    ]
    return np.array(kept, dtype=np.int64)


def _by_stages(
    levels: _Sizes, sizes: _Sizes, rules: tuple[AxisRule | FixedEntry, ...], copies: int
) -> Counter[_Sizes]:
    """How many matrices of one side can be divided, by their row of pp.

    None of them is made: rows of data parallelism are, and what each leaves is counted.
    """
    pp, dp, *rest = sizes
    found: Counter[_Sizes] = Counter()
    others = tuple(replace(rule, axis=rule.axis - 2) for rule in rules if rule.axis > 1)
    of_both = tuple(rule for rule in rules if rule.axis < 2)
    left = 1
    for size in rest:
        left *= size
    for both in matrices(levels, (pp, dp, left), of_both).tolist():
        stages, data, over = both
        if divides(data, copies):
            counts = count_matrices(tuple(over), len(rest), others)
            found[tuple(stages)] += counts.get(tuple(rest), 0)
    return found

"""Folded placements from the solvers: checked, ruled by name, and refused where they must be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.api.placements import placements
from p2smt.errors import InputError
from p2smt.parallel_search.parallel_options import Spread
from p2smt.parallelism.folded import PP_OUTERMOST, FoldedPlacement, pair_count
from p2smt.parallelism.placement import AxisRule, parse_rule
from p2smt.problems.placement import PlacementProblem
from p2smt.result import Status
from p2smt.search.conflict import rule_conflict
from p2smt.search.placements import is_answer
from p2smt.solvers.ask import Solver

LEVELS, ATTENTION, EXPERTS = (2, 2, 4), (2, 2, 1, 4), (2, 2, 4, 1)
PROBLEM = PlacementProblem(LEVELS, ATTENTION + EXPERTS[1:], folded=3)
both = pytest.mark.parametrize("solver", list(Solver))


@both
@pytest.mark.parametrize(("text", "count"), [("ep within node", 4), ("tp across node", 13)])
def test_a_rule_holds_in_the_matrix_that_has_the_axis(
    solver: Solver, text: str, count: int
) -> None:
    rule = parse_rule(text, True, PP_OUTERMOST.rows, ("rack", "node", "gpu"))
    found = placements(replace(PROBLEM, rules=(rule,)), solver=solver)
    assert found.status is Status.COMPLETE
    assert len(found.value or ()) == count == pair_count(LEVELS, ATTENTION, EXPERTS, [rule])
    for rows in found.value or ():
        folded = FoldedPlacement.of_rows(rows)
        folded.check(LEVELS, ATTENTION, EXPERTS)
        row = dict(zip(PP_OUTERMOST.rows, folded.rows, strict=True))[text.split()[0]]
        assert (max(row[: rule.level + 1]) == 1) is rule.inside


def test_what_is_no_pair_is_no_answer() -> None:
    (rows, *_) = [rows for rows in placements(PROBLEM).value or () if rows[0] == (2, 1, 1)]
    assert is_answer(PROBLEM, rows)
    assert not is_answer(replace(PROBLEM, excluded=frozenset({rows})), rows)
    swapped = tuple(tuple(reversed(row)) for row in rows)
    assert not is_answer(PROBLEM, (*rows[:4], *swapped[4:]))  # experts on other levels
    assert not is_answer(PROBLEM, (*swapped[:4], *rows[4:]))
    assert not is_answer(PROBLEM, rows[:6])


@both
def test_rules_that_only_the_experts_matrix_breaks(solver: Solver) -> None:
    question = PlacementProblem((2, 4), (1, 2, 1, 4, 2, 4, 1), folded=3)
    rules = (
        AxisRule(1, 0, inside=False),
        AxisRule(4, 0, inside=True),
        AxisRule(5, 0, inside=True),
    )
    assert rule_conflict(replace(question, rules=rules), solver=solver) == rules[1:]
    assert rule_conflict(replace(question, rules=rules[:2]), solver=solver) == ()


def test_sizes_of_each_matrix_multiply_to_the_devices() -> None:
    for axes, folded, words in (
        ((2, 4, 2, 4), 2, r"axes \[2, 2, 4\] with product 16"),
        ((2, 2, 2, 4), 2, r"axes \[2, 2\] with product 4"),
        ((2, 8), 2, "2 folded axes of 2"),
        ((2, 8), -1, "-1 folded axes of 2"),
    ):
        levels = (2, 2, 4) if axes[1] == 8 else (2, 4)
        with pytest.raises(InputError, match=words):
            PlacementProblem(levels, axes, folded=folded)


def test_pairs_are_not_listed_in_parts() -> None:
    with pytest.raises(InputError, match="without excluded or folded ones"):
        placements(PROBLEM, spread=Spread())

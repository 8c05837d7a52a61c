"""Placements listed cube by cube: the same ones, whatever closes the cubes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from p2smt.errors import InputError
from p2smt.parallel_search.parallel_options import Spread
from p2smt.parallel_search.subproblem import (
    OverBudget,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from p2smt.problems.placement import PlacementProblem
from p2smt.result import SearchLimits, Status
from p2smt.search.conflict import list_placements
from p2smt.search.spaces.placement_space import PlacementSpace, list_by_subproblems, placement_space
from p2smt.solvers.ask import Solver
from tests.search.spaces.questions import Quiet, every_matrix, sizes_and_rules
from tests.search.spaces.test_rows import NAMES, Sized

PROBLEM = PlacementProblem((4, 4, 2), (4, 4, 2))


@settings(max_examples=15, deadline=None)
@given(sizes_and_rules())
def test_all_are_listed(sized: Sized) -> None:
    levels, axes, rules = sized
    problem = PlacementProblem(levels, axes, rules)
    found = list_by_subproblems(problem, NAMES[: len(axes)], SearchLimits(), Spread(), Solver.Z3)
    assert found == list_placements(problem, SearchLimits())
    assert list(found.matrices) == sorted(every_matrix(levels, axes, rules))


@pytest.mark.exhaustive
def test_two_processes_list_the_same() -> None:
    found = list_by_subproblems(PROBLEM, NAMES, SearchLimits(), Spread(processes=2))
    assert found == list_placements(PROBLEM, SearchLimits())


def test_no_time_lists_nothing_and_claims_nothing() -> None:
    found = list_by_subproblems(PROBLEM, NAMES, SearchLimits(time_limit_s=0.0), Spread())
    assert (found.status, found.matrices) == (Status.TRUNCATED, ())


def test_a_journal_that_ended_early_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    whole = list_by_subproblems(PROBLEM, NAMES, SearchLimits(), Spread(journal=str(path)))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4]) + lines[4][:9])
    assert list_by_subproblems(PROBLEM, NAMES, SearchLimits(), Spread(journal=str(path))) == whole
    again = [json.loads(line)["record"] for line in path.read_text().splitlines()]
    assert again.count("closed") == len(lines) - 1


def test_a_cube_without_time_is_given_back() -> None:
    space = PlacementSpace(PROBLEM, NAMES)
    task = SubproblemTask(Subproblem(), budget_s=0.0)
    assert isinstance(space.close(task, Quiet()), OverBudget)
    late = space.close(SubproblemTask(Subproblem(), deadline_s=0.0), Quiet())
    assert not isinstance(late, OverBudget)
    assert late.verdict is SubproblemVerdict.UNKNOWN


def test_a_description_makes_the_space_again() -> None:
    space = PlacementSpace(PROBLEM, NAMES, Solver.Z3)
    assert placement_space(json.loads(json.dumps(space.description()))) == space
    with pytest.raises(InputError):
        placement_space({"levels": [4]})


@pytest.mark.parametrize("text", ["", "[[4]]", "[[4, 1, 1],[1,4,1],[1,1,2]]", "[[1,1,4]]", "null"])
def test_what_is_no_member_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        PlacementSpace(PROBLEM, NAMES).member(text)


def test_an_excluded_matrix_is_no_member() -> None:
    matrix = ((4, 1, 1), (1, 4, 1), (1, 1, 2))
    problem = dataclasses.replace(PROBLEM, excluded=frozenset({matrix}))
    with pytest.raises(InputError):
        PlacementSpace(problem, NAMES).member("[[4,1,1],[1,4,1],[1,1,2]]")

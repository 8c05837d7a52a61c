"""Programs that another process found: none is sought again, and each is checked before use."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p2smt.errors import InputError
from p2smt.parallel_search.parallel_options import Spread
from p2smt.parallel_search.shared_table import SharedTable, new_table
from p2smt.parallel_search.subproblem import Closure, Subproblem, SubproblemTask, forget
from p2smt.parallelism.placement import IntArray
from p2smt.plans.solution import RequestAnswer
from p2smt.result import Status
from p2smt.search import one_request
from p2smt.training.search import plan as wide
from p2smt.training.search.branch import StrategyTiming
from p2smt.training.search.plan import plan
from p2smt.training.search.program_timing import ProgramCache
from p2smt.training.search.subproblems import PlanSpace
from tests.search.spaces.questions import Quiet
from tests.training.search.test_subproblems import PROGRAMS, space_of, told

# What a program was checked on.
RUN = "[[4], 4, null, [2, 2], true]"


def closed(space: PlanSpace, cube: Subproblem, table: str | None) -> Closure:
    """A cube closed by a process that knows nothing but what the table says."""
    forget(space)
    ended = space.close(SubproblemTask(cube, top=PROGRAMS.top, table=table), Quiet())
    assert isinstance(ended, Closure)
    return ended


def same(one: Closure, other: Closure) -> bool:
    return (one.verdict, one.bound, one.best) == (other.verdict, other.bound, other.best)


def test_what_was_told_is_not_sought_again(monkeypatch: pytest.MonkeyPatch) -> None:
    space = space_of(PROGRAMS)
    cubes = space.roots()[:4]
    with new_table() as table:
        alone = [closed(space, cube, None) for cube in cubes]
        first = [closed(space, cube, table) for cube in cubes]
        assert all(map(same, alone, first))

        def never(*_: object) -> object:
            raise AssertionError("a program is sought that another process told")

        monkeypatch.setattr(one_request, "best_program", never)
        assert all(map(same, alone, [closed(space, cube, table) for cube in cubes]))
        with pytest.raises(AssertionError, match="another process told"):
            closed(space, cubes[-1], None)


@pytest.mark.parametrize(
    "wrong",
    [
        f'["no program", "optimal", 0.0, {RUN}]',
        f'["all-reduce inside root", "certain", 0.0, {RUN}]',
        f'["all-reduce inside root", "optimal", 1e9, {RUN}]',
        f'["all-reduce inside nowhere", "optimal", 0.0, {RUN}]',
        '["all-reduce inside root", "optimal", 0.0, [[1], 1, null, [2]]]',
        '["all-reduce inside root", "optimal", 0.0, [["1"], "1", null, [2], true]]',
        '["all-reduce inside root", "optimal", 0.0, null]',
        '["all-reduce inside root", "optimal", 0.0]',
        "[]",
        "nonsense",
    ],
)
def test_what_is_no_answer_is_sought(wrong: str, tmp_path: Path) -> None:
    space = space_of(PROGRAMS)
    cube = space.roots()[0]
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.touch()
    alone = closed(space, cube, str(good))
    keys = [json.loads(line)[0] for line in good.read_text().split("\n") if line]
    assert keys
    bad.touch()
    for key in keys:
        SharedTable(str(bad)).put(key, wrong)
    assert same(alone, closed(space, cube, str(bad)))


def with_program(path: Path, space: PlanSpace, program: str, status: str) -> str:
    """What a search tells, with another program in each text, and no bound unless it is best."""
    right = path / "right"
    right.touch()
    closed(space, space.roots()[0], str(right))
    wrong = path / "wrong"
    wrong.touch()
    for line in filter(None, right.read_text().split("\n")):
        key, text = json.loads(line)
        _, _, bound_s, run = json.loads(text)
        least_s = bound_s if status == "optimal" else 0.0
        SharedTable(str(wrong)).put(key, json.dumps([program, status, least_s, run]))
    return str(wrong)


def test_a_wrong_program_that_was_told_gets_into_no_answer(tmp_path: Path) -> None:
    """A cube believes that it was checked; a member with it is made again, and refused."""
    space = space_of(PROGRAMS)
    wrong = with_program(tmp_path, space, "all-gather inside root", "feasible")
    with pytest.raises(InputError, match="is not valid"):
        closed(space, space.roots()[0], wrong)


def test_a_program_that_is_called_the_best_meets_its_bound(tmp_path: Path) -> None:
    space = space_of(PROGRAMS)
    cube = space.roots()[0]
    twice = "all-reduce inside root; all-reduce inside root"
    wrong = with_program(tmp_path, space, twice, "optimal")
    assert same(closed(space, cube, None), closed(space, cube, wrong))


@pytest.mark.parametrize("spread", [Spread(engine="in-process"), Spread(processes=2)])
def test_what_the_answer_lists_is_timed_with_programs_that_were_told(
    spread: Spread, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = plan(PROGRAMS)
    sought: list[int] = []
    retimed = wide.WidePlan._retimed

    def count(mine: wide.WidePlan, table: str | None, found: IntArray) -> StrategyTiming:
        def best(*_: object) -> object:
            sought.append(1)
            raise AssertionError("a program is sought that a worker told")

        monkeypatch.setattr(one_request, "best_program", best)
        return retimed(mine, table, found)

    monkeypatch.setattr(wide.WidePlan, "_retimed", count)
    assert told(plan(PROGRAMS, spread=spread)) == told(alone)
    assert not sought


def test_what_the_end_of_a_search_cut_short_is_not_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not even where the deadline is far: another one would take it for what can be found."""
    space = space_of(PROGRAMS)
    table = tmp_path / "table"
    table.touch()
    best = ProgramCache.seek

    def stood_in(*given: Any) -> RequestAnswer:
        return replace(best(*given), status=Status.UNKNOWN)

    monkeypatch.setattr(ProgramCache, "seek", stood_in)
    closed(space, space.roots()[0], str(table))
    assert not table.read_text()

"""Programs that another process found: none is sought again, and each is checked before use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2smt.search import one_request
from p2smt.skeletons.cube import Closure, Cube
from p2smt.skeletons.shared_table import SharedTable, new_table
from p2smt.skeletons.space import CubeTask
from p2smt.workload.search.cubes import space as spaces
from p2smt.workload.search.cubes.space import PlanSpace
from tests.search.spaces.questions import Quiet
from tests.workload.search.cubes.test_plan_cubes import PROGRAMS, space_of


def closed(space: PlanSpace, cube: Cube, table: str | None) -> Closure:
    """A cube closed by a process that knows nothing but what the table says."""
    spaces._SHELVES.clear()
    ended = space.close(CubeTask(cube, top=PROGRAMS.top, table=table), Quiet())
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
        '["no program", "optimal", 0.0]',
        '["AllReduce(root)", "certain", 0.0]',
        '["AllGather(root)", "optimal", 0.0]',
        '["AllReduce(root)", "optimal", 1e9]',
        '["AllReduce(root)", "optimal"]',
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

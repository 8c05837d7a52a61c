"""Which worker has which cubes, and what becomes of them when it is gone."""

from __future__ import annotations

from typing import cast

import pytest

pytest.importorskip("distributed")

from distributed import Future

from p2smt.parallel_search.engine import NotBegun, WorkerDied
from p2smt.parallel_search.engines.dask import Given, Hands
from p2smt.parallel_search.subproblem import Subproblem, SubproblemTask


def given(number: int, worker: str) -> Given:
    return Given(
        SubproblemTask(Subproblem((str(number),))),
        worker,
        str(number),
        number,
        cast("Future", None),
    )


def hands(*workers: str) -> Hands:
    """Cubes 1, 2, .. at these workers."""
    found = Hands()
    for number, worker in enumerate(workers, start=1):
        found.add(given(number, worker))
    return found


def test_a_cube_comes_back_once() -> None:
    mine = hands("a", "b")
    assert mine.take("2") == given(2, "b")
    assert mine.take("2") is None
    assert [one.number for one in mine] == [1]
    assert mine.counts() == {"a": 1}


def test_what_waits_is_what_was_given_last_to_a_worker_that_has_another() -> None:
    mine = hands("a", "b", "a", "b", "c")
    late = [found.number for found in iter(mine.behind, None) if mine.take(found.key)]
    assert late == [4, 3]
    assert [one.number for one in mine] == [1, 2, 5]


@pytest.mark.parametrize("order", [(1, 3), (3, 1)])
def test_a_worker_that_is_gone_was_at_the_first_of_its_cubes(order: tuple[int, int]) -> None:
    mine = hands("a", "b", "a")
    ended = {}
    for number in order:
        one = mine.take(str(number))
        assert one is not None
        ended[number] = mine.lost(one)
    assert ended == {1: WorkerDied(Subproblem(("1",))), 3: NotBegun(Subproblem(("3",)))}


def test_another_worker_by_the_same_address_has_a_death_of_its_own() -> None:
    mine = hands("a", "a")
    for number in ("1", "2"):
        one = mine.take(number)
        assert one is not None
        mine.lost(one)
    mine.add(given(3, "a"))
    mine.add(given(4, "a"))
    (third, fourth) = (mine.take("3"), mine.take("4"))
    assert third is not None
    assert fourth is not None
    assert mine.lost(third) == WorkerDied(Subproblem(("3",)))
    assert mine.lost(fourth) == NotBegun(Subproblem(("4",)))


def test_one_whose_first_cube_came_back_was_at_the_second() -> None:
    mine = hands("a", "a")
    assert mine.take("1")
    assert mine.take("2") == given(2, "a")
    assert mine.lost(given(2, "a")) == WorkerDied(Subproblem(("2",)))

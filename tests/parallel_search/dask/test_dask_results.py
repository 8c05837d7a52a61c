"""Two ways by which results come back: ahead as an event, and with the future."""

from __future__ import annotations

from typing import Any

import pytest

from p2smt.parallel_search.engines import dask_worker
from p2smt.parallel_search.engines.dask import DaskEngine
from p2smt.parallel_search.engines.dask_worker import result_of
from p2smt.parallel_search.subproblem import Closure, Subproblem, SubproblemTask, SubproblemVerdict
from tests.parallel_search.dask.processes import until
from tests.parallel_search.dask.test_dask_input import threads_as_cluster
from tests.parallel_search.dask.toy import WaitingSpace

SPACE = WaitingSpace(3, 0.0)


def taken(engine: DaskEngine, found: list[Any]) -> list[Any]:
    """What came back so far."""
    found.extend(engine.wait(0.1))
    return found


def closed_by_a_cluster() -> list[Subproblem]:
    """The cubes of a space, as they come back."""
    found: list[Any] = []
    with (
        threads_as_cluster(1) as cluster,
        DaskEngine(SPACE, scheduler=cluster.scheduler_address) as engine,
    ):
        for cube in SPACE.roots():
            engine.submit(SubproblemTask(cube))
        until(lambda: len(taken(engine, found)) >= len(SPACE.roots()), "too few came back")
        assert engine.wait(0.0) == []
    assert {one.verdict for one in found} == {SubproblemVerdict.SOLVED}
    return sorted(one.cube for one in found)


@pytest.mark.parametrize("event", [{"action": "update-graph"}, ("other", "key", b""), (), None])
def test_events_of_dask_s_own_are_no_results(event: object) -> None:
    assert result_of(event) is None


def test_results_come_ahead_of_their_futures(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(*_: object) -> Closure:
        raise AssertionError("it was fetched")

    monkeypatch.setattr(DaskEngine, "_outcome", fetched)
    assert closed_by_a_cluster() == sorted(SPACE.roots())


def test_large_results_come_with_their_futures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_worker, "_MOST_BYTES", 0)
    assert closed_by_a_cluster() == sorted(SPACE.roots())

"""Cubes on Dask workers: closed once each, cut short when told so, given back when workers die."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.parallel_search.engine import Ended, NotBegun, WorkerDied
from p2smt.parallel_search.engines.dask import DaskEngine
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from tests.parallel_search.dask.coordinator import coordinator
from tests.parallel_search.dask.processes import alive, below, listening, until
from tests.parallel_search.dask.toy import WaitingSpace

pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.cluster]

LONG_S = 600.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a user's own cluster: two worker processes that outlive the engines."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as own:
        yield own.scheduler_address


def collected(engine: DaskEngine, count: int) -> list[Ended]:
    """The next so many that come back."""
    found: list[Ended] = []

    def enough() -> bool:
        found.extend(engine.wait(0.2))
        return len(found) >= count

    until(enough, "too few came back")
    return found


def submitted(engine: DaskEngine, space: WaitingSpace) -> Sequence[Subproblem]:
    for cube in space.roots():
        engine.submit(SubproblemTask(cube, seed=7))
    return space.roots()


def worker_pid(closure: Ended) -> int:
    assert isinstance(closure, Closure)
    return int(closure.worker.rpartition(":")[2])


def numbers(ended: Sequence[Ended]) -> list[int]:
    return sorted(int(one.cube.path[0]) for one in ended)


def test_every_cube_comes_back_once_whoever_has_closed_it(cluster: str) -> None:
    space = WaitingSpace(20, 0.01)
    with DaskEngine(space, scheduler=cluster) as engine:
        assert engine.workers == 2
        cubes = submitted(engine, space)
        ended = collected(engine, len(cubes))
        assert engine.wait(0.0) == []
    assert sorted(one.cube for one in ended) == sorted(cubes)
    for one in ended:
        assert isinstance(one, Closure)
        assert (one.verdict, one.seed) == (SubproblemVerdict.SOLVED, 7)
        assert one.seconds >= space.seconds
    assert len({worker_pid(one) for one in ended}) == 2


def test_a_cutoff_reaches_cubes_that_are_being_closed(cluster: str, tmp_path: Path) -> None:
    space = WaitingSpace(2, LONG_S, str(tmp_path))
    with DaskEngine(space, scheduler=cluster) as engine:
        submitted(engine, space)
        until(lambda: len(list(tmp_path.iterdir())) == 2, "the cubes do not begin")
        engine.tell(Member(3, (), "3"))
        ended = collected(engine, 2)
    assert [(one.verdict, one.bound) for one in ended if isinstance(one, Closure)] == [
        (SubproblemVerdict.BOUNDED, 3)
    ] * 2


def test_a_search_that_stops_gets_back_what_is_being_closed(cluster: str, tmp_path: Path) -> None:
    space = WaitingSpace(4, LONG_S, str(tmp_path))
    with DaskEngine(space, scheduler=cluster) as engine:
        submitted(engine, space)
        until(lambda: len(list(tmp_path.iterdir())) == 2, "the cubes do not begin")
        engine.stop()
        ended = collected(engine, 4)
        assert engine.wait(0.0) == []
    assert Counter(type(one) for one in ended) == {Closure: 2, NotBegun: 2}
    begun = [path.name.replace("began", "stopped") for path in tmp_path.glob("began-*")]
    until(lambda: all((tmp_path / name).exists() for name in begun), "a cube goes on")


def test_a_worker_without_cubes_takes_what_waits_behind_another_s(cluster: str) -> None:
    """Four cubes, two at each worker; one closes both of its own, and takes the other's second."""
    space = WaitingSpace(4, 0.0, slow=0)
    with DaskEngine(space, scheduler=cluster) as engine:
        submitted(engine, space)
        ended = collected(engine, 3)
        assert {type(one) for one in ended} == {Closure}
        assert numbers(ended) == [1, 2, 3]
        engine.stop()
        collected(engine, 1)


def test_an_engine_that_is_left_frees_the_workers(cluster: str, tmp_path: Path) -> None:
    space = WaitingSpace(2, LONG_S, str(tmp_path))
    with DaskEngine(space, scheduler=cluster) as engine:
        submitted(engine, space)
        until(lambda: len(list(tmp_path.glob("began-*"))) == 2, "the cubes do not begin")
    until(lambda: len(list(tmp_path.glob("stopped-*"))) == 2, "the cubes do not end")


def test_an_exception_of_a_worker_is_raised_whole(cluster: str) -> None:
    space = WaitingSpace(1, 0.0, bad=0)
    with DaskEngine(space, scheduler=cluster) as engine:
        submitted(engine, space)
        with pytest.raises(InputError, match=r"^cube 0: is bad; take another$"):
            collected(engine, 1)


def test_a_killed_worker_of_the_user_s_cluster_gives_its_cube_back(
    cluster: str, tmp_path: Path
) -> None:
    """Dask's own second attempts (three, by its default) are not taken."""
    space, note = WaitingSpace(1, LONG_S, str(tmp_path)), tmp_path / "began-0"
    with DaskEngine(space, scheduler=cluster) as engine:
        submitted(engine, space)
        until(lambda: note.exists() and note.read_text(), "the cube does not begin")
        pid = int(note.read_text())
        note.unlink()
        os.kill(pid, signal.SIGKILL)
        assert collected(engine, 1) == [WorkerDied(Subproblem(("0",)))]
        until(lambda: engine.wait(0.1) == [] and engine.workers == 2, "no worker comes back")
        assert not list(tmp_path.iterdir())


def test_a_coordinator_that_is_killed_frees_the_workers(cluster: str, tmp_path: Path) -> None:
    with coordinator(tmp_path, "--scheduler", cluster) as killed:
        until(lambda: len(list(tmp_path.glob("began-*"))) == 2, "the cubes do not begin")
        killed.kill()
    until(lambda: len(list(tmp_path.glob("stopped-*"))) == 2, "the cubes do not end")


def test_a_local_cluster_listens_on_the_loopback_address_and_ends_with_its_coordinator(
    tmp_path: Path,
) -> None:
    with coordinator(tmp_path) as killed:
        until(lambda: list(tmp_path.glob("began-*")), "the cube does not begin")
        family = below(killed.pid)
        assert len(family) >= 2
        addresses = listening(family)
        killed.kill()
    assert {address.is_loopback for address in addresses} == {True}
    until(lambda: not alive(family), "a process is left")


@pytest.mark.exhaustive
def test_a_local_cluster_survives_its_workers() -> None:
    space = WaitingSpace(10, 0.02)
    with DaskEngine(space, processes=2) as engine:
        open_subproblems = set(submitted(engine, space))
        (first, *ended) = collected(engine, 1)
        os.kill(worker_pid(first), signal.SIGKILL)
        ended.append(first)
        deaths = 0
        while open_subproblems:
            for one in ended or collected(engine, 1):
                if isinstance(one, WorkerDied | NotBegun):
                    deaths += isinstance(one, WorkerDied)
                    engine.submit(SubproblemTask(one.cube))
                else:
                    open_subproblems.remove(one.cube)
            ended = []
        assert deaths <= 1
        until(lambda: engine.wait(0.1) == [] and engine.workers == 2, "no worker comes back")

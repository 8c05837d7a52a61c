"""Clusters that cannot be used are refused in one clear line, before any cube is handed out."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.parallel_search.engines import dask
from p2smt.parallel_search.engines import dask as dask_cluster
from p2smt.parallel_search.engines import dask_worker as versions
from p2smt.parallel_search.engines.dask import DaskEngine
from p2smt.parallel_search.engines.dask_worker import require_same, worker_versions
from p2smt.parallel_search.journal.record import tool_versions
from tests.parallel_search.dask.processes import until
from tests.parallel_search.dask.toy import WaitingSpace

SPACE = WaitingSpace(1, 0.0)


def refusal(scheduler: str | None) -> str:
    """The one line that an engine is refused with."""
    with pytest.raises(InputError) as caught, DaskEngine(SPACE, scheduler=scheduler):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


@contextmanager
def threads_as_cluster(workers: int, threads: int = 1) -> Iterator[Any]:
    """A cluster whose workers are threads of this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=threads,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
    ) as cluster:
        yield cluster


@pytest.mark.parametrize("processes", [0, -1])
def test_no_processes(processes: int) -> None:
    with pytest.raises(InputError, match=f"^processes {processes}: must be at least 1"):
        DaskEngine(SPACE, processes)


def test_a_local_cluster_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")

    def late(**_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(distributed, "LocalCluster", late)
    words = r"^a Dask cluster of 3 workers does not start on this machine \(TimeoutError\): ask for"
    with pytest.raises(ExecutionError, match=words), DaskEngine(SPACE, 3):
        pass


def test_dask_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(BackendError, match=r"not installed: pip install 'p2smt\[cluster\]'$"),
        DaskEngine(SPACE),
    ):
        pass


def test_an_address_that_is_none() -> None:
    pytest.importorskip("distributed")
    assert refusal("carrier-pigeon://loft").startswith("scheduler carrier-pigeon://loft: ")


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_cluster, "CONNECT_S", 1.0)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
        text = refusal(address)
    assert text.startswith(f"scheduler {address}: does not answer within 1 s (")


def test_a_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_cluster, "CONNECT_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        assert refusal(address).startswith(f"scheduler {address}: does not answer within 1 s (")


def test_a_scheduler_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "CONNECT_S", 1.0)
    with threads_as_cluster(0) as cluster:
        address = cluster.scheduler_address
        assert refusal(address) == (
            f"scheduler {address}: has no worker; start some: `dask worker {address} --nthreads 1`"
        )


def test_a_worker_of_several_threads() -> None:
    with threads_as_cluster(1, threads=3) as cluster:
        text = refusal(cluster.scheduler_address)
    assert text.endswith(
        "with 3 threads: must have 1: a process closes one cube at a time; use --nthreads 1"
    )


def test_a_worker_with_other_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the worker says comes over the wire, before this process thinks that it has another."""
    asked, ours = dask_cluster.versions_of, tool_versions()

    def later(*args: Any) -> Any:
        theirs = asked(*args)
        monkeypatch.setattr(versions, "tool_versions", lambda: {**ours, "ortools": "1"})
        return theirs

    monkeypatch.setattr(dask, "versions_of", later)
    with threads_as_cluster(1) as cluster:
        text = refusal(cluster.scheduler_address)
    assert text.endswith(
        f"has ortools {ours['ortools']}, this process ortools 1; "
        "install the same on every worker, and start the workers again"
    )


@pytest.mark.exhaustive
def test_a_worker_that_joins_later_is_asked_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets no cube if it differs; the search goes on with the others."""
    with (
        threads_as_cluster(1) as cluster,
        DaskEngine(SPACE, scheduler=cluster.scheduler_address) as one,
    ):
        theirs = {**worker_versions(), "python": "2.7.18"}
        monkeypatch.setattr(dask, "versions_of", lambda _, new: dict.fromkeys(new, theirs))
        cluster.scale(2)
        until(lambda: one.wait(0.1) == [] and len(one._checked) == 2, "no worker joins")
        assert one.workers == 1


@pytest.mark.exhaustive
def test_a_scheduler_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "CONNECT_S", 1.0)
    with (
        threads_as_cluster(1) as cluster,
        DaskEngine(SPACE, scheduler=cluster.scheduler_address) as engine,
    ):
        cluster.close()
        with pytest.raises(ExecutionError, match=r"^the scheduler tcp://127.0.0.1:\d+ is gone; "):
            until(lambda: engine.wait(0.2), "nothing is raised")


@pytest.mark.parametrize("name", ["python", "p2smt", "ortools", "z3-solver", "distributed"])
def test_each_version_counts(name: str) -> None:
    require_same("w", worker_versions())
    for other in (
        {**worker_versions(), name: "0"},
        {k: v for k, v in worker_versions().items() if k != name},
    ):
        with pytest.raises(InputError, match=rf"^worker w: has {name} \S+, this process {name} "):
            require_same("w", other)


def test_a_worker_without_p2smt() -> None:
    with pytest.raises(InputError, match=r"cannot tell its versions \(ModuleNotFoundError: no p2"):
        require_same("w", ModuleNotFoundError("no p2smt"))

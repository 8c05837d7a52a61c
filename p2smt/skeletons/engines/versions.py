"""What is asked of workers: one thread, and the versions of their coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from p2smt.errors import InputError
from p2smt.skeletons.versions import ABSENT, tool_versions

CLUSTER = "distributed"


def worker_versions() -> dict[str, str]:
    """Of Python, p2smt and the solvers, and of dask.distributed, which talks to its like only."""
    try:
        return tool_versions() | {CLUSTER: version(CLUSTER)}
    except PackageNotFoundError:
        return tool_versions() | {CLUSTER: ABSENT}


def require_same(worker: str, theirs: Mapping[str, str] | BaseException) -> None:
    """Hold a worker's versions, or why it could not tell them, against those of this process.

    Raises:
        InputError: they differ.
    """
    remedy = "install the same on every worker, and start the workers again"
    if isinstance(theirs, BaseException):
        reason = f"{type(theirs).__name__}: {theirs}"
        raise InputError(f"worker {worker}", f"cannot tell its versions ({reason})", remedy)
    ours = worker_versions()
    names = [name for name in ours if theirs.get(name) != ours[name]]
    if names:
        has = ", ".join(f"{name} {theirs.get(name, ABSENT)}" for name in names)
        here = ", ".join(f"{name} {ours[name]}" for name in names)
        raise InputError(f"worker {worker}", f"has {has}, this process {here}", remedy)


def require_one_thread(worker: str, threads: int) -> None:
    """Hold that a worker closes one cube at a time.

    Raises:
        InputError: it has several threads.
    """
    if threads != 1:
        rule = "must have 1: a process closes one cube at a time"
        raise InputError(f"worker {worker} with {threads} threads", rule, "use --nthreads 1")

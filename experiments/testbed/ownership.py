"""Whose a namespace is: the lock on a cluster's name, and the removal of what stands under it.

A cluster holds the lock file of its name as long as its process lives; the kernel frees it even
after SIGKILL.  A lock file that nobody holds therefore marks leftovers, and a namespace without
a lock file is not ours.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from experiments.testbed.spec import owned
from experiments.testbed.stopping import stops_later
from experiments.testbed.system import COMMAND, Unavailable, call
from p2smt.errors import InputError

NAMESPACES = Path("/run/netns")
"""Where ``ip netns`` keeps its names."""

HOST_NAMES = Path("/etc/netns")
"""Where ``ip netns exec`` finds a node's own files of ``/etc``: a folder for each namespace."""

LOCKS = Path("/run")
_LOCK = re.compile(r"p2smt-testbed-([a-z0-9]{1,12})\.lock")
_KILL_LIMIT_S = 5.0
_CLEAN = f"run: {COMMAND} clean"


def namespaces(name: str) -> list[str]:
    """The namespaces of the cluster of this name that exist now, sorted."""
    with suppress(FileNotFoundError):
        return sorted(n for n in os.listdir(NAMESPACES) if owned(name).fullmatch(n))
    return []


def names_folders(name: str) -> list[Path]:
    """The folders with the names that the nodes of the cluster of this name know, sorted."""
    with suppress(FileNotFoundError):
        return sorted(p for p in HOST_NAMES.iterdir() if owned(name).fullmatch(p.name))
    return []


def lock_file(name: str) -> Path:
    """The file whose lock the cluster of this name holds."""
    return LOCKS / f"p2smt-testbed-{name}.lock"


@contextmanager
def held(name: str) -> Iterator[None]:
    """Own a cluster name in the block; at its end, remove what stands under the name.

    Raises:
        InputError: a running cluster has the name, or leftovers of a killed one stand under it.
    """
    with stops_later():
        release = _release(name, _taken(name))
        atexit.register(release)  # for a second signal in the few instructions around the block
    try:
        yield
    finally:
        release()
        atexit.unregister(release)


def _taken(name: str) -> IO[str]:
    """The lock file of the name, locked."""
    path = lock_file(name)
    file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - closed by _release
    if not _locked(file, path):
        file.close()
        rule = "belongs to a running cluster"
        raise InputError(f"cluster name {name!r}", rule, "choose another name")
    if namespaces(name) or names_folders(name):
        file.close()
        rule = "has leftovers of a run that was killed"
        raise InputError(f"cluster name {name!r}", rule, _CLEAN)
    return file


def _release(name: str, file: IO[str]) -> Callable[[], None]:
    owner, path = os.getpid(), lock_file(name)

    def release() -> None:
        if os.getpid() != owner or file.closed:  # a forked copy of this process; already done
            return
        with stops_later():
            destroy(name)
            path.unlink(missing_ok=True)
            file.close()

    return release


def _locked(file: IO[str], path: Path) -> bool:
    """Whether the lock is taken now, and on the file that the path still names."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def destroy(name: str) -> int:
    """Kill the processes in a cluster's namespaces and remove these; returns their number.

    Interfaces, bridges and shapers lie in the namespaces alone and go with them; the files with the
    nodes' names are removed too.

    Raises:
        Unavailable: a namespace could not be removed.
    """
    found = namespaces(name)
    kill_inside(found)
    for folder in names_folders(name):
        shutil.rmtree(folder, ignore_errors=True)
    for namespace in found:
        with suppress(Unavailable):  # each is tried; what counts is what is left
            call("ip", "netns", "delete", namespace)
    if left := namespaces(name):
        raise Unavailable(", ".join(left), "could not be removed", _CLEAN)
    return len(found)


def kill_inside(found: list[str]) -> None:
    """SIGKILL what runs in these namespaces, but not this process, until nothing does."""
    networks = {_network(NAMESPACES / namespace) for namespace in found} - {None}
    end_s = time.monotonic() + _KILL_LIMIT_S
    while time.monotonic() < end_s:
        inside = [p for p in _processes() if _network(Path(f"/proc/{p}/ns/net")) in networks]
        if not inside:
            return
        for process in inside:
            _kill(process, networks)
        time.sleep(0.01)


def _network(path: Path) -> tuple[int, int] | None:
    """What identifies a network namespace; None for a process that has just ended."""
    with suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def _processes() -> Iterator[int]:
    own = os.getpid()
    return (int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != own)


def _kill(process: int, networks: set[tuple[int, int] | None]) -> None:
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(process)
        try:
            # Looked at again behind the handle: the number may be another process's by now.
            if _network(Path(f"/proc/{process}/ns/net")) in networks:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def clean() -> tuple[list[str], list[str]]:
    """Remove the leftovers of killed runs: the names removed, and those in use and left alone."""
    removed: list[str] = []
    in_use: list[str] = []
    for path in sorted(LOCKS.iterdir()):
        if found := _LOCK.fullmatch(path.name):
            (removed if _cleaned(found[1], path) else in_use).append(found[1])
    return removed, in_use


def _cleaned(name: str, path: Path) -> bool:
    with open(path, "a", encoding="utf-8") as file:
        if not _locked(file, path):
            return False
        destroy(name)
        path.unlink(missing_ok=True)
        return True

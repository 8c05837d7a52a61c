"""The processes that come from one, as /proc has them."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path


def family_of(pid: int) -> set[int]:
    """All processes below one."""
    parents = {int(name): _parent(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    found = {pid}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def helps_python(pid: int) -> bool:
    """Whether it is Python's own tracker of resources, which closes no cubes."""
    return b"resource_tracker" in _read(pid, "cmdline")


def left_after(pids: set[int], seconds: float) -> set[int]:
    """Those that still run after so many seconds, or sooner none."""
    end_s = time.monotonic() + seconds
    while (alive := {pid for pid in pids if _runs(pid)}) and time.monotonic() < end_s:
        time.sleep(0.02)
    return alive


def _parent(pid: int) -> int:
    fields = _fields(pid)
    return int(fields[1]) if fields else 0


def _runs(pid: int) -> bool:
    return _fields(pid)[:1] not in ([], [b"Z"], [b"X"])


def _fields(pid: int) -> list[bytes]:
    """State, parent and so on; none if there is no such process."""
    return _read(pid, "stat").rpartition(b")")[2].split()


def _read(pid: int, name: str) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""

"""Which processes there are below one, and where they listen: from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

LIMIT_S = 300.0
LISTENS = "0A"  # TCP_LISTEN in include/net/tcp_states.h


def until(holds: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    end_s = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end_s, what
        time.sleep(0.02)


def below(pid: int) -> set[int]:
    """The process and all that come from it."""
    parents = dict(_parents())
    found = {pid}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def alive(pids: set[int]) -> set[int]:
    """Those that run; not those that only wait to be collected."""
    return {pid for pid in pids if _state(pid) not in ("", "Z", "X")}


def listening(pids: set[int]) -> set[IPv4Address | IPv6Address]:
    """The addresses at which these processes wait for connections."""
    inodes = {inode for pid in pids for inode in _sockets(pid)}
    return {address for inode, address in _listeners() if inode in inodes}


def _parents() -> Iterator[tuple[int, int]]:
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))):
            yield int(name), int(fields[1])


def _state(pid: int) -> str:
    return next(iter(_stat(pid)), "")


def _stat(pid: int) -> list[str]:
    """State, parent and so on; nothing if there is no such process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def _sockets(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                kind, _, inode = os.readlink(entry.path).partition(":")
                if kind == "socket":
                    yield inode.strip("[]")


def _listeners() -> Iterator[tuple[str, IPv4Address | IPv6Address]]:
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS:
                yield fields[9], _address(fields[1].partition(":")[0])


def _address(text: str) -> IPv4Address | IPv6Address:
    """Words of 32 bits in the machine's byte order, which is that of x86 and ARM."""
    raw = bytes.fromhex(text)
    return ip_address(b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4)))

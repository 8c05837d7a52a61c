"""What workers of one machine tell each other: what one has found, no other one seeks again.

A file of JSON lines that each appends to under a lock, and reads on from where it was.  Who seeks
an entry holds one byte locked that stands for its key: the system unlocks it when the process ends,
however it ends.  A line that a killed process left torn is passed over.

The file has no name where the system allows that: it is opened by way of the process that made it,
and goes with it, however that ends.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import EACCES, EAGAIN, ENOENT, ENOTSUP
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from stat import S_ISREG
from tempfile import gettempdir, mkstemp

_APPENDS = 1 << 60
"""The byte that is locked to append: far behind all text, and behind the bytes of the keys."""
_KEYS = 1 << 48
_NAMELESS = "/proc/"
_PREFIX, _SUFFIX = "p2smt-table-", ".jsonl"
_POLL_S = 0.002
_READ_BYTES = 1 << 20


class SharedTable:
    """Texts by key, found by this process and by others.

    A table whose file cannot be used holds what this process found: that costs time only.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._found: dict[str, str] = {}
        self._at, self._rest = 0, b""
        self._file: int | None = None
        with suppress(OSError):
            self._file = _opened(path) if find_spec("fcntl") else None  # POSIX has it alone

    def get(self, key: str) -> str | None:
        """What is known of a key, by any process."""
        if key not in self._found:
            self._read()
        return self._found.get(key)

    def put(self, key: str, text: str) -> None:
        """Tell what was found of a key."""
        self._found[key] = text
        line = json.dumps([key, text]).encode() + b"\n"
        if self._file is None:
            return
        with suppress(OSError), _locked(self._file, _APPENDS):
            os.write(self._file, b"\n" + line)  # the first ends a line that was left torn

    def waits(self, key: str) -> bool:
        """Whether another process seeks a key now, and has not found it."""
        if self.get(key) is not None:
            return False
        with self.sought(key) as mine:
            return not mine

    @contextmanager
    def sought(self, key: str) -> Iterator[bool]:
        """Whether a key is this process's to seek, now: no other one may begin meanwhile."""
        if self._file is None:
            yield True
            return
        import fcntl

        byte = _byte(key)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except OSError as error:
            yield error.errno not in (EACCES, EAGAIN)  # where nothing can be locked, all may seek
            return
        try:
            yield True
        finally:
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, byte)

    def found_or_sought(
        self, key: str, seek: Callable[[], str | None], wait: Callable[[], None]
    ) -> str | None:
        """The text of a key: another's, or what ``seek`` finds, which the others get to know.

        While another one seeks it ``wait`` is called again and again: it may raise.
        """
        while True:
            known = self.get(key)
            if known is not None:
                return known
            with self.sought(key) as mine:
                if mine:
                    known = self.get(key)  # it may have come just before
                    if known is None and (known := seek()) is not None:
                        self.put(key, known)
                    return known
            wait()
            time.sleep(_POLL_S)

    def close(self) -> None:
        """Read and write no more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read(self) -> None:
        """Take the whole lines that have come since."""
        while self._file is not None:
            try:
                more = os.pread(self._file, _READ_BYTES, self._at)
            except OSError:
                return
            if not more:
                return
            self._at += len(more)
            *lines, self._rest = (self._rest + more).split(b"\n")
            for line in lines:
                self._take(line)

    def _take(self, line: bytes) -> None:
        with suppress(ValueError, TypeError):
            key, text = json.loads(line)
            if isinstance(key, str) and isinstance(text, str):
                self._found.setdefault(key, text)


def _opened(path: str) -> int:
    """The file of a path.

    Raises:
        OSError: there is none, or the process that made it is gone and another one has its number.
    """
    nameless = path.startswith(_NAMELESS)
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
    file = os.open(path, flags if nameless else flags | os.O_NOFOLLOW)
    found = os.fstat(file)
    if nameless and (found.st_nlink or not S_ISREG(found.st_mode)):
        os.close(file)
        raise OSError(ENOENT, os.strerror(ENOENT), path)
    return file


_OPEN: dict[str, SharedTable] = {}
"""The last table that this process used: every cube comes with its path, and it is opened once."""


def shared_table(path: str) -> SharedTable:
    """The table of a path, opened once by this process; another one is closed."""
    if path not in _OPEN:
        for table in _OPEN.values():
            table.close()
        _OPEN.clear()
        _OPEN[path] = SharedTable(path)
    return _OPEN[path]


def _forget(path: str) -> None:
    """Close the table of a path: another one may get the same path later."""
    if table := _OPEN.pop(path, None):
        table.close()


@contextmanager
def new_table() -> Iterator[str | None]:
    """The path of an empty table, which only this user can read; it goes with the block.

    Where it has a name in the folder of temporary files, those are removed that a killed process
    has left there.  None: no file can be made, so there is none.
    """
    with ExitStack() as stack:
        try:
            path = stack.enter_context(_nameless())
        except OSError:
            try:
                path = stack.enter_context(_named())
            except OSError:
                yield None
                return
        try:
            yield path
        finally:
            _forget(path)


@contextmanager
def _nameless() -> Iterator[str]:
    """The path by which processes of this user open a file of this one that has no name.

    Raises:
        OSError: the system, or the folder, has no such files.
    """
    if not hasattr(os, "O_TMPFILE"):
        raise OSError(ENOTSUP, os.strerror(ENOTSUP))
    flags = os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC
    file = os.open(gettempdir(), flags, 0o600)
    try:
        path = f"{_NAMELESS}{os.getpid()}/fd/{file}"
        os.close(_opened(path))
        yield path
    finally:
        os.close(file)


@contextmanager
def _named() -> Iterator[str]:
    """The path of a file of the temporary folder whose name says which process made it."""
    _remove_stale()
    file, path = mkstemp(prefix=f"{_PREFIX}{os.getpid()}-", suffix=_SUFFIX)
    try:
        os.close(file)
        yield path
    finally:
        with suppress(OSError):
            os.unlink(path)


def _remove_stale() -> None:
    """Remove this user's files whose processes are gone.

    One of a process that cannot be seen from here may be among them: whoever has it open goes on
    with it, and whoever has not seeks by himself.
    """
    for path in Path(gettempdir()).glob(f"{_PREFIX}*{_SUFFIX}"):
        number = path.name.removeprefix(_PREFIX).partition("-")[0]
        if re.fullmatch(r"[0-9]{1,9}", number) and not _alive(int(number)):
            with suppress(OSError):
                if path.lstat().st_uid == os.getuid():
                    path.unlink()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # another user's
    return True


@contextmanager
def _locked(file: int, byte: int) -> Iterator[None]:
    import fcntl

    fcntl.lockf(file, fcntl.LOCK_EX, 1, byte)
    try:
        yield
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)


def _byte(key: str) -> int:
    """The byte of a key: two keys that share one wait for each other, which costs time only."""
    return _KEYS + int.from_bytes(blake2b(key.encode(), digest_size=5).digest(), "big")

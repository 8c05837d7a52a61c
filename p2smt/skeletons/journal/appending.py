"""A file that one process at a time appends whole lines to; what is in it stays as it is."""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from errno import EACCES, EAGAIN
from types import TracebackType

from p2smt.errors import InputError, OutOfSpace


class AppendedFile:
    """An open file, locked against every other one who appends.

    The lock (flock) goes with the process: whatever ends it, nothing needs to be cleaned up.
    """

    def __init__(self, path: str) -> None:
        """Open and lock; the file is made if there is none.

        Raises:
            InputError: it cannot be written to, is no regular file, or another process has it.
        """
        self._source = f"journal {path[:200]!r}"
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o666)
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from None
        try:
            self._lock()
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self) -> None:
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            raise InputError(self._source, "is not a regular file", "give another path")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (EAGAIN, EACCES):
                rule = "is written to by another search, which has it locked"
                raise InputError(self._source, rule, "wait for that, or give another") from None
            raise self._unwritable(error) from None
        self._size = os.fstat(self._file).st_size

    def _unwritable(self, error: OSError | ValueError) -> InputError:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return InputError(self._source, f"cannot be written ({reason})", "give another path")

    def read(self) -> bytes:
        """All that is in it."""
        with open(self._file, "rb", closefd=False) as file:
            file.seek(0)
            return file.read()

    def cut(self, size: int) -> None:
        """Keep the first so many bytes only."""
        os.ftruncate(self._file, size)
        self._size = size

    def append(self, line: bytes) -> None:
        """Add a whole line, or nothing; the system has it when this returns.

        Raises:
            OutOfSpace: the disk is full, or a quota or a size limit is reached.
        """
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:])
        except BaseException as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            if isinstance(error, OSError):
                raise self._full(error) from None
            raise
        self._size += len(line)

    def _full(self, error: OSError) -> OutOfSpace:
        reason = error.strerror or str(error)
        text = f"{self._source}: cannot be written any further ({reason}); what is in it stays"
        return OutOfSpace(f"{text} valid: make room and give the same command again")

    def close(self) -> None:
        """Bring it to the disk and unlock it."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise self._full(error) from None
        finally:
            os.close(self._file)

    def __enter__(self) -> AppendedFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

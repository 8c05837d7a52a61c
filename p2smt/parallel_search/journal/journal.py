"""The journal that a search writes while it runs, and goes on from after any stop."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from errno import EACCES, EAGAIN
from types import TracebackType

from p2smt.errors import InputError, OutOfSpace
from p2smt.parallel_search.journal.journal_text import header_line, parse_journal, record_line
from p2smt.parallel_search.journal.record import (
    OWN,
    Continuation,
    JournalHeader,
    JournalRecord,
    JournalText,
    SplitRecord,
)
from p2smt.parallel_search.journal.tree import SubproblemTree
from p2smt.parallel_search.subproblem import Closure, Member, Subproblem


@dataclass(frozen=True, slots=True)
class Resumed:
    """What is on record already: a search goes on from here.

    ``closures`` has each closed cube once; ``members`` are all that were found, best first, each
    made again from its witness.  ``torn`` bytes of a last line that was not whole are dropped.
    """

    closures: tuple[Closure, ...]
    splits: tuple[tuple[Subproblem, tuple[Subproblem, ...]], ...]
    members: tuple[Member, ...]
    torn: int


class Journal:
    """A journal, open and locked from ``with`` on; every record is in the file when it returns.

    ``resumed``: what was in it, None where it is a new one.
    """

    def __init__(
        self, path: str, header: JournalHeader, member: Callable[[str], Member] | None = None
    ) -> None:
        """``member``: how the space makes a member of a witness (:meth:`Space.member`).

        Without it the members on record are not checked.
        """
        self._path, self._header, self._member = path, header, member
        self._file: AppendedFile | None = None
        self._source = f"journal {path[:200]!r}"
        self._started_s, self._torn = 0.0, 0
        self.resumed: Resumed | None = None

    def __enter__(self) -> Journal:
        """Open, lock, and read what is there.

        Raises:
            InputError: it cannot be written to, another search has it open, a line is bad, it is
                of another question, or what is on record contradicts itself.
            OutOfSpace: the disk is full.
        """
        self._file = AppendedFile(self._path)
        try:
            self._begin(self._file)
        except BaseException:
            self._file.close()
            self._file = None
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self, file: AppendedFile) -> None:
        source = self._source
        text = parse_journal(file.read(), source)
        if text.header is not None:
            _refuse_another(text.header, self._header, source)
            self.resumed = _resumed(text.header, text, source, self._member)
        self._torn = text.torn
        if text.torn:
            file.cut(text.size)
        if text.unended:
            file.append(b"\n")
        self._started_s = time.monotonic()
        if text.header is None:
            file.append(header_line(self._header))
        else:
            self._append(Continuation(self._header.options, self._header.versions))

    @property
    def found(self) -> str:
        """What was in the file when it was opened, in words; "": nothing, it is a new journal."""
        torn = f"a last line of {self._torn:,} bytes was torn and is dropped" if self._torn else ""
        if self.resumed is None:
            return f"{self._source}: {torn}" if torn else ""
        closed, members = len(self.resumed.closures), len(self.resumed.members)
        text = f"{self._source}: goes on from {closed:,} closed cubes and {members:,} members"
        return f"{text}; {torn}" if torn else text

    def split(
        self,
        cube: Subproblem,
        children: Sequence[Subproblem],
        seconds: float = 0.0,
        worker: str = "",
    ) -> None:
        """A cube is replaced by all its children; a worker had it for so many seconds."""
        self._append(SplitRecord(cube, tuple(children), seconds, worker))

    def closed(self, closure: Closure) -> None:
        """A cube is closed."""
        self._append(closure)

    def incumbent(self, member: Member) -> None:
        """A member is better than all before."""
        self._append(member)

    def _append(self, record: JournalRecord) -> None:
        if self._file is None:
            raise ValueError("the journal is not open")
        self._file.append(record_line(record, time.monotonic() - self._started_s))


def _refuse_another(there: JournalHeader, wanted: JournalHeader, source: str) -> None:
    """Raise InputError unless the journal is of this question."""
    if there.digest() == wanted.digest():
        return
    theirs, ours = there.question(), wanted.question()
    key = next(name for name in ours if theirs[name] != ours[name])
    shown = "" if isinstance(ours[key], dict | list) else f", {theirs[key]!r}, not {ours[key]!r}"
    rule = f"is of another search: its {key.replace('_', ' ')} is another{shown}"
    if key == f"version of {OWN}":
        raise InputError(source, rule, f"go on with the {OWN} that began it, or give another file")
    raise InputError(source, rule, "give another file")


def _resumed(
    header: JournalHeader, text: JournalText, source: str, make: Callable[[str], Member] | None
) -> Resumed:
    tree = SubproblemTree.of(header.roots, text.entries, header.skeleton)
    if tree.faults:
        raise InputError(source, tree.faults[0], "give another file")
    if make is not None:
        for member in tree.members:
            _check(member, make, source)
    closures, splits = tuple(tree.closed.values()), tuple(tree.splits.items())
    return Resumed(closures, splits, tree.members, text.torn)


def _check(member: Member, make: Callable[[str], Member], source: str) -> None:
    """Raise InputError unless a member on record is what its witness makes."""
    given = f"{source}: the member {member.witness[:200]!r}"
    try:
        again = make(member.witness)
    except InputError as error:
        raise InputError(given, f"is none of this space ({error})", "give another file") from None
    if again != member:
        rule = f"has the value {again.value} and not {member.value}, or another place"
        raise InputError(given, rule, "it was changed: give another file")


# A file that one process at a time appends whole lines to; what is in it stays as it is.


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
            import fcntl
        except ModuleNotFoundError:
            rule = "cannot be locked on this system, which is not POSIX"
            raise InputError(self._source, rule, "search without a journal") from None
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

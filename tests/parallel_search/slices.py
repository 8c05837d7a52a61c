"""A toy space of numbers in slices, whose workers can be made to die, and processes looked at."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from p2smt.errors import InputError
from p2smt.parallel_search.best import digest_of
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    SearchKind,
    Signals,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)

EACH = 5
"""Numbers in a slice."""


@dataclass(frozen=True, slots=True)
class Slices:
    """The numbers 0 to EACH * slices - 1; their values are scattered.

    deadly: (slice, how many workers it kills) by kill -9 from within; ``notes`` is a folder where
    the dead are counted.  broken: a slice that raises InputError.  held: a slice whose first worker
    writes its process id to ``notes``, and goes on only if nobody kills it for ten minutes.
    """

    slices: int = 200
    pause_s: float = 0.05
    asked: SearchKind = SearchKind.ENUMERATE
    deadly: tuple[tuple[int, int], ...] = ()
    notes: str = ""
    broken: int = -1
    held: int = -1

    @property
    def skeleton(self) -> SearchKind:
        return self.asked

    def description(self) -> Mapping[str, object]:
        return {"slices": self.slices, "asked": self.asked.value}

    def roots(self) -> tuple[Subproblem, ...]:
        return tuple(Subproblem((f"{k:03}",)) for k in range(self.slices))

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:  # noqa: ARG002
        return ()

    def bound(self, cube: Subproblem) -> int:  # noqa: ARG002
        return 0

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        number = int(task.cube.path[0])
        self._perhaps_die(number)
        if number == self.broken:
            raise InputError(f"slice {number}", "is broken", "take another")
        if number == self.held:
            self._wait_once()
        started_s = time.monotonic()
        while time.monotonic() - started_s < self.pause_s:
            if signals.stopped():
                return Closure(task.cube, SubproblemVerdict.UNKNOWN)
            time.sleep(min(0.01, self.pause_s))
        return self._closure(task, sorted(self.members_in(number)))

    def member(self, witness: str) -> Member:
        if not 0 <= int(witness) < EACH * self.slices:
            raise InputError(witness, "is no number of the slices")
        return _member(int(witness))

    def members_in(self, number: int) -> list[Member]:
        """The members of a slice."""
        return [_member(n) for n in range(EACH * number, EACH * (number + 1))]

    def members(self) -> list[Member]:
        """All members, in order."""
        return sorted(m for k in range(self.slices) for m in self.members_in(k))

    def _closure(self, task: SubproblemTask, members: list[Member]) -> Closure:
        best = tuple(members[: task.top])
        if self.asked is not SearchKind.ENUMERATE:
            return Closure(task.cube, SubproblemVerdict.SOLVED, members[0].value, best)
        digest = digest_of(m.witness for m in members)
        return Closure(task.cube, SubproblemVerdict.LISTED, None, best, count=EACH, digest=digest)

    @property
    def holder(self) -> Path:
        """Where the worker of the held slice writes its process id."""
        return Path(self.notes) / "holder"

    def _wait_once(self) -> None:
        if not self.holder.exists():
            self.holder.with_suffix(".new").write_text(f"{os.getpid()}")
            self.holder.with_suffix(".new").replace(self.holder)
            time.sleep(600)

    def _perhaps_die(self, number: int) -> None:
        for deadly, times in self.deadly:
            marks = Path(self.notes) / f"{number}"
            dead = len(marks.read_text()) if marks.exists() else 0
            if number == deadly and dead < times:
                marks.write_text("x" * (dead + 1))
                os.kill(os.getpid(), signal.SIGKILL)


def _member(number: int) -> Member:
    return Member(1 + number * 7919 % 1009, (number,), str(number))


def workers_of(pid: int) -> list[int]:
    """Worker processes of a process that have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (folder / "cmdline").read_bytes()
        except OSError:  # it ended
            continue
        if int(parent) == pid and state != "Z" and b"spawn_main" in command:
            found.append(int(folder.name))
    return found


def alive(pid: int) -> bool:
    """Whether a process runs: neither gone, nor dead and waiting for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def marked(text: str) -> list[int]:
    """Running processes with this text in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:  # it ended, or is someone else's
            continue
        if text.encode() in environment and alive(int(folder.name)):
            found.append(int(folder.name))
    return found

"""A space whose cubes take a given time, and note what they hear."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from p2smt.errors import InputError
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

PAUSE_S = 0.005

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class WaitingSpace:
    """``cubes`` cubes of ``seconds`` each; the best member of one is its number.

    A cube that begins, or is told to stop, writes its process into the folder ``notes``, if one is
    given; one that hears a cutoff ends at once.  The cube ``bad`` raises InputError, and ``slow``
    takes an hour.
    """

    cubes: int
    seconds: float
    notes: str = ""
    bad: int = -1
    slow: int = -1

    @property
    def skeleton(self) -> SearchKind:
        return SearchKind.OPTIMISE

    def description(self) -> Mapping[str, object]:
        return {"cubes": self.cubes, "seconds": self.seconds}

    def roots(self) -> tuple[Subproblem, ...]:
        return tuple(Subproblem((str(number),)) for number in range(self.cubes))

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:  # noqa: ARG002 (the protocol's)
        return ()

    def bound(self, cube: Subproblem) -> int:  # noqa: ARG002 (the protocol's)
        return 0

    def member(self, witness: str) -> Member:
        return Member(int(witness), (), witness)

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        (name,) = task.cube.path
        if int(name) == self.bad:
            raise InputError(f"cube {name}", "is bad", "take another")
        end_s = time.monotonic() + (_HOUR_S if int(name) == self.slow else self.seconds)
        self._note(f"began-{name}")
        while time.monotonic() < end_s and signals.cutoff() is None:
            if signals.stopped():
                self._note(f"stopped-{name}")
                return Closure(task.cube, SubproblemVerdict.UNKNOWN, 0)
            time.sleep(PAUSE_S)
        heard = signals.cutoff()
        if heard is not None:
            return Closure(task.cube, SubproblemVerdict.BOUNDED, heard.value)
        return Closure(task.cube, SubproblemVerdict.SOLVED, int(name), (self.member(name),))

    def _note(self, text: str) -> None:
        if self.notes:
            (Path(self.notes) / text).write_text(str(os.getpid()))

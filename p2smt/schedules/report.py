"""The result of checking a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p2smt.schedules.violation import Violation


class Verdict(StrEnum):
    """What is known about all interleavings together."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Report:
    """What the check of a schedule found.

    verdict: about every interleaving with connections of depth ``fifo_depth``.
    violations: empty if and only if the schedule is not invalid.
    warnings: what does not make it wrong: limits of the runtime, harmless races.
    races: cells whose accesses are not all ordered; ``harmless``: proved to do no harm.
    min_depth: the smallest connection depth at which every step gets its turn; None if there is
        none, or if it was not looked for.
    reason: why the verdict is unknown.
    """

    verdict: Verdict
    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    fifo_depth: int = 8
    min_depth: int | None = None
    races: int = 0
    harmless: bool = False
    reason: str = ""

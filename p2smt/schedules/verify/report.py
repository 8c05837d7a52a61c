"""What can be wrong with a schedule, and the report of a check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p2smt.schedules.model import Schedule


class Kind(StrEnum):
    """Kinds of violations of a schedule."""

    DOUBLED = "doubled-contribution"
    MISSING = "missing-contribution"
    FOREIGN = "foreign-contribution"
    UNINITIALISED = "uninitialised-data"
    STALE = "stale-data"
    UNMATCHED = "unmatched-message"
    COUNT = "count-mismatch"
    PEER = "wrong-peer"
    BOUNDS = "out-of-bounds"
    UNMATCHED_SIGNAL = "unmatched-signal"
    DEPENDENCY = "unknown-dependency"
    NEVER_ANNOUNCED = "never-announced"
    DEADLOCK = "deadlock"
    RACE = "race"
    RULE = "broken-rule"


def times(count: int) -> str:
    """How often, in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong.

    steps: numbers (positions in Schedule.steps) of the steps involved, the culprit first.
    rank, chunk: the output chunk that is wrong, where one is.
    order: an interleaving that shows it, as step numbers; empty if every interleaving does.
        A step whose reads and writes are apart in it is named once for each part.
    parts: for each entry of ``order``, which part of the step it is; empty for whole steps.
    shortest: whether no shorter interleaving shows it (None: not looked for).
    message: in words, for people.
    details: further lines for people: the way of each contribution.
    """

    kind: Kind
    message: str
    steps: tuple[int, ...] = ()
    rank: int | None = None
    chunk: int | None = None
    order: tuple[int, ...] = ()
    parts: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    shortest: bool | None = None


OWN_WORDS = "packets publish their own words only"
"""The memory rule of packets (docs/schedules.md)."""


def memory_rule_of(schedule: Schedule) -> str:
    """The memory rule that a schedule's verdict rests on."""
    spans = (span for step in schedule.steps for span in (*step.reads, *step.writes))
    return OWN_WORDS if any(span.packet for span in spans) else ""


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
    warnings: what does not make it wrong: harmless races, messages that nobody needs.
    races: cells whose accesses are not all ordered; ``harmless``: proved to do no harm.
    min_depth: the smallest connection depth at which every step gets its turn; None if there is
        none, or if it was not looked for.
    unused: steps whose messages carry data that no output needs, once for each message; None: not
        looked for, as the schedule is not proved valid, or whole steps never get their turn.
    reason: why the verdict is unknown.
    memory_rule: by which the order of data was judged where packets are used; else empty.
    """

    verdict: Verdict
    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    fifo_depth: int = 8
    min_depth: int | None = None
    races: int = 0
    harmless: bool = False
    unused: tuple[int, ...] | None = None
    reason: str = ""
    memory_rule: str = ""

"""What a synthesis found, in words that keep apart what is proved and what is not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from p2smt.problems.sums import ScheduleClass, SumSchedule
from p2smt.result import Status
from p2smt.schedules.certificate.certificate import BoundKind
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.report import Report
from p2smt.search.schedule.bounds.rate import RateBound
from p2smt.search.schedule.synthesis.question import ScheduleSize, SynthesisSetting


class Answer(StrEnum):
    """What became of a question.

    No schedule: none at all, by a bound or by a search that is complete in the class it names.
    No symmetric schedule: none that any of the groups tried takes to itself; without symmetry it is
    open.
    """

    SCHEDULE = "schedule"
    NO_SCHEDULE = "no schedule"
    NO_SYMMETRIC = "no symmetric schedule"
    UNKNOWN = "unknown"


LETTERS = {
    ScheduleClass.TREES: "T",
    ScheduleClass.ACCUMULATORS: "A",
    ScheduleClass.PARTIAL_SUMS: "G",
}
"""The classes of all-reduces by the letters that answers name them with."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A search for schedules of a class that a group takes to itself; ``order``: of the group.

    ``status``: FEASIBLE, INFEASIBLE (none with this group in this class) or UNKNOWN, with ``why``.
    ``family``: None where chunks are only copied.
    """

    order: int
    family: ScheduleClass | None
    status: Status
    wall_s: float
    why: str = ""

    @property
    def complete(self) -> bool:
        """Whether all schedules with the group that are asked about are in the class."""
        return self.family in (None, ScheduleClass.PARTIAL_SUMS)

    @property
    def refutes_all(self) -> bool:
        """Whether it proves that there is no schedule."""
        return self.complete and self.order == 1 and self.status is Status.INFEASIBLE


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The answer to one question, and what it rests on.

    ``reason``: the answer in the words of Answer, with what proves it; ``detail``: more about it.
    ``bound``: rounds a chunk that every schedule in so many steps needs, whatever its chunks; of
    kind DISTANCE, the steps that there are in every schedule; None: it was stopped before.
    ``sums``, ``schedule`` and ``report``: the messages, the same as a schedule, and its check in
    every interleaving.  ``family`` and ``group_order``: the class and the group of what was found.
    """

    setting: SynthesisSetting
    size: ScheduleSize
    status: Answer
    reason: str
    detail: str = ""
    sums: SumSchedule | None = None
    schedule: Schedule | None = None
    report: Report | None = None
    bound: RateBound | None = None
    family: ScheduleClass | None = None
    group_order: int | None = None
    attempts: tuple[Attempt, ...] = ()
    wall_s: float = 0.0
    interrupted: bool = False

    @property
    def optimal(self) -> bool:
        """Whether no schedule in so many steps has fewer rounds a chunk: its bound says so."""
        return (
            self.sums is not None
            and self.bound is not None
            and self.bound.kind is not BoundKind.DISTANCE
            and self.rate == self.bound.value
        )

    @property
    def rate(self) -> Fraction:
        """Rounds a chunk."""
        return self.size.rate

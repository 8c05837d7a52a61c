"""What becomes of a plan's request when it is exported to files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p2smt.schedules.lower.together import GroupSchedule


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file to be written, and the schedule in it: of one group, counted from 1, or of all.

    steps: how many the file has, as they are read back.
    """

    path: str
    text: str
    steps: int
    group: int | None
    content: GroupSchedule


@dataclass(frozen=True, slots=True)
class PlanExport:
    """What is exported of a request.

    groups: how many it has.
    means: the algorithm and the protocol of all steps; ``plan_means``: those of the plan's steps.
    plan_s, exported_s: one execution by all groups, as the plan says and as predicted for the
        schedules; None: they are too large to be priced.
    unstated: levels whose bandwidth nobody stated; where there are any, both times are None.
    by_rank: the devices of groups are told as the ranks of a run, as the plan's hosts have them.
    """

    files: tuple[ExportedFile, ...]
    groups: int
    means: str
    plan_means: tuple[str, ...]
    plan_s: float | None
    exported_s: float | None
    by_rank: bool = False
    unstated: tuple[str, ...] = ()

"""The schedule that messages make, replayed before and checked after."""

from __future__ import annotations

from p2smt.errors import EncodingBug
from p2smt.problems.sums import SumSchedule
from p2smt.schedules.lower.chunked.lowered import lowered
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.report import Report, Verdict
from p2smt.schedules.verify.verify import verify
from p2smt.search.schedule.sums_replay import broken_sum_rule, sum_demands
from p2smt.search.schedule.synthesis.question import (
    ScheduleSize,
    SynthesisSetting,
    shown_collective,
)


def lower(
    setting: SynthesisSetting, size: ScheduleSize, sums: SumSchedule
) -> tuple[Schedule, Report]:
    """The messages as thread blocks, and their check in every interleaving.

    Raises:
        EncodingBug: the messages break a rule of fabric, steps or collective, or are wrong in some
            interleaving.
    """
    if broken := broken_synthesis(setting, size, sums):
        raise EncodingBug(broken, (setting, size), sums)
    schedule = lowered(
        sums,
        edges=setting.edges,
        ranks=setting.fabric.ranks,
        collective=setting.collective,
        chunks=size.chunks,
        root=setting.root,
        name=schedule_name(setting, size),
    )
    report = verify(schedule)
    if report.verdict is Verdict.INVALID:
        reason = f"the schedule is wrong: {report.violations[0].message}"
        raise EncodingBug(reason, (setting, size), sums)
    return schedule, report


def broken_synthesis(
    setting: SynthesisSetting, size: ScheduleSize, sums: SumSchedule
) -> str | None:
    """The first rule of fabric, steps, size or collective that messages break; None: none."""
    ranks, messages = setting.fabric.ranks, setting.messages
    demands = sum_demands(setting.collective, ranks, size.chunks, setting.root)
    capacities = setting.fabric.bandwidths
    steps, rounds = len(sums.steps), sum(step.rounds for step in sums.steps)
    if (steps, rounds) != (size.steps, size.rounds):
        return f"it has {steps} steps and {rounds} rounds"
    return broken_sum_rule(sums, setting.edges, capacities, demands, messages)


def schedule_name(setting: SynthesisSetting, size: ScheduleSize) -> str:
    """Such as ``all-gather-dgx1-3-7-6``."""
    numbers = f"{size.steps}-{size.rounds}-{size.chunks}"
    fabric = "".join(c if c.isalnum() or c in "-_." else "-" for c in setting.fabric.name[:60])
    return f"{shown_collective(setting.collective)}-{fabric}-{numbers}"

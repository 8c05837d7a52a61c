"""What `convert` says of the schedules that it made of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.report.orders.unstated import no_time_line
from p2smt.units import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from p2smt.schedules.lower.exported import ExportedFile, PlanExport

_SHOWN = 16
_FAR = 1.05


def export_lines(made: PlanExport) -> Iterator[str]:
    """A line for each file, and one for the time of all groups as exported."""
    for file in made.files:
        yield _file(file, made.groups, made.by_rank)
    yield _times(made)


def _file(file: ExportedFile, groups: int, by_rank: bool) -> str:
    schedule = file.content.schedule
    text = f"{file.steps} steps of {schedule.ranks} ranks written to {file.path}"
    if file.group is None:
        what = "rank" if by_rank else "device"
        of_plan = " of the plan" if by_rank else ""
        return f"{text}: all {groups} groups, rank r is {what} r{of_plan}"
    devices = file.content.devices
    shown = " ".join(str(device) for device in devices[:_SHOWN])
    more = f" .. {devices[-1]}" if len(devices) > _SHOWN else ""
    what = "the plan's" if by_rank else "devices"
    return f"{text}: group {file.group} of {groups}, its ranks are {what} {shown}{more}"


def _times(made: PlanExport) -> str:
    """How the time compares with the plan's, and what differs if it is longer."""
    if made.plan_s is None:
        return no_time_line(made.unstated)
    plan = f"predicted: {format_time(made.plan_s)} in the plan"
    if made.exported_s is None:
        return f"{plan}; not predicted as exported ({made.means}): too many steps"
    exported = f"{format_time(made.exported_s)} as exported ({made.means})"
    times = made.exported_s / made.plan_s if made.plan_s else 1.0
    text = f"{plan}, {exported}: {times:.2f} times as long"
    return f"{text}; the plan counts on {', '.join(made.plan_means)}" if times > _FAR else text

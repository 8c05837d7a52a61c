"""`p2smt cost a.xml b.xml -t TOPOLOGY --sizes ..`: schedules beside the library's own choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from p2smt.schedules.model import Schedule


def are_schedules(paths: Sequence[str]) -> bool:
    """Whether files are schedules, all of them or the first of several."""
    from p2smt.interop.schedule_files import schedule_text

    return any(schedule_text(path) is not None for path in paths)


def refuse_beside_schedules(others: Mapping[str, object]) -> None:
    """What has no say where schedules are priced.

    Raises:
        InputError: one of these options, by name, is given.
    """
    from p2smt.errors import InputError

    for name, value in others.items():
        if value is not None:
            raise InputError(name, "does not go with schedules", "drop it")


def cost_schedules(
    paths: Sequence[str],
    cluster: o.ClusterOptions,
    library: Text,
    sizes: str,
    plot: Text,
    shown: o.ShownOptions,
) -> int:
    """The predicted times of schedules over payloads, by the best protocol, a call's cost included.

    Raises:
        InputError: a file is no schedule, they are of several collectives, or do not fit the
            topology; a payload or the plot's name is not understood.
    """
    from p2smt.cli.output import tell_tables, writable
    from p2smt.cli.schedules.size_options import priced_under
    from p2smt.report.costs.schedule_times import (
        TimedSchedules,
        timed_data,
        timed_tables,
        write_timed_plot,
    )
    from p2smt.report.costs.sweep import plot_format
    from p2smt.report.text import printable
    from p2smt.units import parse_sizes

    if plot is not None:
        writable(plot)
        plot_format(plot)
        o.check_kept(plot, *paths, cluster.topology, library)
    payloads, schedules = parse_sizes(sizes, "--sizes"), _read(paths)
    topology = priced_under(cluster.topology, library, cluster.use)
    found = TimedSchedules.of(schedules, topology, payloads)
    if plot is not None:
        write_timed_plot(found, plot)
    lines = [] if plot is None else [f"\nplot written to {printable(plot)}"]
    tell_tables(
        shown.json,
        lambda: timed_data(found),
        lambda: timed_tables(found),
        lines,
        details=shown.details,
    )
    return 0


def _read(paths: Sequence[str]) -> dict[str, Schedule]:
    """The schedules by the names of their files, all of one collective.

    Raises:
        InputError: one is none, is named twice, or is of another collective than the first.
    """
    from p2smt.errors import InputError
    from p2smt.interop.reading import AS_IT_STANDS
    from p2smt.interop.schedule_files import read_schedule, require_json, schedule_text

    found: dict[str, Schedule] = {}
    for path in paths:
        text = schedule_text(path)
        if text is None:
            require_json(path)
            raise InputError(f"file {path[:200]!r}", "is no schedule", "name schedules alone")
        if path in found:
            raise InputError(f"file {path[:200]!r}", "is named twice", "name it once")
        found[path] = read_schedule(text, path, AS_IT_STANDS)
    kinds = {path: one.contract.collective for path, one in found.items()}
    first, kind = next(iter(kinds.items()))
    for path, other in kinds.items():
        if other != kind:
            rule = f"is a schedule of {other}, and {first[:60]} one of {kind}"
            raise InputError(f"file {path[:200]!r}", rule, "compare schedules of one collective")
    return found

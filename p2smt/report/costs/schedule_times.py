"""Schedules over payloads beside what a library runs itself: tables, data and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import RenderableType

from p2smt.cluster.topology import Topology
from p2smt.report.costs.sweep import write_curves_plot
from p2smt.report.outputs.costs import CostSchedulesOutput, ScheduleTime
from p2smt.report.outputs.synthesize import FasterFrom
from p2smt.report.schedules.size_data import run_words
from p2smt.report.tables import table
from p2smt.report.text import printable
from p2smt.schedules.cost.against import (
    LEFT_OUT,
    FastestRun,
    LibraryPrices,
    TimedCurve,
    TimedWay,
    fastest_runs,
)
from p2smt.schedules.model import Schedule
from p2smt.units import counted, format_bytes, format_time


@dataclass(frozen=True, slots=True)
class TimedSchedules:
    """Times of files, and of the library's choice last, at these payloads; who is faster where."""

    prices: LibraryPrices
    payloads: tuple[int, ...]
    curves: tuple[TimedCurve, ...]
    runs: tuple[FastestRun, ...]

    @staticmethod
    def of(
        schedules: Mapping[str, Schedule], topology: Topology, payloads: Sequence[int]
    ) -> TimedSchedules:
        """Of schedules of one collective by the names of their files.

        Raises:
            InputError: one does not fit the topology, or does not run to its end.
        """
        prices = LibraryPrices(topology, next(iter(schedules.values())).contract.collective)

        def curve(name: str, one: Schedule) -> TimedCurve:
            return TimedCurve(name, lambda payload: prices.of(one, payload))

        curves = [curve(name, one) for name, one in schedules.items()]
        if prices.name is not None:
            own = TimedCurve(prices.name, lambda n: prices.own(n) or TimedWay(0.0, ""))
            curves.append(own)
        return TimedSchedules(
            prices, tuple(payloads), tuple(curves), fastest_runs(curves, payloads)
        )

    @property
    def names(self) -> list[str]:
        """Of the curves."""
        return [printable(one.name) for one in self.curves]


def timed_data(found: TimedSchedules) -> CostSchedulesOutput:
    """The times as data: a row for each payload and file."""
    return CostSchedulesOutput(
        topology=found.prices.topology.name,
        library=found.prices.name,
        collective=found.prices.collective,
        sizes=[
            ScheduleTime(
                size_bytes=payload,
                name=one.name,
                seconds=one.at(payload).seconds,
                way=one.at(payload).way,
            )
            for payload in found.payloads
            for one in found.curves
        ],
        faster=[
            FasterFrom(from_bytes=one.low, name=found.curves[one.curve].name) for one in found.runs
        ],
        left_out=LEFT_OUT,
    )


def timed_tables(found: TimedSchedules) -> Iterator[RenderableType]:
    """Who is faster where, then the times."""
    yield f"by prices: {run_words(found.runs, found.names)}"
    columns = [">payload", *(f">{name}" for name in found.names), "by"]
    rows = []
    for payload in found.payloads:
        times = [one.at(payload) for one in found.curves]
        best = min(range(len(times)), key=lambda n: times[n].seconds)
        ways = " ".join(filter(None, (found.names[best], times[best].way)))
        rows.append([format_bytes(payload), *(format_time(one.seconds) for one in times), ways])
    yield from ("", table(_title(found), columns, rows, ["by"]), "")
    if found.prices.name is not None:
        call_s = found.prices.call_s(found.payloads[0])
        yield f"prices: best protocol, and {format_time(call_s)} of a call of {found.prices.name}"
    yield LEFT_OUT


def write_timed_plot(found: TimedSchedules, path: str) -> None:
    """Draw the times.

    Raises:
        InputError: the name has none of the known endings, or it cannot be written.
        BackendError: matplotlib is not installed.
    """
    curves = {one.name: [one.at(n).seconds for n in found.payloads] for one in found.curves}
    write_curves_plot(found.payloads, curves, _title(found), path)


def _title(found: TimedSchedules) -> str:
    topology = found.prices.topology
    what = f"{found.prices.collective} on {printable(topology.name)}"
    return f"{what}, {counted(topology.devices, 'device')}"

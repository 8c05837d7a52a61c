"""Times over payloads, also of schedules beside what a library runs: tables, data, a picture."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from p2smt.cluster.topology import Topology
from p2smt.collectives.dispatch import Dispatch
from p2smt.collectives.names import RequestKind
from p2smt.cost.requested_algorithms import running
from p2smt.errors import BackendError, InputError
from p2smt.files.write import write_atomically
from p2smt.plans.given_program import Curve, Sweep
from p2smt.plans.ranges import range_of_request
from p2smt.plans.solution import RequestAnswer, in_chunks
from p2smt.report.costs.request_table import RANGE, how_of, range_cell
from p2smt.report.outputs.costs import CostSchedulesOutput, ScheduleTime
from p2smt.report.outputs.synthesize import FasterFrom
from p2smt.report.schedules.size_data import run_words
from p2smt.report.tables import gap, letters, table
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
from p2smt.units import counted, format_bandwidth, format_bytes, format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


# What `cost --sizes` tells a person: a table of times over sizes for each request.


def curve_names(curves: Sequence[Curve]) -> list[str]:
    """``single collective``, then a letter for each program."""
    return ["single collective", *(letters(n) for n in range(len(curves) - 1))]


def sweep_tables(sweep: Sweep) -> Iterator[RenderableType]:
    """A table for each request; with programs also which is the fastest where."""
    for request in range(len(sweep.problem.requests)):
        curves = sweep.curves(request)
        yield from ("",) * (request > 0)
        yield request_sweep(sweep, request)
        if len(curves) > 1:
            yield from ("", fastest_line(sweep, request, curves))


def request_sweep(sweep: Sweep, request: int, *, short: bool = False) -> RenderableType:
    """The times of one request; of several programs with what their letters are.

    ``short``: on narrow screens without bounds, or ranges.
    """
    curves = sweep.curves(request)
    title = f"{sweep.problem.requests[request].name}: time of one execution"
    if len(curves) == 1:
        return _alone(title, sweep, curves[0], short)
    legend = zip(curve_names(curves)[1:], curves[1:], strict=True)
    programs = table("programs", ["", ""], [[name, str(curve.program)] for name, curve in legend])
    return Group(_compared(title, sweep, curves, short), "", programs)


def _range(sweep: Sweep, answers: Sequence[RequestAnswer], n: int) -> str:
    """The range of a curve at its n-th size; empty: a single collective that nobody asked for."""
    if not answers:
        return ""
    topology = running(sweep.problem.topology, sweep.problem.algorithms)
    return range_cell(range_of_request(topology, answers[n]).whole)


def _alone(title: str, sweep: Sweep, curve: Curve, short: bool) -> RenderableType:
    rows = [
        [
            format_bytes(answer.request.payload_bytes),
            format_time(answer.seconds),
            format_bandwidth(bus_bandwidth(answer)) if answer.seconds else "-",
            " ".join(dict.fromkeys(how_of(step) for step in answer.steps)),
            format_time(answer.physical_bound_s),
            gap(answer.seconds, answer.physical_bound_s),
            _range(sweep, curve.answers, n),
        ]
        for n, answer in enumerate(curve.answers)
    ]
    heads = [">size", ">time", ">bus bandwidth", "algorithm", ">link-level bound", ">gap", RANGE]
    return table(title, heads, rows, ["link-level bound", "gap", "algorithm"] if short else ())


def bus_bandwidth(answer: RequestAnswer) -> float:
    """Bytes per second in the way of nccl-tests: what does not depend on the size of the group.

    Size over time, times 2 (p-1)/p for an all-reduce over p members, 1 for a send and a dispatch,
    (p-1)/p else.
    """
    members = answer.hierarchy.size
    match answer.request.kind:
        case RequestKind.ALL_REDUCE:
            factor = 2 * (members - 1) / members
        case RequestKind.REDUCE_SCATTER | RequestKind.ALL_GATHER | RequestKind.ALL_TO_ALL:
            factor = (members - 1) / members
        case RequestKind.SEND | Dispatch():
            factor = 1.0
    return factor * answer.request.payload_bytes / answer.seconds


def _compared(title: str, sweep: Sweep, curves: Sequence[Curve], short: bool) -> RenderableType:
    names = curve_names(curves)
    rows = []
    for n, size in enumerate(sweep.sizes):
        seconds = [curve.seconds[n] for curve in curves]
        times = [
            format_time(curve.seconds[n])
            + (in_chunks(curve.answers[n].chunks) if curve.answers else "")
            for curve in curves
        ]
        best = seconds.index(min(seconds))
        within = _range(sweep, curves[best].answers, n)
        rows.append([format_bytes(size), *times, names[best], within])
    heads = [">size", *(f">{name}" for name in names), "fastest", f"its {RANGE}"]
    return table(title, heads, rows, [f"its {RANGE}"] if short else ())


def fastest_line(sweep: Sweep, request: int, curves: Sequence[Curve]) -> str:
    """Which is the fastest where, in one line."""
    names = curve_names(curves)
    runs = [f"{names[curve]} {_span(first, last)}" for curve, first, last in sweep.fastest(request)]
    return f"fastest: {'; '.join(runs)}"


def _span(first: int, last: int) -> str:
    one = format_bytes(first)
    return f"at {one}" if first == last else f"from {one} to {format_bytes(last)}"


# Times over sizes as a picture.  Needs matplotlib, which the ``plots`` extra brings.


FORMATS = ("png", "svg", "pdf")
# Okabe and Ito's colours, which colour-blind readers can tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "osD^vPX"
_LINE = 88


def plot_format(path: str) -> str:
    """The format that the name of a file asks for.

    Raises:
        InputError: it is none of ``FORMATS``.
        BackendError: matplotlib is not installed.
    """
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        names = ", ".join(f".{name}" for name in FORMATS)
        raise InputError(f"plot {path[:200]!r}", f"must be named {names}", "rename it")
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        text = "matplotlib is not installed; install p2smt with its plots extra: p2smt[plots]"
        raise BackendError(f"--plot: {text}") from None
    return suffix


def write_plot(sweep: Sweep, path: str) -> None:
    """Draw a sweep and write it whole or not at all.

    Raises:
        InputError: the name has none of the known endings, or it cannot be written.
        BackendError: matplotlib is not installed.
    """
    names = ", ".join(f"{axis.name}={axis.size}" for axis in sweep.problem.axes)
    title = f"{sweep.problem.topology.name}: {names} as {sweep.placement.text()}"
    _write_lines(lambda axes: _lines(axes, sweep), title, path)


def write_curves_plot(
    payloads: Sequence[int], curves: Mapping[str, Sequence[float]], title: str, path: str
) -> None:
    """Draw seconds over payloads, a line each by its name.

    Raises:
        InputError, BackendError: as :func:`write_plot`.
    """

    def lines(axes: Axes) -> list[Line2D]:
        every = enumerate(curves.items())
        return [_line(axes, payloads, one, name, n) for n, (name, one) in every]

    _write_lines(lines, title, path)


def _write_lines(lines: Callable[[Axes], list[Line2D]], title: str, path: str) -> None:
    suffix, picture = plot_format(path), io.BytesIO()
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "p2smt"}):
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix, {})
        _drawn(lines, title).savefig(picture, format=suffix, dpi=150, metadata=metadata)
    write_atomically(path, picture.getvalue())


def _drawn(lines: Callable[[Axes], list[Line2D]], title: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    handles = lines(axes)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda size, _: format_bytes(size))
    axes.yaxis.set_major_formatter(lambda seconds, _: format_time(seconds))
    axes.set_xlabel("size (whole vector per device)")
    axes.set_ylabel("predicted time of one execution")
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.8)
    axes.set_title(title)
    figure.legend(handles=handles, loc="outside lower center", frameon=False, fontsize="small")
    return figure


def _lines(axes: Axes, sweep: Sweep) -> list[Line2D]:
    """A line per curve, and a dashed one for the link-level bound of each request with programs."""
    handles: list[Line2D] = []
    several = len(sweep.problem.requests) > 1
    for n, request in enumerate(sweep.problem.requests):
        colour = _COLOURS[len(handles) % len(_COLOURS)]
        for label, curve in _labelled(sweep, n):
            handles.append(_line(axes, sweep.sizes, curve.seconds, label, len(handles)))
        if request.kind.has_programs:
            bounds = [at[0].requests[n].physical_bound_s for at in sweep.by_size]
            label = f"{request.name}: link-level bound" if several else "link-level bound"
            shade = colour if several else "#888888"
            handles += axes.plot(sweep.sizes, bounds, "--", color=shade, linewidth=1, label=label)
    return handles


def _line(
    axes: Axes, sizes: Sequence[int], seconds: Sequence[float], label: str, number: int
) -> Line2D:
    place = number % len(_COLOURS)
    (found,) = axes.plot(
        sizes,
        seconds,
        color=_COLOURS[place],
        marker=_MARKERS[place],
        markersize=4,
        label=textwrap.fill(label, _LINE),
    )
    return found


def _labelled(sweep: Sweep, request: int) -> Iterator[tuple[str, Curve]]:
    """The curves of a request, each with its line of the legend."""
    curves, name = sweep.curves(request), sweep.problem.requests[request].name
    several = len(sweep.problem.requests) > 1
    for short, curve in zip(curve_names(curves), curves, strict=True):
        label = short if curve.program is None else f"{short}: {curve.program}"
        if not sweep.problem.requests[request].kind.has_programs:
            label = name
        elif several or len(curves) == 1:
            label = f"{name}: {label}"
        yield label, curve


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

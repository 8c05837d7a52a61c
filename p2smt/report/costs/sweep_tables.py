"""What `cost --sizes` tells a person: a table of times over sizes for each request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from p2smt.collectives.names import RequestKind
from p2smt.plans.solution import RequestAnswer, in_chunks
from p2smt.plans.sweep import Curve, Sweep
from p2smt.report.costs.request_table import shown_steps
from p2smt.report.tables import gap, letters, table
from p2smt.units import format_bandwidth, format_bytes, format_time


def curve_names(curves: Sequence[Curve]) -> list[str]:
    """``single collective``, then a letter for each program."""
    return ["single collective", *(letters(n) for n in range(len(curves) - 1))]


def sweep_tables(sweep: Sweep) -> Iterator[RenderableType]:
    """A table for each request; with programs also which is the fastest where."""
    for request in range(len(sweep.problem.requests)):
        curves = sweep.curves(request)
        if request:
            yield ""
        title = f"{sweep.problem.requests[request].name}: time of one execution"
        if len(curves) == 1:
            yield _alone(title, curves[0])
            continue
        yield _compared(title, sweep, curves)
        yield ""
        legend = zip(curve_names(curves)[1:], curves[1:], strict=True)
        yield table("programs", ["", ""], [[name, str(curve.program)] for name, curve in legend])
        yield ""
        yield _fastest(sweep, request, curves)


def _alone(title: str, curve: Curve) -> RenderableType:
    rows = [
        [
            format_bytes(answer.request.payload_bytes),
            format_time(answer.seconds),
            format_bandwidth(bus_bandwidth(answer)) if answer.seconds else "-",
            " ".join(dict.fromkeys(step.how for step in shown_steps(answer))),
            format_time(answer.physical_bound_s),
            gap(answer.seconds, answer.physical_bound_s),
        ]
        for answer in curve.answers
    ]
    heads = [">size", ">time", ">bus bandwidth", "algorithm", ">link-level bound", ">gap"]
    return table(title, heads, rows)


def bus_bandwidth(answer: RequestAnswer) -> float:
    """Bytes per second in the way of nccl-tests: what does not depend on the size of the group.

    Size over time, times 2 (p-1)/p for an all-reduce over p members, 1 for a send, (p-1)/p else.
    """
    members = answer.hierarchy.size
    match answer.request.kind:
        case RequestKind.ALL_REDUCE:
            factor = 2 * (members - 1) / members
        case RequestKind.REDUCE_SCATTER | RequestKind.ALL_GATHER | RequestKind.ALL_TO_ALL:
            factor = (members - 1) / members
        case RequestKind.SEND:
            factor = 1.0
    return factor * answer.request.payload_bytes / answer.seconds


def _compared(title: str, sweep: Sweep, curves: Sequence[Curve]) -> RenderableType:
    names = curve_names(curves)
    rows = []
    for n, size in enumerate(sweep.sizes):
        seconds = [curve.seconds[n] for curve in curves]
        times = [
            format_time(curve.seconds[n])
            + (in_chunks(curve.answers[n].chunks) if curve.answers else "")
            for curve in curves
        ]
        rows.append([format_bytes(size), *times, names[seconds.index(min(seconds))]])
    return table(title, [">size", *(f">{name}" for name in names), "fastest"], rows)


def _fastest(sweep: Sweep, request: int, curves: Sequence[Curve]) -> str:
    """Which is the fastest where, in one line."""
    names = curve_names(curves)
    runs = [f"{names[curve]} {_span(first, last)}" for curve, first, last in sweep.fastest(request)]
    return f"fastest: {'; '.join(runs)}"


def _span(first: int, last: int) -> str:
    one = format_bytes(first)
    return f"at {one}" if first == last else f"from {one} to {format_bytes(last)}"

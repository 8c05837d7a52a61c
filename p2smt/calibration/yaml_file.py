"""A calibrated topology as a YAML file that says what it was fitted from."""

from __future__ import annotations

from collections.abc import Iterator

from p2smt.calibration.build import Calibration
from p2smt.calibration.doubts import doubts, useless
from p2smt.calibration.levels import CollectiveFit
from p2smt.calibration.tables import TableFit
from p2smt.cluster.file_model import dump_topology
from p2smt.files.yaml_text import dump_yaml


def calibrated_yaml(calibration: Calibration, date: str) -> str:
    """The file's text; reading it back gives ``calibration.topology``.

    The comments at its head say what it was fitted to, how well, and on which ``date``.
    """
    head = "".join(f"# {_printable(line)}\n" for line in _head(calibration, date))
    return f"{head}\n{dump_yaml(dump_topology(calibration.topology))}"


def _head(calibration: Calibration, date: str) -> Iterator[str]:
    found = list(doubts(calibration))
    if useless(calibration.tables):
        yield f"NOT TO BE RELIED ON: {found.pop(0)}"
    yield f"Fitted by p2smt calibrate on {date}, from"
    yield from (f"  {source}" for source in calibration.sources)
    yield from _constants(calibration) if calibration.constants else _levels(calibration)
    yield from (f"WARNING: {line}" for line in found)
    yield "Errors by table, medians of max(predicted / measured, measured / predicted) - 1:"
    yield from (f"  {_table(found)}" for found in calibration.tables)


def _table(found: TableFit) -> str:
    out = found.left_out_error
    left_out = "" if out is None else f"; {100 * out:.2g} % by a fit to the other tables"
    named = f"{found.source}, {found.operation.value}, {found.times} times"
    return f"{named}: {100 * found.median_error:.2g} %{left_out}"


def _constants(calibration: Calibration) -> Iterator[str]:
    library = calibration.topology.library
    yield f"Rates are nominal; efficiencies, hops and calls are what {library} makes of them."
    kept = [found.constant for found in calibration.constants if not found.fitted]
    if kept:
        yield "Kept, as the times do not determine them:"
    for constant in kept:
        where = (
            ""
            if constant.level is None
            else f", level {calibration.topology.names[constant.level]}"
        )
        yield f"  {constant.quantity.value} of {constant.name}{where}"


def _levels(calibration: Calibration) -> Iterator[str]:
    yield "Latencies and bandwidths are effective: what a run by these algorithms would need."
    yield "Errors by level are abs(predicted / measured - 1), outliers left out."
    for level in calibration.levels:
        if level.link is None:
            yield f"level {level.level}: not measured, kept as it was"
        yield from (f"level {level.level}, {_line(found)}" for found in level.collectives)


def _line(found: CollectiveFit) -> str:
    pieces = "own pieces" if found.own else "the link's pieces"
    return (
        f"{found.operation.value} by {pieces}: median {100 * found.median_error:.2g} %, "
        f"largest {100 * found.max_error:.2g} %; {len(found.samples)} times, "
        f"{len(found.outliers)} outliers left out"
    )


def _printable(text: str) -> str:
    """One line of a comment: YAML allows no control characters even there."""
    return "".join(c if c.isprintable() else "?" for c in text)

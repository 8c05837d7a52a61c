"""What a calibration found: links or constants of a library, and efficiencies of a framework."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from rich.console import Group, RenderableType

from p2smt.calibration.build import doubts
from p2smt.calibration.effective import Quantity
from p2smt.cluster.file import dump_topology
from p2smt.collectives.names import RequestKind
from p2smt.report.outputs.calibrate import (
    CalibrateOutput,
    CalibrateRunsOutput,
    FittedCollective,
    FittedEfficiency,
    FittedLevel,
    FittedRun,
    LibraryConstant,
    MeasuredOperation,
    MeasuredTable,
    Outlier,
    PredictedRow,
    RefusedRun,
)
from p2smt.report.screen import LINES, composed, fitted, full_width
from p2smt.report.tables import table
from p2smt.report.text import printable
from p2smt.training.measured.efficiency_fit import mean_error, median_error
from p2smt.units import counted, format_bandwidth, format_bytes, format_time, plain

if TYPE_CHECKING:
    from p2smt.calibration.build import Calibration
    from p2smt.calibration.effective import FittedConstant
    from p2smt.calibration.fitted_levels import CollectiveFit, LevelFit
    from p2smt.calibration.samples import Sample
    from p2smt.calibration.table_errors import TableFit
    from p2smt.cluster.topology import Link, Piece
    from p2smt.training.measured.efficiency_fit import EfficiencyFit, PredictedRun
    from p2smt.training.measured.measured_runs import MeasuredRuns


# Calibrations for people and as data.


MAX_ROWS = 30


def calibration_tables(calibration: Calibration) -> RenderableType:
    """What was fitted, how well it meets the measurements, and what it does not explain."""
    parts = _constant_tables(calibration) if calibration.constants else _level_tables(calibration)
    if calibration.tables:
        columns = ["table", "operation", ">times", ">median error", ">largest", ">left out"]
        rows = [_table_row(found) for found in calibration.tables]
        parts += ["", table("error by table, and when it is left out of the fit", columns, rows)]
    if unmeasured(calibration):
        parts += ["", only_reduced(calibration)]
    return Group(*parts)


def calibration_screen(calibration: Calibration, below: Sequence[str]) -> list[str]:
    """How well the fit meets the measurements, then what was fitted."""
    errors = [found.median_error for found in _fits(calibration)]
    many = sum(found.times for found in calibration.tables) or sum(
        len(found.samples) for level in calibration.levels for found in level.collectives
    )
    verdict = f"fitted to {counted(many, 'time')}"
    if errors:
        worst = max(found.max_error for found in _fits(calibration))
        verdict += f": median errors up to {_percent(max(errors))}, the largest {_percent(worst)}"
    shown = _constants(calibration) if calibration.constants else _pieces(calibration)
    last = [only_reduced(calibration)] * bool(unmeasured(calibration))
    last += [f"{counted(len(calibration.unexplained), 'time')} not explained"] * bool(
        calibration.unexplained
    )
    return composed([verdict], shown, [*last, "errors of each table: --details", *below])


def _fits(calibration: Calibration) -> list[TableFit | CollectiveFit]:
    """What errors are known of: measured tables, or collectives of a level."""
    each = [found for level in calibration.levels for found in level.collectives]
    return [*(calibration.tables or each)]


def unmeasured(calibration: Calibration) -> tuple[str, ...]:
    """What a training sends and no table measured, where all of them are of all-reduce."""
    measured = {found.operation.value for found in calibration.tables}
    reduce = RequestKind.ALL_REDUCE
    others = (kind.value for kind in RequestKind if kind is not reduce)
    return tuple(others) if measured == {reduce.value} else ()


def only_reduced(calibration: Calibration) -> str:
    """The same in words."""
    kinds = ", ".join(unmeasured(calibration))
    return f"all-reduce alone was measured: a plan also rests on {kinds}, unmeasured"


def _table_row(found: TableFit) -> list[str]:
    left_out = "-" if found.left_out_error is None else _percent(found.left_out_error)
    errors = (_percent(found.median_error), _percent(found.max_error), left_out)
    return [printable(found.source), found.operation.value, str(found.times), *errors]


def _constant_tables(calibration: Calibration) -> list[RenderableType]:
    """The constants of a library, and the times that they do not explain."""
    parts: list[RenderableType] = [_constants(calibration)]
    if calibration.unexplained:
        columns = ["operation", ">size", ">measured", ">predicted", "from"]
        shown = [
            [sample.operation.value, *_sample_cells(sample, predicted)]
            for sample, predicted in calibration.unexplained
        ]
        beyond = f"{plain(calibration.unexplained_beyond)}x"
        rule = "five robust standard deviations, at least 1.35x"
        title = f"not explained: off by more than {beyond} ({rule})"
        parts += ["", table(title, columns, shown[:MAX_ROWS])]
        if len(shown) > MAX_ROWS:
            parts.append(f"and {len(shown) - MAX_ROWS} more")
    return parts


def _constants(calibration: Calibration) -> Group:
    columns = ["level", "what", "of", ">value", "", ">before"]
    rows = [_constant_row(calibration, found) for found in calibration.constants]
    return table(calibration.topology.library_name, columns, rows)


def _constant_row(calibration: Calibration, found: FittedConstant) -> list[str]:
    constant = found.constant
    level = "" if constant.level is None else calibration.topology.names[constant.level]
    part = constant.quantity is Quantity.EFFICIENCY
    now, before = (
        f"{plain(100 * value)} %" if part else format_time(value)
        for value in (found.value, found.before)
    )
    return [
        level,
        constant.quantity.value,
        constant.name,
        now,
        "fitted" if found.fitted else "kept",
        before if found.fitted else "",
    ]


def _level_tables(calibration: Calibration) -> list[RenderableType]:
    """Pieces, errors and outliers of every level, outermost first."""
    errors = [row for level in calibration.levels for row in _error_rows(level)]
    held_out = "held-out error of 1, 2, 3 pieces"
    columns = ["level", "collective", ">times", ">median error", ">largest", ">outliers", held_out]
    parts: list[RenderableType] = [
        _pieces(calibration),
        "",
        table("the calibrated model against the measurements", columns, errors),
    ]
    if outliers := [row for level in calibration.levels for row in _outlier_rows(level)]:
        columns = ["level", "collective", ">size", ">measured", ">predicted", "from"]
        parts += ["", table("outliers, left out", columns, outliers[:MAX_ROWS])]
        if len(outliers) > MAX_ROWS:
            parts.append(f"and {len(outliers) - MAX_ROWS} more")
    return parts


def _pieces(calibration: Calibration) -> Group:
    """The pieces of every level, outermost first."""
    links = [level.link for level in calibration.topology.levels]
    pairs = zip(calibration.levels, links, strict=True)
    rows = [row for level, link in pairs for row in _piece_rows(level, link)]
    return table("pieces", ["level", "for", "piece", ">latency", ">bandwidth/port"], rows)


def _piece_rows(level: LevelFit, link: Link) -> Iterator[list[str]]:
    name = level.level
    for what, pieces in (("link", link.pieces), *((c.value, ps) for c, ps in link.measured)):
        kept = ", not measured" if level.link is None and what == "link" else ""
        for piece in pieces:
            yield [name, what + kept, printable(piece.name), *_piece(piece)]
            name = kept = ""


def _piece(piece: Piece) -> list[str]:
    return [format_time(piece.latency_s), format_bandwidth(piece.bandwidth_bytes_per_s)]


def _error_rows(level: LevelFit) -> Iterator[list[str]]:
    for found in level.collectives:
        yield [
            level.level,
            found.operation.value,
            str(len(found.samples)),
            _percent(found.median_error),
            _percent(found.max_error),
            str(len(found.outliers)),
            ", ".join(_percent(error) for error in found.fit.held_out),
        ]


def _percent(error: float) -> str:
    return f"{plain(100 * error, 2)} %"


def _outliers(found: CollectiveFit) -> Iterator[tuple[Sample, float]]:
    return ((found.samples[i], found.predicted_s[i]) for i in found.outliers)


def _outlier_rows(level: LevelFit) -> Iterator[list[str]]:
    for found in level.collectives:
        for sample, predicted in _outliers(found):
            yield [level.level, found.operation.value, *_sample_cells(sample, predicted)]


def _sample_cells(sample: Sample, predicted_s: float) -> list[str]:
    size, measured = format_bytes(sample.payload_bytes), format_time(sample.seconds)
    return [size, measured, format_time(predicted_s), printable(sample.source)]


def calibration_data(calibration: Calibration, wrong: Sequence[str] = ()) -> CalibrateOutput:
    """A calibration as data; ``wrong`` are rows left out for wrong results."""
    return CalibrateOutput(
        topology=dump_topology(calibration.topology),
        levels=[_level_data(level) for level in calibration.levels],
        constants=[_constant_data(calibration, found) for found in calibration.constants],
        tables=[_table_data(found) for found in calibration.tables],
        unexplained=[_sample_data(*found) for found in calibration.unexplained],
        unexplained_beyond=calibration.unexplained_beyond,
        warnings=list(doubts(calibration)),
        wrong_results=wrong,
        unmeasured=unmeasured(calibration) or None,
    )


def _constant_data(calibration: Calibration, found: FittedConstant) -> LibraryConstant:
    level = found.constant.level
    return LibraryConstant(
        level=None if level is None else calibration.topology.names[level],
        quantity=found.constant.quantity.value,
        name=found.constant.name,
        value=found.value,
        fitted=found.fitted,
        before=found.before,
    )


def _table_data(found: TableFit) -> MeasuredTable:
    return MeasuredTable(
        source=found.source,
        operation=cast(MeasuredOperation, found.operation),
        times=found.times,
        median_error=found.median_error,
        max_error=found.max_error,
        left_out_error=found.left_out_error,
        left_out=bool(found.unseen),
        rows=_rows(found),
    )


def _rows(found: TableFit) -> list[PredictedRow]:
    """Each time with what the fit says, and the one that did not see the table."""
    left_out: Sequence[float | None] = [s for _, s in found.unseen] or [None] * len(found.seen)
    return [
        PredictedRow(**vars(_sample_data(sample, predicted_s)), left_out_s=again_s)
        for (sample, predicted_s), again_s in zip(found.seen, left_out, strict=True)
    ]


def _sample_data(sample: Sample, predicted_s: float) -> Outlier:
    return Outlier(
        payload_bytes=sample.payload_bytes,
        measured_s=sample.seconds,
        predicted_s=predicted_s,
        source=sample.source,
    )


def _level_data(level: LevelFit) -> FittedLevel:
    return FittedLevel(
        level=level.level,
        measured=level.link is not None,
        link_held_out_errors=None if level.link is None else level.link.held_out,
        collectives=[_collective_data(found) for found in level.collectives],
    )


def _collective_data(found: CollectiveFit) -> FittedCollective:
    return FittedCollective(
        collective=cast(MeasuredOperation, found.operation),
        own_pieces=found.own,
        times=len(found.samples),
        median_error=found.median_error,
        max_error=found.max_error,
        held_out_errors=found.fit.held_out,
        outliers=[_sample_data(*outlier) for outlier in _outliers(found)],
    )


# Fitted efficiencies for people and as data.


def efficiency_tables(fits: Sequence[EfficiencyFit], runs: MeasuredRuns) -> RenderableType:
    """The constants, and the error of each group where it was left out."""
    columns = ["efficiency", ">of the peak", ">runs", ">groups", ">mean error", ">median", ">max"]
    parts: list[RenderableType] = [
        table("fitted constants; errors of runs whose group was left out", columns, map(_row, fits))
    ]
    columns = ["efficiency", "group", ">runs", ">of the peak without", ">mean error", ">bias"]
    rows = [row for fit in fits for row in _group_rows(fit)]
    if rows:
        parts += ["", table("groups, each left out of the fit in turn", columns, rows)]
    notes = _notes(fits, runs)
    return Group(*parts, *(["", *notes] if notes else []))


def efficiency_screen(
    fits: Sequence[EfficiencyFit], runs: MeasuredRuns, below: Sequence[str]
) -> list[str]:
    """The constants with the errors where they did not see the runs."""
    columns = ["efficiency", ">of the peak", ">runs", ">groups", ">mean error", ">median", ">max"]
    made = table("errors of runs whose group was left out", columns, map(_row, fits), [">groups"])
    many = sum(len(fit.runs) for fit in fits)
    verdict = f"{counted(len(fits), 'efficiency', 'efficiencies')} fitted to {counted(many, 'run')}"
    notes = counted(len(_notes(fits, runs)), "note")
    told = [f"{fit.efficiency.name}: {fit.cannot_tell}" for fit in fits if fit.cannot_tell]
    unsaid = fitted(full_width(map(printable, told)), LINES // 2)
    return composed([verdict], made, [*unsaid, f"groups, {notes}: --details", *below])


def _row(fit: EfficiencyFit) -> list[str]:
    found = fit.efficiency
    largest = max(map(abs, fit.errors))
    shown = [_percent_of(x) for x in (mean_error(fit.errors), median_error(fit.errors), largest)]
    counts = (str(len(fit.runs)), str(len(fit.groups)))
    return [printable(found.name), f"{found.fraction:.3f}", *counts, *shown]


def _group_rows(fit: EfficiencyFit) -> list[list[str]]:
    rows = []
    for group in fit.groups if len(fit.groups) > 1 else ():
        mine = [one for one in fit.runs if one.run.group == group]
        errors = [one.left_out_error for one in mine]
        bias = f"{100 * sum(errors) / len(errors):+.1f} %"
        without = f"{mine[0].left_out_fraction:.3f}"
        names = (printable(fit.efficiency.name), printable(group))
        rows.append([*names, str(len(mine)), without, _percent_of(mean_error(errors)), bias])
    return rows


def _notes(fits: Sequence[EfficiencyFit], runs: MeasuredRuns) -> list[str]:
    """What of the file was not fitted."""
    doubtful = len(runs.runs) - len(runs.counted)
    single = len(runs.counted) - sum(len(fit.runs) for fit in fits)
    unnamed = sum(not run.names_framework for run in runs.counted)
    texts = (
        (unnamed, "that name no framework: taken as Megatron's"),
        (doubtful, "whose strategy is not published in full: not counted"),
        (single, "whose framework has no second group on those devices: not fitted"),
        (len(runs.refused), "of models or states that are not predicted"),
    )
    told = [f"{fit.efficiency.name}: {fit.cannot_tell}" for fit in fits if fit.cannot_tell]
    return told + [f"{counted(count, 'run')} {text}" for count, text in texts if count]


def efficiency_data(fits: Sequence[EfficiencyFit], runs: MeasuredRuns) -> CalibrateRunsOutput:
    """Fitted efficiencies as data."""
    return CalibrateRunsOutput(
        efficiencies=[_fit_data(fit) for fit in fits],
        not_counted=[run.name for run in runs.runs if not run.counted],
        without_framework=[run.name for run in runs.counted if not run.names_framework],
        refused=[RefusedRun(run=name, why=why) for name, why in runs.refused],
    )


def _fit_data(fit: EfficiencyFit) -> FittedEfficiency:
    found = fit.efficiency
    return FittedEfficiency(
        name=found.name,
        device=found.device,
        framework=found.framework.name,
        fraction=found.fraction,
        layer_s=found.layer_s,
        groups=fit.groups,
        mean_error=mean_error(fit.errors),
        median_error=median_error(fit.errors),
        max_error=max(map(abs, fit.errors)),
        runs=[_run_data(one) for one in fit.runs],
        cannot_tell=fit.cannot_tell or None,
    )


def _run_data(one: PredictedRun) -> FittedRun:
    return FittedRun(
        run=one.run.name,
        group=one.run.group,
        measured_s=one.run.step_s,
        predicted_s=one.predicted_s,
        left_out_s=one.left_out_s,
        left_out_fraction=one.left_out_fraction,
    )


def _percent_of(value: float) -> str:
    return f"{100 * value:.1f} %"

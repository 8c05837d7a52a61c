"""`plan --compare` as data."""

from __future__ import annotations

from p2smt.report.outputs.answers import (
    ComparedChange,
    ComparedFigures,
    ComparisonFields,
    MeasuredLike,
)
from p2smt.report.outputs.shape import range_data
from p2smt.report.training.words import time_parts
from p2smt.training.gain import RateGain
from p2smt.training.iteration import estimate_range
from p2smt.training.measured.errors import iteration_range
from p2smt.training.prediction import RunEstimate
from p2smt.training.present.changes import SingleChange
from p2smt.training.present.comparison import NearMeasured, RunComparison
from p2smt.training.strategy import strategy_text


def comparison_data(found: RunComparison) -> ComparisonFields:
    """What is printed of a comparison."""
    gain, order = found.gain, found.order_gain
    return ComparisonFields(
        launched=found.launched.order.text,
        strategy=strategy_text(found.run.strategy),
        yours=_figures(found.yours),
        broken=found.broken or None,
        ordered=_figures(found.ordered.found),
        ordered_status=found.ordered.status,
        ordered_reason=found.ordered.reason or None,
        best=_figures(found.best),
        beyond=found.beyond,
        measured=None if found.near is None else _measured(found.near),
        gain=None if gain is None else gain.gain,
        gain_range=_ends(gain),
        gain_order=None if order is None else order.gain,
        gain_order_range=_ends(order),
        gain_degrees=found.degrees_gain,
        gain_per_device=found.device_gain,
        inside_error=found.inside_error,
        changes=[_change(found, one) for one in found.changes],
        unsearched=found.apart,
        assumed=found.assumed,
    )


def _ends(gain: RateGain | None) -> list[float] | None:
    return None if gain is None else [gain.low, gain.high]


def _figures(found: RunEstimate | None) -> ComparedFigures | None:
    return None if found is None else _of(found)


def _of(found: RunEstimate) -> ComparedFigures:
    lie = found.on_hosts
    return ComparedFigures(
        strategy=strategy_text(found.run.strategy),
        global_batch=found.run.batch.sequences,
        devices=found.run.strategy.devices,
        tokens_per_s=found.tokens_per_s,
        iteration_s=found.iteration_s,
        **range_data(iteration_range(found, estimate_range(found))),
        parts={part.name: part.seconds for part in time_parts(found.prediction)},
        memory_bytes=found.prediction.memory.total,
        fits=found.fits,
        matrix=None if found.placement is None else found.placement.matrix,
        expert_matrix=None if found.experts is None else found.experts.matrix,
        host_order=None if lie is None else lie.hosts,
        idle=None if lie is None else lie.idle,
    )


def _measured(near: NearMeasured) -> MeasuredLike:
    return MeasuredLike(figures=_of(near.found), run=near.name, distance=near.distance)


def _change(found: RunComparison, one: SingleChange) -> ComparedChange:
    yours, run = found.yours, one.found
    return ComparedChange(
        change=one.text,
        strategy=strategy_text(run.run.strategy),
        global_batch=run.run.batch.sequences,
        iteration_s=run.iteration_s,
        memory_bytes=run.prediction.memory.total,
        gain=None if yours is None else run.tokens_per_s / yours.tokens_per_s - 1,
    )

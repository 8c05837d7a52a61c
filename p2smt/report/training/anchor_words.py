"""What a cluster reaches of the model, by runs that were measured there, in words."""

from __future__ import annotations

from collections.abc import Iterator

from p2smt.report.training.run_words import short_strategy
from p2smt.training.measured.anchor import GROUPS, WORSE_GROUPS, Anchor, AnchoredRun
from p2smt.training.prediction import RunEstimate
from p2smt.units import format_gigabytes, format_time, format_time_range, plain

_SHOWN = 3


def anchored_time(own: Anchor, found: RunEstimate) -> str:
    """The time of an estimate as it will be here, with its band: ``29.8 s, 25 to 35 s``."""
    seconds = own.scaled(found.iteration_s)
    return f"{format_time(seconds)}, {format_time_range(*own.range_of(found.iteration_s), seconds)}"


def anchor_words(own: Anchor, scaled: str) -> tuple[str, ...]:
    """What the cluster reaches, what that makes of times, and each run beside the model."""
    return (f"your cluster reaches {_reached(own)}; scaled: {scaled}", *_rows(own), *_caution(own))


def _reached(own: Anchor) -> str:
    constants = own.constants
    links = f", its links {plain(constants.links)} of theirs" if constants.links != 1 else ""
    host = f", a layer {format_time(constants.host_s)} more" if constants.host_s else ""
    return f"{plain(own.reached)} of the model{links}{host}"


def _rows(own: Anchor) -> Iterator[str]:
    yield from map(_row, own.runs[:_SHOWN])
    if len(own.runs) > _SHOWN:
        yield f"and {len(own.runs) - _SHOWN} more runs: --json"


def _row(one: AnchoredRun) -> str:
    said = f"{format_time(one.run.step_s)} (model {format_time(one.predicted_s)})"
    text = f"{short_strategy(one.run.strategy)}: {said}"
    if one.run.memory_bytes is None:
        return text
    memory, said = map(format_gigabytes, (one.run.memory_bytes, one.predicted_bytes))
    return f"{text}, {memory} (model {said})"


def _caution(own: Anchor) -> Iterator[str]:
    """That the factor of one run may be its own."""
    if len(own.runs) == 1:
        yield f"by one run; such a factor made {WORSE_GROUPS} of {GROUPS} published groups worse"

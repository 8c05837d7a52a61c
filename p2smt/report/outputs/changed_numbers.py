"""`--what-if` of `plan`, `solve` and `estimate`, in their ``--json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from p2smt.report.outputs.shape import OutputPart, RangeSeconds, Ratio, Said, Seconds
from p2smt.result import Status

GainRatio = Annotated[float, Said("0.1: a tenth faster; negative: slower.", ge=-1)]


class WhatIfRow(OutputPart):
    """A change, and what is best then."""

    change: Annotated[str, Said("As it was given, such as leaf*2.")]
    status: Annotated[
        Status, Said("optimal: proved; complete: one strategy, of which nothing is proved.")
    ]
    best: Annotated[
        str | None,
        Said("The strategy, or the placement as a matrix; null: none, or no matrix expresses it."),
    ]
    iteration_s: Seconds | None
    range_s: RangeSeconds
    gain: Annotated[
        GainRatio | None, Said("Of a training in tokens a second, else in speed; null: unknown.")
    ]
    gain_range: Annotated[
        Sequence[GainRatio] | None,
        Said("Low and high: links as fast or as slow as they may be, alike before and after."),
    ]
    reason: Annotated[str | None, Said("Why there is no answer, or what it lacks, in words.")]


class TrainedWhatIfRow(WhatIfRow):
    """The same of a training."""

    tokens_per_s: Annotated[Ratio | None, Said("Of all devices; null: no answer.")]


_ROWS = Said("The changes of --what-if; absent: none was asked for.")
WhatIfRows = Annotated[Sequence[WhatIfRow] | None, _ROWS]
TrainedWhatIfRows = Annotated[Sequence[TrainedWhatIfRow] | None, _ROWS]

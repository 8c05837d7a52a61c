"""`--measured` of `plan` and `estimate`, in their ``--json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from p2smt.report.outputs.shape import Bytes, OutputPart, Ratio, Said, Seconds


class AnchoredRow(OutputPart):
    """A run that was measured, beside the model."""

    strategy: Annotated[str, Said("With the degrees that it was given.")]
    measured_s: Seconds
    predicted_s: Annotated[Seconds, Said("By the model as it comes.")]
    scaled_s: Annotated[Seconds, Said("By the model scaled.")]
    measured_bytes: Annotated[Bytes | None, Said("Of a device; null: not given.")]
    predicted_bytes: Annotated[Bytes, Said("Of a device.")]


class AnchorFields(OutputPart):
    """What the cluster reaches of the model."""

    reached: Annotated[Ratio, Said("Of its speed: times are those of the output over this.")]
    links: Annotated[Ratio, Said("That bandwidths reach of theirs; 1: not told. In all times.")]
    host_layer_s: Annotated[Seconds, Said("A layer takes more; 0: not told. In all times.")]
    scaled_s: Annotated[
        Seconds | None, Said("Of an iteration here: of a plan, of its fastest; null: none.")
    ]
    scaled_range_s: Annotated[
        Sequence[Seconds] | None, Said("Low and high: four of five strategies lie in such.")
    ]
    runs: Annotated[Sequence[AnchoredRow], Said("Those of --measured, as given.")]

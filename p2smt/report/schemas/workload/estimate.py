"""`estimate --json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.collectives.names import RequestKind
from p2smt.report.schemas.orders import (
    Count,
    Error,
    Output,
    OutputPart,
    PayloadBytes,
    RankMatrix,
    Ratio,
    Seconds,
)

StrategyWords = Annotated[
    str, Field(description="As --strategy takes it, such as tp=8,pp=4,dp=2,cp=1,vpp=1,mbs=1.")
]
AxisNames = Annotated[
    list[Literal["pp", "dp", "cp", "tp"]], Field(description="The rows of matrices, in order.")
]


class DenseModel(OutputPart):
    """A dense decoder transformer."""

    name: str
    layers: Count
    hidden: Count
    heads: Count
    kv_heads: Count
    ffn: Count
    gated: bool
    vocab: Count
    head_size: Count
    tied: bool
    sources: list[str]
    parameters: Annotated[Count, Field(description="Elements of all matrices.")]


class FrameworkFacts(OutputPart):
    """What the framework overlaps."""

    name: str
    tp_hidden: Annotated[bool, Field(description="Collectives of tp run beside products.")]
    pp_hidden: Annotated[Ratio, Field(description="Part of sends that interleaving hides.")]
    dp_hidden: Annotated[bool, Field(description="Gradients are reduced in the backward pass.")]
    fetch_hidden: Annotated[bool, Field(description="ZeRO-3 gathers while layers compute.")]
    gradient_bytes: Annotated[Count, Field(description="Of an element as it is reduced.")]
    gradient_bytes_fp16: Annotated[Count, Field(description="The same of a training in fp16.")]
    attention: Annotated[Ratio, Field(description="Of fused attention to matrix products.")]


class ReachedEfficiency(OutputPart):
    """What of the peak a framework reaches on a device."""

    name: str
    device: str
    framework: FrameworkFacts
    fraction: Annotated[Ratio, Field(description="Of peak and memory bandwidth.")]
    layer_s: Annotated[Seconds, Field(description="Seconds of each layer besides.")]
    runs: Annotated[Count, Field(description="Measured runs that it was fitted to.")]
    error: Annotated[Error, Field(description="Mean relative error on groups left out.")]


class StrategyDegrees(OutputPart):
    """A strategy field by field, under the keys of its text."""

    tp: Count
    pp: Count
    dp: Count
    cp: Count
    vpp: Annotated[Count, Field(description="Chunks of a stage.")]
    mbs: Annotated[Count, Field(description="Sequences of a micro-batch.")]
    sp: Annotated[bool, Field(description="Sequence parallelism.")]
    zero: Annotated[Count, Field(description="Stage of ZeRO.")]
    recompute: Literal["none", "selective", "full"]
    flash: Annotated[bool, Field(description="Fused attention.")]
    dtype: str
    split: Annotated[
        list[Count] | None, Field(description="Layers of each chunk; null: an even split.")
    ]


class MemoryByPart(OutputPart):
    """Bytes of a device of the stage that needs most."""

    parameters: PayloadBytes
    gradients: PayloadBytes
    optimizer: PayloadBytes
    activations: PayloadBytes
    stage: Annotated[Count, Field(description="The stage; the first is 0.")]


class IterationRequest(OutputPart):
    """What a device asks of some axes; times but ``call_s`` are of an iteration."""

    name: str
    kind: RequestKind
    axes: list[str]
    bytes: Annotated[PayloadBytes, Field(description="The whole vector.")]
    times: Annotated[Count, Field(description="Calls of an iteration.")]
    cover: Annotated[str, Field(description="The work that it hides under, in words.")]
    call_s: Seconds
    visible_s: Seconds
    hidden_s: Seconds


class StrategyFigures(OutputPart):
    """A strategy on a placement, with what is predicted of it."""

    strategy: StrategyWords
    degrees: StrategyDegrees
    matrix: Annotated[
        RankMatrix | None, Field(description="null: ranks in order, which no matrix expresses.")
    ]
    iteration_s: Seconds
    parts: Annotated[
        dict[str, Seconds],
        Field(description="compute, bubble, what shows of each axis, optimizer: they sum up."),
    ]
    hidden: Annotated[
        dict[str, Seconds], Field(description="Of each axis, what runs beside other parts.")
    ]
    memory_bytes: Annotated[PayloadBytes, Field(description="That a device needs.")]
    memory: MemoryByPart
    capacity_bytes: Annotated[PayloadBytes, Field(description="That a device may hold.")]
    fits: bool
    tokens_per_s: Annotated[Ratio, Field(description="Of all devices.")]
    tflops_per_device: Annotated[
        Ratio, Field(description="10^12 flop/s of the model, nothing computed twice.")
    ]
    mfu: Annotated[Ratio, Field(description="That over the device's peak.")]
    requests: list[IterationRequest]


class TrainingOutput(Output):
    """What is trained, where, and by which constants."""

    model: DenseModel
    topology: str
    devices: Count
    global_batch: Count
    sequence: Count
    efficiency: ReachedEfficiency
    efficiency_default: Annotated[
        bool, Field(description="It is the one taken without --efficiency.")
    ]
    efficiency_notes: Annotated[
        list[str], Field(description="How it is of another device or framework, in words.")
    ]
    axes: AxisNames


class EstimateOutput(TrainingOutput, StrategyFigures):
    """Time and memory of one strategy."""

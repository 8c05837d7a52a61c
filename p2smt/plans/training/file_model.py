"""The shape of a plan's ``training`` block: model, batch, strategy, efficiency, prediction."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.files.validation import StrictModel

Count = Annotated[int, Field(ge=1, lt=2**62)]
Bytes = Annotated[int, Field(ge=0, lt=2**62)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Part = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class ModelBlock(StrictModel):
    """The sizes of a dense transformer (:class:`~p2smt.training.transformer.Transformer`)."""

    name: Name
    layers: Count
    hidden: Count
    heads: Count
    kv_heads: Count
    ffn: Count
    gated: bool
    vocab: Count
    head_size: Count
    tied: bool


class BatchBlock(StrictModel):
    """Sequences of an iteration, and tokens of each."""

    sequences: Count
    tokens: Count


class StrategyBlock(StrictModel):
    """Degrees and switches (:class:`~p2smt.training.strategy.Strategy`); ``split`` []: evenly.

    Those from ``ep`` on stand there where their value is not the default.
    """

    tp: Count
    pp: Count
    dp: Count
    cp: Count
    vpp: Count
    micro_batch: Count
    sequence_parallel: bool
    zero: Annotated[int, Field(ge=0, le=3)]
    recompute: Literal["none", "selective", "full"]
    flash: bool
    dtype: Literal["bf16", "fp16", "fp8", "mxfp8", "nvfp4"]
    split: list[Annotated[int, Field(ge=0, lt=2**31)]]
    ep: Count = 1
    etp: Count = 1
    dispatcher: Literal["alltoall", "flex"] = "alltoall"
    overlap: bool = False
    modules: Annotated[list[Name], Field(default_factory=list)]
    graphs: Literal["none", "partial", "full"] = "none"
    fp8_attention: bool = False


class FrameworkBlock(StrictModel):
    """What the framework overlaps (:class:`~p2smt.training.efficiency.Framework`)."""

    name: Name
    tp_hidden: bool
    pp_hidden: Part
    dp_hidden: bool
    fetch_hidden: bool
    gradient_bytes: Annotated[int, Field(ge=1, le=16)]
    gradient_bytes_fp16: Annotated[int, Field(ge=1, le=16)]
    attention: Annotated[float, Field(gt=0, le=10)]


class LayersBlock(StrictModel):
    """Constants by kinds of layers (:class:`~p2smt.training.efficiency.LayerConstants`)."""

    core: Positive
    low: dict[Literal["fp4", "fp8"], Positive]
    memory: Positive
    edge: NotNegative
    quantised: NotNegative
    state_bytes: NotNegative
    hides: Part
    host_attention_s: Seconds
    host_mlp_s: Seconds
    host_mamba_s: Seconds
    host_experts_s: Seconds
    host_expert_s: Seconds
    dispatch: Positive


class EfficiencyBlock(StrictModel):
    """Constants of the framework on the device, and the runs that they were fitted to."""

    name: Name
    device: Name
    framework: FrameworkBlock
    fraction: Annotated[float, Field(gt=0, le=1)]
    layer_s: Seconds
    runs: Annotated[int, Field(ge=0)]
    error: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    layers: LayersBlock | None = None


class MemoryBlock(StrictModel):
    """Bytes of a device of the stage that needs most."""

    parameters: Bytes
    gradients: Bytes
    optimizer: Bytes
    activations: Bytes
    stage: Annotated[int, Field(ge=0)]


class VisibleBlock(StrictModel):
    """Seconds of communication that nothing hides, by axis."""

    axis: Name
    seconds: Seconds


class PricedBlock(StrictModel):
    """A request by name: seconds of one call, and of an iteration what shows and what hides."""

    name: Name
    call_s: Seconds
    visible_s: Seconds
    hidden_s: Seconds


class PredictionBlock(StrictModel):
    """What was predicted with the plan's programs on its placement; times are of an iteration."""

    iteration_s: Positive
    compute_s: Seconds
    bubble_s: Seconds
    optimizer_s: Seconds
    communication: list[VisibleBlock]
    memory: MemoryBlock
    requests: list[PricedBlock]
    model_flops: Positive


class TrainingBlock(StrictModel):
    """The training whose requests a plan answers.

    A plan's ``requests`` are those of all stages, each with the calls of the stage that has most;
    the ``requests`` of the prediction those of the slowest stage.  ``memory_bytes`` is what a
    device may hold.
    """

    model: ModelBlock
    batch: BatchBlock
    strategy: StrategyBlock
    efficiency: EfficiencyBlock
    memory_bytes: Count
    prediction: PredictionBlock

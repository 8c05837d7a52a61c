"""The shape of a plan's ``training`` block: model, batch, strategy, efficiency, prediction.

Models are as in files of their own (:mod:`p2smt.training.model_file`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from p2smt.errors import InputError
from p2smt.files.validation import StrictModel

Count = Annotated[int, Field(ge=1, lt=2**62)]
Bytes = Annotated[int, Field(ge=0, lt=2**62)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Part = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
ATTENTION, EXPERTS = "attention", "experts"
"""The two matrices of a mixture of experts, as requests name them."""


# A model: what files of models have, too.


MAX_SIZE = 10**7
"""The largest size of a model."""

ModelSize = Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MAX_SIZE})]


def _as_switch(value: object) -> object:
    """0 and 1 as false and true; others as they are."""
    return bool(value) if type(value) is int and value in (0, 1) else value


ModelSwitch = Annotated[
    bool, BeforeValidator(_as_switch, json_schema_input_type=bool | Literal[0, 1])
]
OptionalSize = Annotated[int, Field(json_schema_extra={"minimum": 0, "maximum": MAX_SIZE})]


class LayerKindModel(StrictModel):
    """A kind of layer; without ``mlp`` it is that of the model's experts, or the dense one."""

    attention: Literal["full", "window", "mamba", "none"] = "full"
    mlp: Literal["dense", "experts", "none"] | None = None


class LayerRunModel(LayerKindModel):
    """Layers of a kind, or ``kinds`` in this order, ``repeat`` times one after the other."""

    repeat: ModelSize = 1
    kinds: list[LayerKindModel] | None = None


class ExpertsModel(StrictModel):
    """As :class:`~p2smt.training.transformer.Experts` has it."""

    count: ModelSize
    active: ModelSize
    width: ModelSize
    shared_width: OptionalSize = 0
    latent: OptionalSize = 0
    groups: OptionalSize = 0
    top_groups: OptionalSize = 0
    clamped: ModelSwitch = False


class LatentModel(StrictModel):
    """As :class:`~p2smt.training.transformer.LatentAttention` has it."""

    kv_rank: ModelSize
    nope: ModelSize
    rope: ModelSize
    value: ModelSize
    query_rank: OptionalSize = 0


class MambaModel(StrictModel):
    """As :class:`~p2smt.training.transformer.Mamba` has it."""

    heads: ModelSize
    head_size: ModelSize
    groups: ModelSize
    state: ModelSize


HYBRID: Mapping[str, dict[str, str]] = MappingProxyType(
    {
        "M": {"attention": "mamba", "mlp": "none"},
        "*": {"attention": "full", "mlp": "none"},
        "E": {"attention": "none", "mlp": "experts"},
        "-": {"attention": "none", "mlp": "dense"},
    }
)
"""Letters of the patterns of hybrid models, as Megatron-LM and Nemotron write them."""


def _as_runs(value: object) -> object:
    """A pattern such as ``MEM*E`` as runs; others as they are."""
    if not isinstance(value, str):
        return value
    unknown = next((letter for letter in value if letter not in HYBRID), None)
    if unknown is not None or not value:
        rule = f"is no pattern of layers: its letters are {' '.join(HYBRID)}"
        raise InputError(f"order {value[:40]!r}", rule)
    return [
        {**HYBRID[letter], "repeat": len(list(run))} for letter, run in itertools.groupby(value)
    ]


LayerOrder = Annotated[
    list[LayerRunModel], BeforeValidator(_as_runs, json_schema_input_type=list[LayerRunModel] | str)
]


class TransformerModel(StrictModel):
    """A model file; without ``kv_heads`` as many as heads, ``head_size`` is hidden / heads.

    Without ``name`` the file's; ``gated`` and ``tied`` may be 0 or 1, as in files of runs.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "$comment": "Not said here: kv_heads divides heads; without head_size heads divides "
            "hidden; ffn is there where a layer is dense; the layers of order are as many as "
            "layers, and what they have is told; active is at most count."
        }
    )

    name: Annotated[str, Field(min_length=1)] | None = None
    layers: ModelSize
    hidden: ModelSize
    heads: ModelSize
    kv_heads: ModelSize | None = None
    ffn: OptionalSize = 0
    gated: ModelSwitch
    vocab: ModelSize
    head_size: ModelSize | None = None
    tied: ModelSwitch = False
    window: OptionalSize = 0
    chunked: ModelSwitch = False
    order: LayerOrder = Field(default_factory=list)
    experts: ExpertsModel | None = None
    mla: LatentModel | None = None
    mamba: MambaModel | None = None
    mtp: OptionalSize = 0
    sources: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _no_config(cls, data: Any) -> Any:
        """A config.json is told so: the keys it has mean other things."""
        if isinstance(data, dict) and "model_type" in data:
            rule = "is a key of a config.json of Hugging Face, and this is read as a model file"
            raise InputError("key model_type", rule, "name the file config.json")
        return data


# How it is trained, by whom, and what was predicted.


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
    dropout: bool = False
    ep: Count = 1
    etp: Count = 1
    dispatcher: Literal["alltoall", "flex"] = "alltoall"
    overlap: bool = False
    modules: Annotated[list[Name], Field(default_factory=list)]
    graphs: Literal["none", "partial", "full"] = "none"
    fp8_attention: bool = False
    fp8_params: bool = True
    recompute_layers: Annotated[int, Field(ge=0, lt=2**31)] = 0
    dp_replicate: Count = 1
    shared_overlap: bool = False
    mtp_chunk: Annotated[int, Field(ge=0, lt=2**31)] = 0
    imbalance: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0
    optimizer_bytes: Annotated[int, Field(ge=4, le=12)] = 12
    offload: Part = 0.0


class FrameworkBlock(StrictModel):
    """What the framework overlaps (:class:`~p2smt.training.efficiency.Framework`)."""

    name: Name
    tp_hidden: bool
    pp_hidden: Part
    dp_hidden: bool
    fetch_hidden: bool
    gradient_bytes: Annotated[int, Field(ge=1, le=16)]
    gradient_bytes_fp16: Annotated[int, Field(ge=1, le=16)]
    loss_bytes: Annotated[int, Field(ge=1, le=16)] = 6
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


MatrixRows = Annotated[list[list[Annotated[int, Field(ge=1, lt=2**31)]]], Field(min_length=1)]


class PlacementBlock(StrictModel):
    """Where a mixture lies: a row for each of pp, dp, cp, tp, and of pp, ed, ep, et."""

    attention: MatrixRows
    experts: MatrixRows


class ExpertRanksBlock(StrictModel):
    """Where the experts of a mixture lie on named hosts: the device of each rank, ranks row-major
    over pp, ed, ep, et; attention lies by the plan's own ranks."""

    expert_ranks: Annotated[list[Annotated[int, Field(ge=0, lt=2**31)]], Field(min_length=1)]


class TrainingBlock(StrictModel):
    """The training whose requests a plan answers.

    A plan's ``requests`` are those of all stages, each with the calls of the stage that has most;
    the ``requests`` of the prediction those of the slowest stage.  ``memory_bytes`` is what a
    device may hold.  ``placement`` is that of a mixture of experts, whose requests each name the
    matrix that their axes are rows of.
    """

    model: TransformerModel
    batch: BatchBlock
    strategy: StrategyBlock
    efficiency: EfficiencyBlock
    memory_bytes: Count
    prediction: PredictionBlock
    placement: PlacementBlock | ExpertRanksBlock | None = None

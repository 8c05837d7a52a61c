"""``estimate --json`` and ``plan --json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from p2smt.collectives.names import RequestKind
from p2smt.programs.basis import ProofBasis
from p2smt.report.outputs.shape import (
    Bytes,
    Count,
    Error,
    Gap,
    Output,
    Part,
    PayloadBytes,
    RankMatrix,
    Ratio,
    Said,
    Seconds,
)
from p2smt.result import Status

StrategyWords = Annotated[
    str, Said("As --strategy takes it, such as tp=8,pp=4,dp=2,cp=1,vpp=1,mbs=1.")
]
AxisNames = Annotated[
    Sequence[Literal["pp", "dp", "cp", "tp"]], Said("The rows of matrices, in order.")
]


@dataclass(frozen=True, kw_only=True)
class DenseModel(Part):
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
    sources: Sequence[str]
    parameters: Annotated[Count, Said("Elements of all matrices.")]


@dataclass(frozen=True, kw_only=True)
class FrameworkFacts(Part):
    """What the framework overlaps."""

    name: str
    tp_hidden: Annotated[bool, Said("Collectives of tp run beside products.")]
    pp_hidden: Annotated[Ratio, Said("Part of sends that interleaving hides.")]
    dp_hidden: Annotated[bool, Said("Gradients are reduced in the backward pass.")]
    fetch_hidden: Annotated[bool, Said("ZeRO-3 gathers while layers compute.")]
    gradient_bytes: Annotated[Count, Said("Of an element as it is reduced.")]
    gradient_bytes_fp16: Annotated[Count, Said("The same of a training in fp16.")]
    attention: Annotated[Ratio, Said("Of fused attention to matrix products.")]


@dataclass(frozen=True, kw_only=True)
class ReachedEfficiency(Part):
    """What of the peak a framework reaches on a device."""

    name: str
    device: str
    framework: FrameworkFacts
    fraction: Annotated[Ratio, Said("Of peak and memory bandwidth.")]
    layer_s: Annotated[Seconds, Said("Seconds of each layer besides.")]
    runs: Annotated[Count, Said("Measured runs that it was fitted to.")]
    error: Annotated[Error, Said("Mean relative error on groups left out.")]


@dataclass(frozen=True, kw_only=True)
class StrategyDegrees(Part):
    """A strategy field by field, under the keys of its text."""

    tp: Count
    pp: Count
    dp: Count
    cp: Count
    vpp: Annotated[Count, Said("Chunks of a stage.")]
    mbs: Annotated[Count, Said("Sequences of a micro-batch.")]
    sp: Annotated[bool, Said("Sequence parallelism.")]
    zero: Annotated[Count, Said("Stage of ZeRO.")]
    recompute: Literal["none", "selective", "full"]
    flash: Annotated[bool, Said("Fused attention.")]
    dtype: str
    split: Annotated[Sequence[Count] | None, Said("Layers of each chunk; null: an even split.")]


@dataclass(frozen=True, kw_only=True)
class MemoryByPart(Part):
    """Bytes of a device of the stage that needs most."""

    parameters: PayloadBytes
    gradients: PayloadBytes
    optimizer: PayloadBytes
    activations: PayloadBytes
    stage: Annotated[Count, Said("The stage; the first is 0.")]


@dataclass(frozen=True, kw_only=True)
class IterationRequest(Part):
    """What a device asks of some axes; times but ``call_s`` are of an iteration."""

    name: str
    kind: RequestKind
    axes: Sequence[str]
    bytes: Annotated[PayloadBytes, Said("The whole vector.")]
    times: Annotated[Count, Said("Calls of an iteration.")]
    cover: Annotated[str, Said("The work that it hides under, in words.")]
    call_s: Seconds
    visible_s: Seconds
    hidden_s: Seconds


@dataclass(frozen=True, kw_only=True)
class StrategyFigures(Part):
    """A strategy on a placement, with what is predicted of it."""

    strategy: StrategyWords
    degrees: StrategyDegrees
    matrix: Annotated[RankMatrix | None, Said("null: ranks in order, which no matrix expresses.")]
    iteration_s: Seconds
    parts: Annotated[
        Mapping[str, Seconds],
        Said("compute, bubble, what shows of each axis, optimizer: they sum up."),
    ]
    hidden: Annotated[Mapping[str, Seconds], Said("Of each axis, what runs beside other parts.")]
    memory_bytes: Annotated[PayloadBytes, Said("That a device needs.")]
    memory: MemoryByPart
    capacity_bytes: Annotated[PayloadBytes, Said("That a device may hold.")]
    fits: bool
    tokens_per_s: Annotated[Ratio, Said("Of all devices.")]
    tflops_per_device: Annotated[Ratio, Said("10^12 flop/s of the model, nothing computed twice.")]
    mfu: Annotated[Ratio, Said("That over the device's peak.")]
    requests: Sequence[IterationRequest]


@dataclass(frozen=True, kw_only=True)
class TrainingOutput(Output):
    """What is trained, where, and by which constants."""

    model: DenseModel
    topology: str
    devices: Count
    global_batch: Count
    sequence: Count
    efficiency: ReachedEfficiency
    efficiency_default: Annotated[bool, Said("It is the one taken without --efficiency.")]
    efficiency_notes: Annotated[
        Sequence[str], Said("How it is of another device or framework, in words.")
    ]
    axes: AxisNames


@dataclass(frozen=True, kw_only=True)
class EstimateOutput(TrainingOutput, StrategyFigures):
    """Time and memory of one strategy."""


# `plan --json`.


@dataclass(frozen=True, kw_only=True)
class ClosedCounts(Part):
    """How strategies and placements were closed: each under one of the ways."""

    strategies: Annotated[Count, Said("That obey every rule.")]
    too_large: Annotated[Count, Said("That do not fit into memory.")]
    lacking: Annotated[Count, Said("That the launcher cannot run.")]
    unplaced: Annotated[Count, Said("Without a placement under the rules.")]
    bounded: Annotated[Count, Said("Closed by a bound.")]
    evaluated: Annotated[Count, Said("Whose placements were looked at.")]
    open: Annotated[Count, Said("Left at a limit.")]
    placements: Annotated[Count, Said("Pairs of strategy and matrix.")]
    placements_priced: Count
    placements_bounded: Count
    placements_excluded: Annotated[
        Count, Said("Of strategies too large or lacking, which were not looked at.")
    ]
    placements_open: Count


@dataclass(frozen=True, kw_only=True)
class SpaceRange(Part):
    """A field of strategies and the values that were searched."""

    name: str
    values: str


@dataclass(frozen=True, kw_only=True)
class FoundProgram(Part):
    """A request of the best strategy with its program; times are of one execution."""

    kind: RequestKind
    axes: Sequence[str]
    program: Annotated[str | None, Said("null: a send, which has none.")]
    seconds: Seconds
    single_collective_s: Seconds
    status: Annotated[Status, Said("optimal: no program is faster.")]


@dataclass(frozen=True, kw_only=True)
class RankedStrategy(StrategyFigures):
    """A strategy with what requests cost by --prices."""

    alike: Annotated[
        Sequence[StrategyWords],
        Said("At the same time, other only in dp, cp and micro-batch."),
    ]


@dataclass(frozen=True, kw_only=True)
class BestStrategy(StrategyFigures):
    """The best strategy with its programs: its figures are those with them."""

    collectives_s: Annotated[Seconds, Said("Of an iteration with one collective for each request.")]
    programs: Sequence[FoundProgram]


@dataclass(frozen=True, kw_only=True)
class StrategySeconds(Part):
    """A strategy and the time of an iteration on its best placement."""

    strategy: StrategyWords
    iteration_s: Seconds


@dataclass(frozen=True, kw_only=True)
class NearestStrategy(StrategySeconds):
    """The near-optimal strategy that is nearest to a measured one."""

    degrees: StrategyDegrees
    run: Annotated[str, Said("The measured run.")]
    run_degrees: StrategyDegrees
    distance: Annotated[
        Ratio, Said("In doublings of degrees and switches that differ; 0: the same.")
    ]


@dataclass(frozen=True, kw_only=True)
class MissingMemory(Part):
    """The strategy that comes nearest to fitting, where none does."""

    strategy: StrategyWords
    degrees: StrategyDegrees
    bytes_needed: PayloadBytes
    bytes_given: PayloadBytes
    missing_bytes: Bytes
    help: Annotated[Sequence[str], Said("What would help, in words.")]


@dataclass(frozen=True, kw_only=True)
class OptionsOf(Part):
    """The best strategy as a trainer takes it."""

    trainer: str
    text: Annotated[str | None, Said("Options or a file; null: it lacks something.")]
    notes: Annotated[Sequence[str], Said("What else it needs, in words.")]
    lacks: Annotated[Sequence[str], Said("What the strategy needs and it has not.")]


@dataclass(frozen=True, kw_only=True)
class SearchWork(Part):
    """How the answer was found."""

    wall_s: Seconds
    counters: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class PlanOutput(TrainingOutput):
    """The best strategy and placement, with a proof, and the strategies near it."""

    status: Status
    basis: Annotated[
        Sequence[ProofBasis],
        Said("Why no program is missed, of a proof; empty: it is not of programs."),
    ]
    interrupted: Annotated[bool, Said("Stopped by the user: the best so far.")]
    objective_s: Annotated[Seconds | None, Said("Of an iteration; null: none.")]
    bound_s: Annotated[
        Seconds | None, Said("That no strategy of the space beats; null: not known.")
    ]
    proof: Annotated[str, Said("What is proved, in words.")]
    strategies: Annotated[Count, Said("In the space that was searched.")]
    placements: Annotated[Count, Said("Pairs of strategy and matrix.")]
    counts: ClosedCounts
    space: Sequence[SpaceRange]
    prices: Literal["collectives", "programs"]
    best: BestStrategy | None
    free_bytes: Annotated[PayloadBytes, Said("Kept free on a device.")]
    top: Sequence[RankedStrategy]
    ranking: Annotated[Status, Said("complete: proved to be in this order.")]
    near_optimal: Annotated[Count | None, Said("Strategies near the best, itself among them.")]
    near_optimal_distinct: Annotated[Count | None, Said("The same, those alike counted once.")]
    near_optimal_within: Annotated[
        Gap | None, Said("How near: 0.05 is at most five per cent slower.")
    ]
    near_optimal_status: Annotated[
        Literal["complete", "truncated"] | None,
        Said("complete: there are no others; truncated: at least these."),
    ]
    near_optimal_strategies: Sequence[StrategySeconds]
    common: Annotated[Mapping[str, str], Said("What they have in common.")]
    varies: Annotated[Mapping[str, Sequence[str]], Said("What they differ in.")]
    nearest: NearestStrategy | None
    outside: Annotated[Sequence[str], Said("How the best lies outside everything measured.")]
    shortfall: Annotated[MissingMemory | None, Said("Where nothing fits.")]
    reason: Annotated[str | None, Said("Why there is no answer, or no proof, in words.")]
    options: Annotated[Sequence[OptionsOf], Said("The best strategy for each trainer.")]
    notes: Annotated[Sequence[str], Said("Programs of the plan file that are not proved the best.")]
    stats: SearchWork

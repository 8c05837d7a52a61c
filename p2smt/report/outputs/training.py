"""``estimate --json`` and ``plan --json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from p2smt.collectives.dispatch import KindName
from p2smt.programs.program import ProofBasis
from p2smt.report.outputs.anchor import AnchorFields
from p2smt.report.outputs.answers import ComparisonFields
from p2smt.report.outputs.changed_numbers import TrainedWhatIfRows
from p2smt.report.outputs.shape import (
    Bytes,
    Count,
    Gap,
    Noted,
    Output,
    OutputPart,
    PayloadBytes,
    PriceBasisWord,
    RangeSeconds,
    RankMatrix,
    Ratio,
    Said,
    Seconds,
)
from p2smt.report.outputs.solve import NearStatus
from p2smt.result import Status
from p2smt.training.efficiency import Efficiency
from p2smt.training.prediction import MemoryParts
from p2smt.training.search.hosts.hosted_answer import HostsSearched
from p2smt.training.search.plan_answer import SpaceCounts
from p2smt.training.search.question import Prices
from p2smt.training.strategy import Recompute

StrategyWords = Annotated[
    str, Said("As --strategy takes it, such as tp=8,pp=4,dp=2,cp=1,vpp=1,mbs=1.")
]
AxisNames = Annotated[
    Sequence[Literal["pp", "dp", "cp", "tp"]], Said("The rows of matrices, in order.")
]


class DenseModel(OutputPart):
    """A decoder transformer by its sizes; ``ffn`` 0 where no MLP is dense."""

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
    active: Annotated[Count | None, Said("Those that a token meets; of mixtures.")] = None
    kinds: Annotated[str | None, Said("How many layers of which kind, unless all are dense.")] = (
        None
    )


_FRAMEWORK = Noted(
    tp_hidden=Said("Collectives of tp run beside products."),
    pp_hidden=Said("Part of sends that interleaving hides.", ge=0),
    dp_hidden=Said("Gradients are reduced in the backward pass."),
    fetch_hidden=Said("ZeRO-3 gathers while layers compute."),
    gradient_bytes=Said("Of an element as it is reduced.", ge=0),
    gradient_bytes_fp16=Said("The same of a training in fp16.", ge=0),
    attention=Said("Of fused attention to matrix products.", ge=0),
    loss_bytes=Said("Of an element of the logits at the peak of the loss.", ge=0),
)


ReachedEfficiency = Annotated[
    Efficiency,
    Noted(
        framework=_FRAMEWORK,
        fraction=Said("Of peak and memory bandwidth.", ge=0),
        layer_s=Said("Seconds of each layer besides.", ge=0),
        runs=Said("Measured runs that it was fitted to.", ge=0),
        error=Said("Mean relative error on groups left out.", ge=0),
    ),
]


class SearchedDegrees(OutputPart):
    """A strategy of a dense model field by field, under the keys of its text."""

    tp: Count
    pp: Count
    dp: Count
    cp: Count
    vpp: Annotated[Count, Said("Chunks of a stage.")]
    mbs: Annotated[Count, Said("Sequences of a micro-batch.")]
    sp: Annotated[bool, Said("Sequence parallelism.")]
    zero: Annotated[Count, Said("Stage of ZeRO.")]
    recompute: Recompute
    flash: Annotated[bool, Said("Fused attention.")]
    dtype: str
    split: Annotated[Sequence[Count] | None, Said("Layers of each chunk; null: an even split.")]


class StrategyDegrees(SearchedDegrees):
    """A strategy field by field; those of mixtures and low precision where they are not usual."""

    ep: Annotated[Count | None, Said("Expert parallelism.")] = None
    etp: Annotated[Count | None, Said("Tensor parallelism of experts.")] = None
    dispatcher: Annotated[str | None, Said("alltoall or flex.")] = None
    overlap: Annotated[bool | None, Said("Dispatch runs beside computing.")] = None
    modules: Annotated[Sequence[str] | None, Said("Computed again one by one.")] = None
    graphs: Annotated[str | None, Said("Kernels that are captured: partial or full.")] = None
    fp8_attention: Annotated[bool | None, Said("Core of attention in 8 bits.")] = None
    fp8_params: Annotated[bool | None, Said("Parameters are kept in low precision.")] = None
    dropout: Annotated[bool | None, Said("Masks of dropout are kept.")] = None
    recompute_layers: Annotated[
        Count | None, Said("Layers of a chunk, from its first, that are computed again whole.")
    ] = None
    dp_replicate: Annotated[Count | None, Said("Copies of what ZeRO shards (HSDP).")] = None
    shared_overlap: Annotated[bool | None, Said("Dispatch runs beside shared experts.")] = None
    mtp_chunk: Annotated[
        Count | None, Said("Chunk with multi-token prediction, from 1; else it is the last.")
    ] = None
    imbalance: Annotated[
        float | None, Said("Tokens of the busiest rank to those of a balanced routing.", ge=1)
    ] = None
    optimizer_bytes: Annotated[Count | None, Said("Of a parameter.")] = None
    offload: Annotated[
        float | None, Said("Part of the layers with activations on the host.", ge=0, le=1)
    ] = None


MemoryByPart = Annotated[
    MemoryParts,
    Noted(
        parameters=Said(ge=0),
        gradients=Said(ge=0),
        optimizer=Said(ge=0),
        activations=Said(ge=0),
        stage=Said("The stage; the first is 0.", ge=0),
    ),
]


class IterationRequest(OutputPart):
    """What a device asks of some axes; times but ``call_s`` are of an iteration."""

    name: str
    kind: KindName
    axes: Sequence[str]
    bytes: Annotated[PayloadBytes, Said("The whole vector.")]
    times: Annotated[Count, Said("Calls of an iteration.")]
    cover: Annotated[str, Said("The work that it hides under, in words.")]
    call_s: Seconds
    visible_s: Seconds
    hidden_s: Seconds
    range_s: Annotated[RangeSeconds, Said("Of a call.")]
    basis: PriceBasisWord


class NamedStrategy(OutputPart):
    """A strategy, as text and field by field."""

    strategy: StrategyWords
    degrees: StrategyDegrees


class PredictedFigures(OutputPart):
    """What is predicted of a strategy on a placement."""

    matrix: Annotated[RankMatrix | None, Said("null: ranks in order, which no matrix expresses.")]
    expert_matrix: Annotated[RankMatrix | None, Said("Of a mixture, over the same devices.")] = None
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
    memory_verdict: Annotated[
        Literal["fits", "tight", "does not fit"],
        Said("tight: it fits, but of published runs that near to the capacity some failed."),
    ]
    tokens_per_s: Annotated[Ratio, Said("Of all devices.")]
    tflops_per_device: Annotated[Ratio, Said("10^12 flop/s of the model, nothing computed twice.")]
    mfu: Annotated[Ratio, Said("That over the device's peak.")]
    requests: Sequence[IterationRequest]
    range_s: Annotated[
        RangeSeconds, Said("Of an iteration, by errors of what was left out of fits and of links.")
    ]
    basis: PriceBasisWord
    range_why: Annotated[str, Said("What the range rests on, in words.")]
    communication_range_s: Annotated[
        RangeSeconds, Said("Of an iteration, by its communication alone; null: there is none.")
    ]
    communication_basis: PriceBasisWord


class HostFigures(OutputPart):
    """Where ranks lie on named hosts, in the place of matrices."""

    host_order: Annotated[
        Sequence[str] | None, Said("Named hosts in the order of their ranks, each with a node's.")
    ] = None
    idle: Annotated[Sequence[str] | None, Said("Of the job's hosts those without ranks.")] = None
    inside: Annotated[
        RankMatrix | None, Said("On named hosts the matrix inside each node: axes by levels there.")
    ] = None
    expert_hosts: Annotated[
        Sequence[str] | None,
        Said("Of a mixture that was searched: in the order of experts' ranks."),
    ] = None
    experts_inside: Annotated[
        RankMatrix | None, Said("The same of experts: a row for each of pp, ed, ep, et.")
    ] = None


class KnownRuns(OutputPart):
    """What the measured runs that the constants were fitted to say of a strategy."""

    outside: Annotated[Sequence[str], Said("Values that no run had, in words.")]
    runs: Annotated[Count, Said("That the constants were fitted to.")]
    like: Annotated[Count, Said("Of these within two doublings or switches.")]
    error: Annotated[
        Ratio | None, Said("Mean relative error of those, their model left out; null: unknown.")
    ]
    nearest: Annotated[str | None, Said("The run that is nearest.")]
    distance: Annotated[Ratio | None, Said("Of that one, in doublings and switches.")]


class StrategyFigures(PredictedFigures, NamedStrategy):
    """A strategy on a placement, with what is predicted of it."""


class TrainedModel(OutputPart):
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


class RowNames(OutputPart):
    """Of what matrices have rows."""

    axes: AxisNames
    expert_axes: Annotated[Sequence[str] | None, Said("Rows of expert_matrix.")] = None


UnmeasuredKinds = Annotated[
    Sequence[str] | None,
    Said("Collectives of the strategy that the calibration of the links did not measure."),
]
Anchored = Annotated[
    AnchorFields | None, Said("What --measured tells; absent: nothing was measured.")
]
Compared = Annotated[
    ComparisonFields | None, Said("With --compare: what is run now beside the best.")
]
UntoldStrategies = Annotated[
    str | None,
    Said("Why these constants do not tell strategies apart, in words; null: they do."),
]


class EstimateOutput(HostFigures, PredictedFigures, RowNames, NamedStrategy, TrainedModel, Output):
    """Time and memory of one strategy."""

    known: KnownRuns
    untold: UntoldStrategies
    what_if: TrainedWhatIfRows = None
    anchor: Anchored = None
    unmeasured: UnmeasuredKinds = None


# `plan --json`.


ClosedCounts = Annotated[
    SpaceCounts,
    Noted(
        strategies=Said("That obey every rule.", ge=0),
        too_large=Said("That do not fit into memory.", ge=0),
        lacking=Said("That the launcher cannot run.", ge=0),
        unplaced=Said("Without a placement under the rules.", ge=0),
        bounded=Said("Closed by a bound.", ge=0),
        evaluated=Said("Whose placements were looked at.", ge=0),
        open=Said("Left at a limit.", ge=0),
        placements=Said("Pairs of strategy and matrix.", ge=0),
        placements_priced=Said(ge=0),
        placements_bounded=Said(ge=0),
        placements_excluded=Said(
            "Of strategies too large or lacking, which were not looked at.", ge=0
        ),
        placements_open=Said(ge=0),
    ),
]


class SpaceRange(OutputPart):
    """A field of strategies and the values that were searched."""

    name: str
    values: str


class FoundProgram(OutputPart):
    """A request of the best strategy with its program; times are of one execution."""

    kind: KindName
    axes: Sequence[str]
    program: Annotated[str | None, Said("null: a send, which has none.")]
    seconds: Seconds
    single_collective_s: Seconds
    status: Annotated[Status, Said("optimal: no program is faster.")]


class RankedStrategy(StrategyFigures):
    """A strategy with what requests cost by --prices."""

    alike: Annotated[
        Sequence[StrategyWords],
        Said("At the same time, other only in dp, cp and micro-batch."),
    ]


class BestStrategy(StrategyFigures):
    """A strategy with its programs: its figures are those with them."""

    collectives_s: Annotated[Seconds, Said("Of an iteration with one collective for each request.")]
    programs: Sequence[FoundProgram]
    known: KnownRuns


class StrategySeconds(OutputPart):
    """A strategy and the time of an iteration on its best placement."""

    strategy: StrategyWords
    iteration_s: Seconds


class NearestStrategy(NamedStrategy):
    """The near-optimal strategy that is nearest to a measured one."""

    iteration_s: Seconds
    run: Annotated[str, Said("The measured run.")]
    run_degrees: SearchedDegrees
    run_strategy: Annotated[StrategyWords | None, Said("All of it, of a mixture.")] = None
    distance: Annotated[
        Ratio, Said("In doublings of degrees and switches that differ; 0: the same.")
    ]


class MissingMemory(NamedStrategy):
    """The strategy that comes nearest to fitting, where none does."""

    bytes_needed: PayloadBytes
    bytes_given: PayloadBytes
    missing_bytes: Bytes
    help: Annotated[Sequence[str], Said("What would help, in words.")]


class OptionsOf(OutputPart):
    """The recommended strategy as a trainer takes it."""

    trainer: str
    text: Annotated[str | None, Said("Options or a file; null: it lacks something.")]
    notes: Annotated[Sequence[str], Said("What else it needs, in words.")]
    lacks: Annotated[Sequence[str], Said("What the strategy needs and it has not.")]


class SearchWork(OutputPart):
    """How the answer was found."""

    wall_s: Seconds
    counters: Mapping[str, int]


class PlanStatus(OutputPart):
    """What was searched, and what is proved."""

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


class PlanTerms(OutputPart):
    """What the search counted with."""

    prices: Prices
    free_bytes: Annotated[PayloadBytes, Said("Kept free on a device.")]


class RankedStrategies(OutputPart):
    """The best strategies."""

    best: Annotated[BestStrategy | None, Said("The fastest in the model.")]
    recommended: Annotated[BestStrategy | None, Said("The one to run, which files are of.")]
    recommended_number: Annotated[
        Count | None, Said("Its number in the list, from 1: of top, or the one after it.")
    ]
    recommended_why: Annotated[str | None, Said("Why it is that one, in words.")]
    top: Sequence[RankedStrategy]
    ranking: Annotated[Status, Said("complete: proved to be in this order.")]


class NearStrategiesFound(OutputPart):
    """The strategies near the best."""

    near_optimal: Annotated[Count | None, Said("Strategies near the best, itself among them.")]
    near_optimal_distinct: Annotated[Count | None, Said("The same, those alike counted once.")]
    near_optimal_within: Annotated[
        Gap | None, Said("How near: 0.05 is at most five per cent slower.")
    ]
    near_optimal_status: Annotated[
        NearStatus | None,
        Said("complete: there are no others; truncated: at least these."),
    ]
    near_optimal_strategies: Sequence[StrategySeconds]
    common: Annotated[Mapping[str, str], Said("What they have in common.")]
    varies: Annotated[Mapping[str, Sequence[str]], Said("What they differ in.")]
    nearest: NearestStrategy | None


class PlanOutput(
    NearStrategiesFound, RankedStrategies, RowNames, PlanTerms, TrainedModel, PlanStatus, Output
):
    """The best strategy and placement, with a proof, and the strategies near it."""

    outside: Annotated[Sequence[str], Said("How the best lies outside everything measured.")]
    untold: UntoldStrategies
    shortfall: Annotated[MissingMemory | None, Said("Where nothing fits.")]
    reason: Annotated[str | None, Said("Why there is no answer, or no proof, in words.")]
    options: Annotated[Sequence[OptionsOf], Said("The recommended one for each trainer.")]
    notes: Annotated[Sequence[str], Said("Programs of the plan file that are not proved the best.")]
    stats: SearchWork
    what_if: TrainedWhatIfRows = None
    anchor: Anchored = None
    unmeasured: UnmeasuredKinds = None
    comparison: Compared = None


# `plan --hosts --json`.


class HostedStrategyFigures(HostFigures):
    """A strategy on hosts in an order, with its batch; `estimate --json` has all of it."""

    strategy: StrategyWords
    degrees: SearchedDegrees
    global_batch: Count
    iteration_s: Seconds
    parts: Annotated[
        Mapping[str, Seconds],
        Said("compute, bubble, what shows of each axis, optimizer: they sum up."),
    ]
    range_s: Annotated[
        RangeSeconds, Said("Of an iteration, by errors of what was left out of fits and of links.")
    ]
    basis: PriceBasisWord
    memory_bytes: Annotated[PayloadBytes, Said("That a device needs.")]
    capacity_bytes: Annotated[PayloadBytes, Said("That a device may hold.")]
    tokens_per_s: Annotated[Ratio, Said("Of all devices.")]
    mfu: Annotated[Ratio, Said("Flop/s of the model on a device over its peak.")]


HostsSearchedCounts = Annotated[
    HostsSearched,
    Noted(
        host_counts=Said("Numbers of hosts that were opened.", ge=0),
        strategies=Said("That fill so many hosts, with their batches.", ge=0),
        bounded=Said("Of these, bounded by what their requests take.", ge=0),
        units=Said("Pairs of strategy and matrix inside nodes.", ge=0),
        costed=Said("Orders costed device by device.", ge=0),
        calls=Said("Questions to a solver.", ge=0),
    ),
]
"""How much was looked at."""


class NearOnHosts(OutputPart):
    """A strategy near the best, with its batch."""

    strategy: StrategyWords
    global_batch: Count
    hosts: Annotated[Count, Said("How many it uses.")]
    tokens_per_s: Annotated[Ratio, Said("Of all devices.")]


class PlanHostsOutput(TrainedModel, Output):
    """The degrees, batch, hosts and order of most tokens a second; ``global_batch``: the largest
    that was asked for."""

    status: Status
    proof: Annotated[str, Said("What is proved, in words.")]
    interrupted: Annotated[bool, Said("Stopped by the user: the best so far.")]
    least_batch: Annotated[Count, Said("The least batch that was asked for.")]
    free_bytes: Annotated[PayloadBytes, Said("Kept free on a device.")]
    hosts: Annotated[Sequence[str], Said("Of the job, as listed.")]
    tokens_per_s: Annotated[Ratio | None, Said("Of the best; null: nothing was found.")]
    bound_tokens_per_s: Annotated[Ratio | None, Said("That no answer exceeds; null: not known.")]
    best: HostedStrategyFigures | None
    round: Annotated[
        HostedStrategyFigures | None,
        Said("The best with the roundest batch of a range; null: that is the best, or none."),
    ]
    known: Annotated[KnownRuns | None, Said("Of the best.")]
    recommended: Annotated[
        HostedStrategyFigures | None, Said("The one to run, which files are of.")
    ]
    recommended_number: Annotated[
        Count | None, Said("Its number in the list, from 1: of top, or the one after it.")
    ]
    recommended_why: Annotated[str | None, Said("Why it is that one, in words.")]
    recommended_known: Annotated[KnownRuns | None, Said("Of the one to run.")]
    top: Annotated[
        Sequence[HostedStrategyFigures],
        Said("The fastest strategies, each on the fastest order that was found for it."),
    ]
    near_optimal: Annotated[
        Count | None, Said("Strategies near the best, itself among them; null: not looked for.")
    ]
    near_optimal_within: Annotated[
        Gap | None, Said("How near: 0.05 is at most five per cent slower, a sequence each.")
    ]
    near_optimal_status: Annotated[
        NearStatus | None, Said("complete: there are no others; truncated: at least these.")
    ]
    near_optimal_strategies: Sequence[NearOnHosts]
    untold: UntoldStrategies
    shortfall: Annotated[MissingMemory | None, Said("Where nothing fits.")]
    searched: HostsSearchedCounts
    wall_s: Seconds
    what_if: TrainedWhatIfRows = None
    anchor: Anchored = None
    comparison: Compared = None

"""`plan --json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.collectives.names import RequestKind
from p2smt.programs.check import ProofBasis
from p2smt.report.schemas.orders import Bytes, Count, Gap, OutputPart, PayloadBytes, Ratio, Seconds
from p2smt.report.schemas.workload.estimate import (
    StrategyDegrees,
    StrategyFigures,
    StrategyWords,
    TrainingOutput,
)
from p2smt.result import Status


class ClosedCounts(OutputPart):
    """How strategies and placements were closed: each under one of the ways."""

    strategies: Annotated[Count, Field(description="That obey every rule.")]
    too_large: Annotated[Count, Field(description="That do not fit into memory.")]
    lacking: Annotated[Count, Field(description="That the launcher cannot run.")]
    unplaced: Annotated[Count, Field(description="Without a placement under the rules.")]
    bounded: Annotated[Count, Field(description="Closed by a bound.")]
    evaluated: Annotated[Count, Field(description="Whose placements were looked at.")]
    open: Annotated[Count, Field(description="Left at a limit.")]
    placements: Annotated[Count, Field(description="Pairs of strategy and matrix.")]
    placements_priced: Count
    placements_bounded: Count
    placements_excluded: Annotated[
        Count, Field(description="Of strategies too large or lacking, which were not looked at.")
    ]
    placements_open: Count


class SpaceRange(OutputPart):
    """A field of strategies and the values that were searched."""

    name: str
    values: str


class FoundProgram(OutputPart):
    """A request of the best strategy with its program; times are of one execution."""

    kind: RequestKind
    axes: list[str]
    program: Annotated[str | None, Field(description="null: a send, which has none.")]
    seconds: Seconds
    single_collective_s: Seconds
    status: Annotated[Status, Field(description="optimal: no program is faster.")]


class RankedStrategy(StrategyFigures):
    """A strategy with what requests cost by --prices."""

    alike: Annotated[
        list[StrategyWords],
        Field(description="At the same time, other only in dp, cp and micro-batch."),
    ]


class BestStrategy(StrategyFigures):
    """The best strategy with its programs: its figures are those with them."""

    collectives_s: Annotated[
        Seconds, Field(description="Of an iteration with one collective for each request.")
    ]
    programs: list[FoundProgram]


class StrategySeconds(OutputPart):
    """A strategy and the time of an iteration on its best placement."""

    strategy: StrategyWords
    iteration_s: Seconds


class NearestStrategy(StrategySeconds):
    """The near-optimal strategy that is nearest to a measured one."""

    degrees: StrategyDegrees
    run: Annotated[str, Field(description="The measured run.")]
    run_degrees: StrategyDegrees
    distance: Annotated[
        Ratio, Field(description="In doublings of degrees and switches that differ; 0: the same.")
    ]


class MissingMemory(OutputPart):
    """The strategy that comes nearest to fitting, where none does."""

    strategy: StrategyWords
    degrees: StrategyDegrees
    bytes_needed: PayloadBytes
    bytes_given: PayloadBytes
    missing_bytes: Bytes
    help: Annotated[list[str], Field(description="What would help, in words.")]


class OptionsOf(OutputPart):
    """The best strategy as a trainer takes it."""

    trainer: str
    text: Annotated[str | None, Field(description="Options or a file; null: it lacks something.")]
    notes: Annotated[list[str], Field(description="What else it needs, in words.")]
    lacks: Annotated[list[str], Field(description="What the strategy needs and it has not.")]


class SearchWork(OutputPart):
    """How the answer was found."""

    wall_s: Seconds
    counters: dict[str, int]


class PlanOutput(TrainingOutput):
    """The best strategy and placement, with a proof, and the strategies near it."""

    status: Status
    basis: Annotated[
        list[ProofBasis],
        Field(description="Why no program is missed, of a proof; empty: it is not of programs."),
    ]
    interrupted: Annotated[bool, Field(description="Stopped by the user: the best so far.")]
    objective_s: Annotated[Seconds | None, Field(description="Of an iteration; null: none.")]
    bound_s: Annotated[
        Seconds | None, Field(description="That no strategy of the space beats; null: not known.")
    ]
    proof: Annotated[str, Field(description="What is proved, in words.")]
    strategies: Annotated[Count, Field(description="In the space that was searched.")]
    placements: Annotated[Count, Field(description="Pairs of strategy and matrix.")]
    counts: ClosedCounts
    space: list[SpaceRange]
    prices: Literal["collectives", "programs"]
    best: BestStrategy | None
    free_bytes: Annotated[PayloadBytes, Field(description="Kept free on a device.")]
    top: list[RankedStrategy]
    ranking: Annotated[Status, Field(description="complete: proved to be in this order.")]
    near_optimal: Annotated[
        Count | None, Field(description="Strategies near the best, itself among them.")
    ]
    near_optimal_distinct: Annotated[
        Count | None, Field(description="The same, those alike counted once.")
    ]
    near_optimal_within: Annotated[
        Gap | None, Field(description="How near: 0.05 is at most five per cent slower.")
    ]
    near_optimal_status: Annotated[
        Literal["complete", "truncated"] | None,
        Field(description="complete: there are no others; truncated: at least these."),
    ]
    near_optimal_strategies: list[StrategySeconds]
    common: Annotated[dict[str, str], Field(description="What they have in common.")]
    varies: Annotated[dict[str, list[str]], Field(description="What they differ in.")]
    nearest: NearestStrategy | None
    outside: Annotated[
        list[str], Field(description="How the best lies outside everything measured.")
    ]
    shortfall: Annotated[MissingMemory | None, Field(description="Where nothing fits.")]
    reason: Annotated[
        str | None, Field(description="Why there is no answer, or no proof, in words.")
    ]
    options: Annotated[list[OptionsOf], Field(description="The best strategy for each trainer.")]
    notes: Annotated[
        list[str], Field(description="Programs of the plan file that are not proved the best.")
    ]
    stats: SearchWork

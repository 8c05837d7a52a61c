"""`estimate` as data, what of it `plan --json` says of each strategy, and `plan --compare`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from p2smt.api.efficiencies import efficiency_notes, is_default, known_of
from p2smt.api.planning import Planned, TrainerOptions
from p2smt.api.what_if import WhatIf
from p2smt.cluster.topology import Topology
from p2smt.plans.solution import RequestAnswer
from p2smt.programs.program import bases_of
from p2smt.report.outputs.anchor import AnchoredRow, AnchorFields
from p2smt.report.outputs.answers import (
    ComparedChange,
    ComparedFigures,
    ComparisonFields,
    MeasuredLike,
)
from p2smt.report.outputs.shape import range_data
from p2smt.report.outputs.solve import NearStatus
from p2smt.report.outputs.training import (
    AxisNames,
    BestStrategy,
    DenseModel,
    EstimateOutput,
    FoundProgram,
    HostedStrategyFigures,
    HostFigures,
    IterationRequest,
    KnownRuns,
    MissingMemory,
    NamedStrategy,
    NearestStrategy,
    NearOnHosts,
    NearStrategiesFound,
    OptionsOf,
    PlanHostsOutput,
    PlanOutput,
    PlanStatus,
    PredictedFigures,
    RankedStrategies,
    RankedStrategy,
    SearchedDegrees,
    SearchWork,
    SpaceRange,
    StrategyDegrees,
    StrategyFigures,
    StrategySeconds,
    TrainedModel,
)
from p2smt.report.training.model_list import layers_text
from p2smt.report.training.run_words import proof_words, time_parts, unmeasured, untold_words
from p2smt.report.what_if_rows import training_data
from p2smt.result import Status, known_bound
from p2smt.training.efficiency import Efficiency
from p2smt.training.gain import RateGain
from p2smt.training.iteration import EstimateRange, estimate_range
from p2smt.training.measured.anchor import Anchor, AnchoredRun
from p2smt.training.measured.prediction_errors import iteration_range
from p2smt.training.prediction import Prediction, RunEstimate
from p2smt.training.present.changes import SingleChange
from p2smt.training.present.comparison import NearMeasured, RunComparison
from p2smt.training.search.hosts.hosted_answer import HostedStrategy
from p2smt.training.search.known import Known
from p2smt.training.search.plan_answer import NearRun, NearStrategies, Shortfall
from p2smt.training.strategy import (
    AXES,
    EXPERT_AXES,
    MIXTURE_FIELDS,
    Batch,
    Strategy,
    key_of,
    strategy_text,
)
from p2smt.training.training_plan import TrainingPlan
from p2smt.training.transformer import DENSE_KEYS, Transformer

if TYPE_CHECKING:
    from p2smt.api.host_plan import PlannedOnHosts


def estimate_data(
    found: RunEstimate, rows: Sequence[WhatIf] | None = None, own: Anchor | None = None
) -> EstimateOutput:
    """What `estimate` prints."""
    trained = trained_data(found.run.model, found.run.batch, found.topology, found.efficiency)
    return EstimateOutput(
        **vars(trained),
        **vars(_named(found.run.strategy)),
        axes=cast(AxisNames, AXES),
        **vars(_figures(found)),
        expert_axes=list(EXPERT_AXES) if found.experts else None,
        known=known_data(known_of(found)),
        untold=untold_words(found.efficiency) or None,
        what_if=None if rows is None else training_data(rows),
        anchor=None if own is None else _anchor(own, [found]),
        unmeasured=unmeasured(found) or None,
        **vars(_on_hosts(found)),
    )


def trained_data(
    model: Transformer, batch: Batch, topology: Topology, efficiency: Efficiency, launcher: str = ""
) -> TrainedModel:
    """What is trained, and by which efficiency: whether nobody asked for another, what is odd."""
    return TrainedModel(
        model=_model(model),
        topology=topology.name,
        devices=topology.installed,
        global_batch=batch.sequences,
        sequence=batch.tokens,
        efficiency=efficiency,
        efficiency_default=is_default(topology, efficiency, launcher),
        efficiency_notes=list(efficiency_notes(topology, efficiency, launcher)),
    )


def _model(model: Transformer) -> DenseModel:
    """A model's sizes and its number of parameters."""
    sizes = {key: getattr(model, key) for key in DENSE_KEYS}
    return DenseModel(
        **sizes,
        sources=model.sources,
        parameters=model.parameters,
        active=model.active_parameters if model.experts else None,
        kinds=None if model.dense else layers_text(model),
    )


def _named(strategy: Strategy) -> NamedStrategy:
    """A strategy as its text, and its degrees by name."""
    return NamedStrategy(strategy=strategy_text(strategy), degrees=_all_degrees(strategy))


def _all_degrees(strategy: Strategy) -> StrategyDegrees:
    """The fields of a strategy, under the keys of its text."""
    return StrategyDegrees(**vars(_degrees(strategy)), **_mixture(strategy))


def _degrees(strategy: Strategy) -> SearchedDegrees:
    """Those that strategies of dense models have."""
    return SearchedDegrees(
        tp=strategy.tp,
        pp=strategy.pp,
        dp=strategy.dp,
        cp=strategy.cp,
        vpp=strategy.vpp,
        mbs=strategy.micro_batch,
        sp=strategy.sequence_parallel,
        zero=strategy.zero,
        recompute=strategy.recompute,
        flash=strategy.flash,
        dtype=strategy.dtype,
        split=list(strategy.split) or None,
    )


def _mixture(strategy: Strategy) -> dict[str, Any]:
    """What is not as of a dense model in 16 bits."""
    usual = Strategy()
    found = {name: getattr(strategy, name) for name in (*MIXTURE_FIELDS, "dropout")}
    told = {name: value for name, value in found.items() if value != getattr(usual, name)}
    return told | ({"modules": list(strategy.modules)} if strategy.modules else {})


def _figures(found: RunEstimate) -> PredictedFigures:
    """Time and memory with their parts, and rates; parts sum to the iteration."""
    predicted, parts = found.prediction, time_parts(found.prediction)
    within = estimate_range(found)
    whole = iteration_range(found, within)
    return PredictedFigures(
        matrix=None if found.placement is None else found.placement.matrix,
        expert_matrix=None if found.experts is None else found.experts.matrix,
        iteration_s=found.iteration_s,
        parts={part.name: part.seconds for part in parts},
        hidden={part.name: part.hidden_s for part in parts if part.hidden_s > 0},
        memory_bytes=predicted.memory.total,
        memory=predicted.memory,
        capacity_bytes=found.capacity_bytes,
        fits=found.fits,
        memory_verdict=found.memory_verdict.value,
        tokens_per_s=found.tokens_per_s,
        tflops_per_device=predicted.device_flops_per_s / 1e12,
        mfu=predicted.utilization,
        requests=_requests(predicted, within),
        **range_data(whole),
        range_why=whole.why,
        **range_data(within.iteration, "communication_basis", "communication_range_s"),
    )


def _on_hosts(found: RunEstimate) -> HostFigures:
    """Where ranks lie on named hosts; nothing where a matrix says it."""
    lie = found.on_hosts
    if lie is None:
        return HostFigures()
    attention = HostFigures(host_order=lie.hosts, idle=lie.idle, inside=lie.inside)
    if lie.experts is None:
        return attention
    return replace(attention, expert_hosts=lie.expert_hosts, experts_inside=lie.experts_inside)


def known_data(known: Known) -> KnownRuns:
    near = known.nearest
    return KnownRuns(
        outside=[one.text for one in known.missing],
        runs=known.runs,
        like=known.like,
        error=known.off,
        nearest=None if near is None else near.name,
        distance=None if near is None else known.apart,
    )


def _requests(prediction: Prediction, within: EstimateRange) -> list[IterationRequest]:
    """What a device asks of each axis in an iteration."""
    return [
        IterationRequest(
            name=one.request.name,
            kind=one.request.kind.value,
            axes=one.request.axes,
            bytes=one.request.payload_bytes,
            times=one.request.calls,
            cover=one.request.cover.value,
            call_s=one.call_s,
            visible_s=one.visible_s,
            hidden_s=one.hidden_s,
            **range_data(within.calls.get(one.request.name)),
        )
        for one in prediction.requests
    ]


# `plan --hosts --json`.


def hosts_data(
    found: PlannedOnHosts,
    rows: Sequence[WhatIf] | None = None,
    compared: RunComparison | None = None,
    own: Anchor | None = None,
) -> PlanHostsOutput:
    """What `plan` prints on the hosts of a job; ``compared``: with what somebody runs; ``own``:
    what was measured there."""
    answer, question, run = found.answer, found.answer.question, found.recommended
    batch = replace(question.batch, sequences=answer.batches[1])
    trained = trained_data(
        question.model, batch, question.topology, question.efficiency, question.launcher
    )
    tokens, best, near = batch.tokens, found.estimate, answer.near
    known = bool(answer.best) and answer.bound_s > 0
    return PlanHostsOutput(
        **vars(trained),
        status=answer.status,
        proof=proof_words(answer),
        interrupted=answer.interrupted,
        least_batch=answer.batches[0],
        free_bytes=question.free_bytes,
        hosts=answer.listed,
        tokens_per_s=None if best is None else best.tokens_per_s,
        bound_tokens_per_s=tokens / answer.bound_s if known else None,
        best=None if best is None else _hosted(best),
        round=None if found.round is None else _hosted(found.round),
        known=None if best is None else known_data(known_of(best)),
        recommended=None if run is None else _hosted(run.estimate),
        recommended_number=None if run is None else run.number,
        recommended_why=None if run is None else run.why.value,
        recommended_known=None if run is None else known_data(run.known),
        top=[_hosted(one) for one in found.listed[: question.top]],
        near_optimal=None if near is None else near.count,
        near_optimal_within=None if near is None else near.within,
        near_optimal_status=None if near is None else cast(NearStatus, near.status.value),
        near_optimal_strategies=[
            _near_on_hosts(one, tokens) for one in (() if near is None else near.members)
        ],
        untold=untold_words(question.efficiency) or None,
        shortfall=None if answer.shortfall is None else _shortfall(answer.shortfall),
        searched=answer.searched,
        wall_s=answer.stats.wall_s,
        what_if=None if rows is None else training_data(rows),
        anchor=None if own is None else _anchor(own, found.listed),
        comparison=None if compared is None else comparison_data(compared),
    )


def _anchor(own: Anchor, listed: Sequence[RunEstimate]) -> AnchorFields:
    """What was measured, with the time of the fastest as it will be here."""
    seconds = listed[0].iteration_s if listed else None
    return AnchorFields(
        reached=own.reached,
        links=own.constants.links,
        host_layer_s=own.constants.host_s,
        scaled_s=None if seconds is None else own.scaled(seconds),
        scaled_range_s=None if seconds is None else list(own.range_of(seconds)),
        runs=[_anchored(one) for one in own.runs],
    )


def _anchored(one: AnchoredRun) -> AnchoredRow:
    return AnchoredRow(
        strategy=strategy_text(one.run.strategy),
        measured_s=one.run.step_s,
        predicted_s=one.predicted_s,
        scaled_s=one.scaled_s,
        measured_bytes=one.run.memory_bytes,
        predicted_bytes=one.predicted_bytes,
    )


def _near_on_hosts(one: HostedStrategy, tokens: int) -> NearOnHosts:
    return NearOnHosts(
        strategy=strategy_text(one.run.strategy),
        global_batch=one.sequences,
        hosts=len(one.where.hosts),
        tokens_per_s=tokens / one.sequence_s,
    )


def _hosted(found: RunEstimate) -> HostedStrategyFigures:
    strategy = found.run.strategy
    return HostedStrategyFigures(
        strategy=strategy_text(strategy),
        degrees=_degrees(strategy),
        global_batch=found.run.batch.sequences,
        iteration_s=found.iteration_s,
        parts={part.name: part.seconds for part in time_parts(found.prediction)},
        **range_data(iteration_range(found, estimate_range(found))),
        memory_bytes=found.prediction.memory.total,
        capacity_bytes=found.capacity_bytes,
        tokens_per_s=found.tokens_per_s,
        mfu=found.prediction.utilization,
        **vars(_on_hosts(found)),
    )


# `plan --json`.


def planned_data(
    found: Planned,
    rows: Sequence[WhatIf] | None = None,
    own: Anchor | None = None,
    compared: RunComparison | None = None,
) -> PlanOutput:
    """What `plan` prints; ``compared``: with what somebody runs."""
    answer, question, run = found.answer, found.answer.question, found.recommended
    efficiency, launcher = question.efficiency, question.launcher
    trained = trained_data(question.model, question.batch, question.topology, efficiency, launcher)
    return PlanOutput(
        **vars(_status(found)),
        **vars(trained),
        prices=question.prices,
        free_bytes=question.free_bytes,
        axes=cast(AxisNames, AXES),
        expert_axes=list(EXPERT_AXES) if question.model.experts else None,
        **vars(_ranked(found)),
        **vars(_near(answer.near)),
        outside=answer.outside,
        untold=untold_words(efficiency) or None,
        shortfall=None if answer.shortfall is None else _shortfall(answer.shortfall),
        reason=answer.reason or None,
        options=[_options(one) for one in found.options],
        notes=() if run is None else run.plan.notes,
        stats=SearchWork(wall_s=answer.stats.wall_s, counters=dict(answer.stats.counters)),
        what_if=None if rows is None else training_data(rows),
        anchor=None if own is None else _anchor(own, found.listed),
        unmeasured=None if run is None else unmeasured(run.estimate) or None,
        comparison=None if compared is None else comparison_data(compared),
    )


def _status(found: Planned) -> PlanStatus:
    answer = found.answer
    objective_s = None if answer.best is None else answer.best.iteration_s
    return PlanStatus(
        status=answer.status,
        basis=bases_of(answer.bases) if answer.status is Status.OPTIMAL else [],
        interrupted=found.interrupted,
        objective_s=objective_s,
        bound_s=known_bound(answer.bound_s, objective_s),
        proof=answer.proof(),
        strategies=answer.counts.strategies,
        placements=answer.counts.placements,
        counts=answer.counts,
        space=[SpaceRange(name=key_of(name), values=values) for name, values in answer.space],
    )


def _ranked(found: Planned) -> RankedStrategies:
    answer, plan, run = found.answer, found.plan, found.recommended
    return RankedStrategies(
        best=None if plan is None or found.known is None else _best(plan, found.known),
        recommended=None if run is None else _best(run.plan, run.known),
        recommended_number=None if run is None else run.number,
        recommended_why=None if run is None else run.why.value,
        top=[
            RankedStrategy(
                **vars(_strategy(one)), alike=[strategy_text(same) for same in place.alike]
            )
            for one, place in zip(found.top, answer.top, strict=True)
        ],
        ranking=answer.ranking,
    )


def _strategy(found: RunEstimate) -> StrategyFigures:
    return StrategyFigures(**vars(_named(found.run.strategy)), **vars(_figures(found)))


def _best(plan: TrainingPlan, known: Known) -> BestStrategy:
    answers = () if plan.solution is None or plan.solution.best is None else plan.answers
    return BestStrategy(
        **vars(_strategy(plan.estimate)),
        collectives_s=plan.collectives_s,
        programs=[_program(one) for one in answers],
        known=known_data(known),
    )


def _program(answer: RequestAnswer) -> FoundProgram:
    return FoundProgram(
        kind=answer.request.kind.value,
        axes=answer.request.axes,
        program=None if answer.program is None else str(answer.program),
        seconds=answer.seconds,
        single_collective_s=answer.single_s,
        status=answer.status,
    )


def _options(options: TrainerOptions) -> OptionsOf:
    return OptionsOf(
        trainer=options.name,
        text=options.text or None,
        notes=options.notes,
        lacks=options.lacks,
    )


def _near(near: NearStrategies | None) -> NearStrategiesFound:
    """The strategies near the best; nulls where they were not looked for."""
    members = () if near is None else near.members
    return NearStrategiesFound(
        near_optimal=None if near is None else near.count,
        near_optimal_distinct=None if near is None else near.distinct,
        near_optimal_within=None if near is None else near.within,
        near_optimal_status=None if near is None else cast(NearStatus, near.status.value),
        near_optimal_strategies=[
            StrategySeconds(strategy=strategy_text(one.strategy), iteration_s=one.iteration_s)
            for one in members
        ],
        common={} if near is None else {key_of(name): value for name, value in near.common},
        varies={} if near is None else {key_of(name): values for name, values in near.ranges},
        nearest=None if near is None or near.nearest is None else _nearest(near.nearest),
    )


def _nearest(nearest: NearRun) -> NearestStrategy:
    return NearestStrategy(
        **vars(_named(nearest.planned.strategy)),
        iteration_s=nearest.planned.iteration_s,
        run=nearest.run.name,
        run_degrees=_degrees(nearest.run.strategy),
        run_strategy=strategy_text(nearest.run.strategy) if nearest.run.strategy.ep > 1 else None,
        distance=nearest.distance,
    )


def _shortfall(short: Shortfall) -> MissingMemory:
    return MissingMemory(
        **vars(_named(short.strategy)),
        bytes_needed=short.bytes_needed,
        bytes_given=short.bytes_given,
        missing_bytes=short.missing_bytes,
        help=short.help,
    )


def comparison_data(found: RunComparison) -> ComparisonFields:
    """What is printed of a comparison."""
    gain, order = found.gain, found.order_gain
    return ComparisonFields(
        launched=found.launched.order.text,
        strategy=strategy_text(found.run.strategy),
        yours=_compared_figures(found.yours),
        broken=found.broken or None,
        ordered=_compared_figures(found.ordered.found),
        ordered_status=found.ordered.status,
        ordered_reason=found.ordered.reason or None,
        best=_compared_figures(found.best),
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


def _compared_figures(found: RunEstimate | None) -> ComparedFigures | None:
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

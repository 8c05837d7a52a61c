"""The time and the memory of an iteration on a placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from p2smt.cluster.link import Device
from p2smt.cluster.topology import Topology
from p2smt.collectives.dispatch import Dispatch
from p2smt.cost.accuracy import PriceBasis, PriceRange, summed
from p2smt.parallelism.folded import FoldedPlacement
from p2smt.parallelism.placement import FloatArray, Placement
from p2smt.parallelism.rank_list import RankMap
from p2smt.plans.ranges import range_of_step
from p2smt.training.efficiency import Efficiency, LayerConstants, TrainingRun
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.on_hosts import HostRanks
from p2smt.training.pipeline import (
    RequestTime,
    StageTimes,
    StrategyWork,
    axis_request,
    axis_requests,
    call_seconds,
    call_time,
    default_placement,
    is_of_experts,
    stage_times,
    work,
)
from p2smt.training.prediction import (
    DISPATCH_REQUEST,
    AxisRequest,
    MemoryParts,
    Prediction,
    PricedRequest,
    RunEstimate,
    TimeParts,
)
from p2smt.training.strategy import AXES, PEAK_OF
from p2smt.training.transformer import Experts
from p2smt.training.validity import check


def predict(
    run: TrainingRun,
    topology: Topology,
    efficiency: Efficiency,
    placement: Placement | None = None,
    experts: Placement | None = None,
) -> Prediction:
    """Time and memory of an iteration; one collective answers each request.

    Args:
        run: the model, the batch and the strategy.
        topology: its device and its links; its library prices the collectives.
        efficiency: what the framework reaches and overlaps.
        placement: a row for each of ``AXES`` in their order; None: Megatron's order.
        experts: a row for each of ``EXPERT_AXES``, of a mixture; None: Megatron's order.

    Raises:
        InputError: the strategy cannot run (:mod:`p2smt.training.validity`), a placement is of
            other sizes, both have unlike stages, or the topology names no device.
    """
    check(run.model, run.batch, run.strategy, topology.devices)
    if placement is None:
        placement = default_placement(topology, run.strategy)
    else:
        placement.check(topology.sizes, run.strategy.sizes)
    if experts is not None:
        experts.check(topology.sizes, run.strategy.expert_sizes)
        if placement is not None:
            FoldedPlacement(placement, experts)  # the same stages and pipelines in both
    return predict_with(
        run,
        topology.known_device,
        efficiency,
        call_prices(run, topology, efficiency, placement, experts),
    )


def predict_on(run: TrainingRun, where: HostRanks, efficiency: Efficiency) -> Prediction:
    """The same with the ranks where they lie on named hosts, device by device.

    Raises:
        InputError: the strategy cannot run, or the topology names no device.
    """
    topology = where.topology
    check(run.model, run.batch, run.strategy, topology.installed)
    call_s = call_prices(run, topology, efficiency, where.ranks, where.ranks)
    return predict_with(run, topology.known_device, efficiency, call_s)


def call_prices(
    run: TrainingRun,
    topology: Topology,
    efficiency: Efficiency,
    placement: RankMap | None,
    experts: RankMap | None = None,
) -> dict[str, float]:
    """Seconds of a call of each request of a run, by its name."""
    found: dict[str, float] = {}
    strategy, framework = run.strategy, efficiency.framework
    for one in axis_requests(run.model, run.batch, strategy, framework, efficiency):
        if one.name == DISPATCH_REQUEST:
            found[one.name] = dispatch_seconds(run, topology, efficiency, one, experts)
            continue
        where = experts if is_of_experts(one.axes) else placement
        found[one.name] = call_seconds(topology, strategy, one, where)
    return found


def dispatch_seconds(
    run: TrainingRun,
    topology: Topology,
    efficiency: Efficiency,
    request: AxisRequest,
    experts: RankMap | None,
) -> float:
    """Seconds in which the tokens of a device reach their experts, or come back."""
    one = sent(run, request)
    return trained_seconds(efficiency, one, call_seconds(topology, run.strategy, one, experts))


def sent(run: TrainingRun, request: AxisRequest) -> AxisRequest:
    """A request as it is sent: by ``flex`` tokens go once to each place that needs them."""
    one = run.model.experts
    if request.name != DISPATCH_REQUEST or run.strategy.dispatcher != "flex" or one is None:
        return request
    kind, payload_bytes = flex_dispatch(one, request.payload_bytes)
    return replace(request, kind=kind, payload_bytes=payload_bytes)


def flex_dispatch(experts: Experts, all_to_all_bytes: int) -> tuple[Dispatch, int]:
    """What ``flex`` sends in place of an all-to-all of so many bytes."""
    groups = (experts.groups, experts.top_groups) if experts.top_groups else ()
    kind = Dispatch(experts.count, experts.active, *groups)
    return kind, -(-all_to_all_bytes // experts.active)


def trained_seconds(efficiency: Efficiency, request: AxisRequest, collective_s: float) -> float:
    """Seconds of a call in a training, of those of what is sent.

    Tokens reach a part of what the library's all-to-all does: as fitted to published runs.
    """
    if request.name != DISPATCH_REQUEST or isinstance(request.kind, Dispatch):
        return collective_s
    return collective_s / (efficiency.layers or LayerConstants()).dispatch


def predict_with(
    run: TrainingRun, device: Device, efficiency: Efficiency, call_s: dict[str, float]
) -> Prediction:
    """The same for given seconds of a call of each request, by its name.

    Raises:
        InputError: the strategy does not fit the model, or the device has no peak for its type.
    """
    columns = StrategyColumns.of((run.strategy,))
    done = work(run.model, run.batch, columns, device, efficiency)
    times = stage_times(done, call_s)
    stage = int(times.stage_s[0].argmax())
    return Prediction(
        time=_time_parts(times, stage),
        memory=_memory_parts(done),
        requests=tuple(_priced(run, times, stage, call_s)),
        model_flops=done.flops,
        tokens=run.batch.sequences * run.batch.tokens,
        devices=run.strategy.devices,
        peak_flops=device.peak_flops(PEAK_OF[run.strategy.dtype]),
    )


def _time_parts(times: StageTimes, stage: int) -> TimeParts:
    micro_batches = float(times.work.micro_batches[0])
    mixed = {_axis(one): 0.0 for one in (*times.repeated, *times.once)}
    visible = dict.fromkeys(AXES, 0.0) | {k: v for k, v in mixed.items() if k not in AXES}
    for time in times.repeated:
        visible[_axis(time)] += micro_batches * float(time.visible_s[0, stage])
    for time in times.once:
        visible[_axis(time)] += float(time.visible_s[0, 0])
    return TimeParts(
        compute_s=micro_batches * float(times.work.compute_s[0, stage]),
        bubble_s=float(times.bubble_s[0]),
        communication_s=tuple(visible.items()),
        optimizer_s=float(times.work.optimizer_s[0]),
    )


def _axis(time: RequestTime) -> str:
    """The axis whose breakdown a request belongs to: what dp and cp share is dp's."""
    return time.request.column.axes[0]


def _memory_parts(done: StrategyWork) -> MemoryParts:
    parts: FloatArray = np.stack([part[0] for part in done.memory_parts])
    worst = int(parts.sum(axis=0).argmax())
    parameters, gradients, optimizer, activations = np.ceil(parts[:, worst]).astype(int).tolist()
    stage = int(done.stages.index[0, worst])
    return MemoryParts(parameters, gradients, optimizer, activations, stage)


def _priced(
    run: TrainingRun, times: StageTimes, stage: int, call_s: dict[str, float]
) -> list[PricedRequest]:
    """Every request of the slowest stage, with its seconds in an iteration."""
    found = []
    for time in (*times.repeated, *times.once):
        once = time.request.column.once
        many, at = (1.0, 0) if once else (float(times.work.micro_batches[0]), stage)
        calls = round(many * float(time.request.column.calls[0, at]))
        if calls:
            request: AxisRequest = axis_request(time.request.column, run.strategy, 0, calls)
            visible_s = many * float(time.visible_s[0, at])
            hidden_s = many * float(time.total_s[0, at]) - visible_s
            found.append(PricedRequest(request, call_s[request.name], visible_s, hidden_s))
    return found


# How far off an estimate may be by its communication.


@dataclass(frozen=True, slots=True)
class EstimateRange:
    """The range of an iteration by its communication (None: there is none), computing being as
    long as said; and of a call of each request, by its name."""

    iteration: PriceRange | None
    calls: Mapping[str, PriceRange]


def estimate_range(found: RunEstimate) -> EstimateRange:
    """The ranges of an estimate: all calls are as short, or as long, as they may be together."""
    run, topology = found.run, found.topology
    own_s = {one.request.name: one.call_s for one in found.prediction.requests}
    ranks = found.ranks if found.on_hosts is None else found.on_hosts.ranks
    calls: dict[str, PriceRange] = {}
    free: dict[str, float] = {}
    framework = found.efficiency.framework
    for request in axis_requests(run.model, run.batch, run.strategy, framework, found.efficiency):
        where = ranks or (found.experts if is_of_experts(request.axes) else found.placement)
        step, local = call_time(topology, run.strategy, request, where)
        one = range_of_step(topology, request.kind.value, step, local)
        if one is None:
            free[request.name] = own_s.get(request.name, step.seconds)
        else:
            call_s = own_s.get(request.name, one.seconds)
            calls[request.name] = replace(one.times(call_s / one.seconds), seconds=call_s)
    if not calls:
        return EstimateRange(None, calls)
    low_s, high_s = (
        predict_with(run, topology.known_device, found.efficiency, ends).time.iteration_s
        for ends in (
            free | {name: one.low_s for name, one in calls.items()},
            free | {name: one.high_s for name, one in calls.items()},
        )
    )
    rests = summed([calls[name] for name in own_s if name in calls] or [*calls.values()])
    basis, why = (rests.basis, rests.why) if rests else (PriceBasis.ASSUMED, "")
    return EstimateRange(PriceRange(found.iteration_s, low_s, high_s, basis, why), calls)

"""From the seconds of single calls to the time of an iteration.

The time grows with every price: prices that are too low give a time that is too low, which a search
uses as a bound.

Requests beside products and beside attention hide first, each has work of its own there; reductions
of a micro-batch's gradients hide under what these leave of its backward pass, then fetches and
sends under what is left of both passes, then what is done once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2smt.cluster.link import Device
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.accuracy import most_in_node
from p2smt.cost.bounds import single_time
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import StepTime
from p2smt.parallelism.folded import with_copies
from p2smt.parallelism.placement import (
    BoolArray,
    FloatArray,
    IntArray,
    Placement,
    default_ranks,
    rank_groups,
)
from p2smt.parallelism.rank_list import RankList, RankMap, matrix_of
from p2smt.plans.ranges import members_in_node
from p2smt.training.efficiency import Efficiency, Framework
from p2smt.training.formulas.compiled.table import Traffic
from p2smt.training.formulas.quantities import Quantities, quantities, with_seconds
from p2smt.training.formulas.stages import Stages, StrategyColumns
from p2smt.training.prediction import AxisRequest, Cover
from p2smt.training.strategy import (
    AXES,
    EXPERT_AXES,
    EXPERT_SHARD_AXES,
    SHARD_AXES,
    Batch,
    Strategy,
)
from p2smt.training.transformer import Transformer

CallSeconds = Mapping[str, FloatArray | float]
"""Seconds of one call by the name of the request: a number, or an array over strategies, or over
placements of one strategy."""

_SHARED = (Cover.LAYERS_BACKWARD, Cover.COMPUTE)
"""Work that also hides other requests: theirs is what those before leave, in this order."""


@dataclass(frozen=True, slots=True)
class RequestTime:
    """Seconds of a request that are seen, and all of them.

    For a micro-batch of each stage, in the last dimension; or once in an iteration, where that
    dimension is 1.
    """

    request: CoveredRequest
    visible_s: FloatArray
    total_s: FloatArray

    @property
    def hidden_s(self) -> FloatArray:
        """Seconds that are not seen."""
        return np.asarray(self.total_s - self.visible_s)


@dataclass(frozen=True, slots=True)
class StageTimes:
    """The times that make up an iteration; the last dimension is that of the stages."""

    work: StrategyWork
    stage_s: FloatArray
    repeated: tuple[RequestTime, ...]
    once: tuple[RequestTime, ...]

    @property
    def slowest_s(self) -> FloatArray:
        """Seconds of a micro-batch on the slowest stage, forward and backward."""
        return np.asarray(self.stage_s.max(axis=-1))

    @property
    def bubble_s(self) -> FloatArray:
        """Seconds in which the slowest stage waits for the pipeline to fill and to drain."""
        whole = (self.work.stages.weight * self.stage_s).sum(axis=-1)
        return np.asarray((whole - self.slowest_s) / self.work.vpp)

    @property
    def iteration_s(self) -> FloatArray:
        """Micro-batches on the slowest stage, bubble, what is done once, and the optimizer."""
        once = sum((time.visible_s[..., 0] for time in self.once), np.zeros(1))
        busy = self.work.micro_batches * self.slowest_s
        return np.asarray(busy + self.bubble_s + once + self.work.optimizer_s)


def combine(work: StrategyWork, call_s: CallSeconds) -> FloatArray:
    """Seconds of an iteration for these prices of calls.

    Args:
        work: of some strategies, or of one.
        call_s: a price for every request that is called; arrays over the strategies, or where
            ``work`` is of one strategy over anything, such as its placements.

    Returns:
        An array as long as the prices, or the strategies.

    Raises:
        KeyError: a request that is called has no price.
    """
    return stage_times(work, call_s).iteration_s


def stage_times(work: StrategyWork, call_s: CallSeconds) -> StageTimes:
    """The same by its parts."""
    called = [one for one in work.requests if one.column.calls.any()]
    repeated: list[RequestTime] = []
    free = FreeWork(work.compute_s - work.backward_s, work.backward_s)
    for group in _groups(one for one in called if not one.column.once):
        found = _repeated(work, group, call_s, free)
        free = free.without(group[0].column.cover, sum((t.hidden_s for t in found), np.zeros(1)))
        repeated += found
    once = [_once(one, call_s, free) for one in called if one.column.once]
    stage_s = sum((time.visible_s for time in repeated), work.compute_s)
    return StageTimes(work, stage_s, tuple(repeated), tuple(once))


def _price(one: CoveredRequest, call_s: CallSeconds) -> FloatArray:
    return np.asarray(call_s[one.column.name], dtype=np.float64)[..., None]


def _groups(requests: Iterable[CoveredRequest]) -> Iterator[Sequence[CoveredRequest]]:
    """Requests each on its own, then those of each work that is shared."""
    found: dict[Cover, list[CoveredRequest]] = {cover: [] for cover in _SHARED}
    for one in requests:
        if one.column.cover in found:
            found[one.column.cover].append(one)
        else:
            yield [one]
    yield from filter(None, found.values())


def _repeated(
    work: StrategyWork, group: Sequence[CoveredRequest], call_s: CallSeconds, free: FreeWork
) -> list[RequestTime]:
    """Their times for a micro-batch: what they hide is divided by what each could hide alone."""
    totals = [one.column.calls * _price(one, call_s) for one in group]
    edges = [one.edge * np.minimum(one.column.calls, 1) * _price(one, call_s) for one in group]
    able = [
        one.column.part * np.maximum(total - edge / work.micro_batches[:, None], 0.0)
        for one, total, edge in zip(group, totals, edges, strict=True)
    ]
    most_s = np.max([one.cover_s for one in group], axis=0)
    able = [
        np.where(one.cover_s < most_s, np.minimum(part, one.cover_s), part)
        for one, part in zip(group, able, strict=True)
    ]
    wanted = sum(able, np.zeros(1))
    cover_s = np.minimum(most_s, free.under(group[0].column.cover))
    hidden = np.minimum(wanted, cover_s)
    share = np.divide(hidden, wanted, out=np.zeros_like(hidden), where=wanted > 0)
    return [
        RequestTime(one, total - part * share, total)
        for one, total, part in zip(group, totals, able, strict=True)
    ]


def _once(one: CoveredRequest, call_s: CallSeconds, free: FreeWork) -> RequestTime:
    """A request of the first stage, whose backward pass is the last to end."""
    total = one.column.calls[:, :1] * _price(one, call_s)
    cover_s = np.minimum(one.cover_s, free.under(one.column.cover))[..., :1]
    hidden = np.minimum(one.column.part[:, :1] * total, cover_s)
    return RequestTime(one, total - hidden, total)


# Work that hides communication, and what is left of it for other requests.
# A second of work hides one second of communication, whatever its axes.


@dataclass(frozen=True, slots=True)
class FreeWork:
    """Seconds of a micro-batch on each stage that hide nothing yet."""

    forward_s: FloatArray
    backward_s: FloatArray

    def under(self, cover: Cover) -> FloatArray:
        """What is left for a request that hides under this work."""
        if cover is Cover.FORWARD:
            return self.forward_s
        if cover in (Cover.BACKWARD, Cover.LAYERS_BACKWARD):
            return self.backward_s
        return np.asarray(self.forward_s + self.backward_s)

    def without(self, cover: Cover, hidden_s: FloatArray) -> FreeWork:
        """What is left beside that; what hides under work of both passes is spread over both."""
        if cover is Cover.LAYERS_BACKWARD:
            return FreeWork(self.forward_s, np.maximum(self.backward_s - hidden_s, 0.0))
        all_s, hidden_s = np.broadcast_arrays(self.forward_s + self.backward_s, hidden_s)
        taken = np.divide(hidden_s, all_s, out=np.ones(all_s.shape), where=all_s > 0)
        left = np.maximum(1 - taken, 0.0)
        return FreeWork(self.forward_s * left, self.backward_s * left)


# Seconds of one call of a request on a placement, by the topology's library.


def default_placement(topology: Topology, strategy: Strategy) -> Placement | None:
    """The matrix of Megatron's order, over all of ``AXES``; None if no matrix expresses it."""
    return _expressed(topology, strategy.sizes)


def default_experts(topology: Topology, strategy: Strategy) -> Placement | None:
    """The same of experts, over all of ``EXPERT_AXES``: et innermost, then ep, ed and pp."""
    return _expressed(topology, strategy.expert_sizes)


def _expressed(topology: Topology, sizes: tuple[int, ...]) -> Placement | None:
    matrix = matrix_of(default_ranks(sizes), topology.sizes)
    return None if matrix is None else Placement(matrix)


def call_seconds(
    topology: Topology, strategy: Strategy, request: AxisRequest, placement: RankMap | None
) -> float:
    """Seconds of the single collective, or the send, that answers a request.

    ``placement`` has a row for each of ``AXES``, or of ``EXPERT_AXES`` where the request is of
    experts; None: ranks in Megatron's order lie on the devices in theirs, whether or not a matrix
    expresses that.  A rank list says where the ranks lie in that order, of experts, too.
    """
    return call_time(topology, strategy, request, placement)[0].seconds


def call_time(
    topology: Topology, strategy: Strategy, request: AxisRequest, placement: RankMap | None
) -> tuple[StepTime, int]:
    """The time of the same, and how many members of a group are in a node.

    On a matrix all lines go the same way through every switch, and a send from last to first takes
    the way of one from each to the next that is there anyway: it adds nothing to the worst link.
    """
    experts = is_of_experts(request.axes)
    rows = strategy.rows(experts=experts)
    names, sizes = list(rows), tuple(rows.values())
    if strategy.dp_replicate > 1 and isinstance(placement, Placement):
        placement = with_copies(placement, strategy.dp_replicate)
    axes = [names.index(axis) for axis in request.axes]
    if placement is None:
        placement = _expressed(topology, sizes)
    if not isinstance(placement, Placement):
        ranks: IntArray = default_ranks(sizes)
        if isinstance(placement, RankList):
            ranks = placement.rank_tensor().reshape(sizes)
        asked = topology, ranks, axes, request.kind, request.payload_bytes
        step = single_time(*asked, closed=request.closed)
        return step, most_in_node(topology, rank_groups(ranks, axes))
    scene = Scene.of(topology, placement, axes)
    local = members_in_node(topology, scene.hierarchy, 0, scene.hierarchy.depth)
    return scene.fixed_time(request.kind, request.payload_bytes), local


def is_of_experts(axes: Sequence[str]) -> bool:
    """Whether a request is along axes of experts."""
    return bool(set(axes) & {*EXPERT_AXES[1:], *EXPERT_SHARD_AXES[1:]})


# The requests of strategies, for arrays of strategies or for one.


@dataclass(frozen=True, slots=True)
class RequestColumn:
    """One request of every strategy.

    ``payload_bytes``: shape (strategies,).  ``calls``: for a micro-batch of a stage, or in an
    iteration where it is ``once``: shape (strategies, stages), 0 where its axes have one rank.
    ``part`` of its time may hide (same shape).  ``axes`` are those that it may run along: of a
    strategy, those of more than one rank.  ``closes``: with several chunks a stage the last rank
    sends to the first one, too.
    """

    name: str
    kind: RequestKind
    axes: tuple[str, ...]
    payload_bytes: IntArray
    calls: FloatArray
    part: FloatArray
    once: bool
    cover: Cover
    closes: bool = False

    def most_calls(self, micro_batches: FloatArray) -> FloatArray:
        """Calls in an iteration on the stage with most: shape (strategies,)."""
        most = np.asarray(self.calls.max(axis=1))
        return most if self.once else most * micro_batches

    def take(self, rows: IntArray | BoolArray) -> RequestColumn:
        """That of some of the strategies, by index or by mask."""
        return replace(
            self,
            payload_bytes=self.payload_bytes[rows],
            calls=self.calls[rows],
            part=self.part[rows],
        )


def request_columns(counted: Quantities, columns: StrategyColumns) -> tuple[RequestColumn, ...]:
    """Every request that a strategy may have, in the order of the table."""
    found = []
    sizes = columns.ranks
    for row in _sent(counted):
        ranks = np.prod([sizes[axis] for axis in row.axes], axis=0)
        payload = counted.of_stage(row.row_name("payload")).max(axis=1)
        calls = counted.of_stage(row.row_name("calls")) * (ranks > 1)[:, None]
        found.append(
            RequestColumn(
                row.name,
                row.kind,
                row.axes,
                np.ceil(payload).astype(np.int64),
                calls,
                counted.of_stage(row.row_name("part")),
                row.once,
                row.cover,
                row.closes,
            )
        )
    return tuple(found)


def _sent(counted: Quantities) -> tuple[Traffic, ...]:
    """The rows of requests; those of experts where there are any."""
    experts = "E" in counted.values and counted.values["E"].any()
    rows = counted.table.traffic
    return tuple(row for row in rows if experts or not is_of_experts(row.axes))


def axis_requests(
    model: Transformer,
    batch: Batch,
    strategy: Strategy,
    framework: Framework,
    efficiency: Efficiency | None = None,
) -> tuple[AxisRequest, ...]:
    """Every request of a strategy, each with its calls in an iteration on the stage with most.

    That need not be one stage: the first has an embedding, the last has logits.

    Raises:
        InputError: the split does not fit the model.
    """
    columns = StrategyColumns.of((strategy,))
    counted = quantities(model, batch, columns, framework, efficiency)
    micro_batches = counted.of_strategy("micro_batches")
    found = []
    for column in request_columns(counted, columns):
        calls = round(float(column.most_calls(micro_batches)[0]))
        if calls:
            found.append(axis_request(column, strategy, 0, calls))
    return tuple(found)


def axis_request(column: RequestColumn, strategy: Strategy, row: int, calls: int) -> AxisRequest:
    """The request of the strategy in that row of the column, along axes with ranks."""
    sizes = dict(zip(AXES, strategy.sizes, strict=True))
    sizes |= dict(zip(EXPERT_AXES, strategy.expert_sizes, strict=True))
    sizes |= dict(zip(SHARD_AXES, strategy.shard_sizes, strict=True))
    sizes |= dict(zip(EXPERT_SHARD_AXES, strategy.expert_shard_sizes, strict=True))
    shards = {"dp": "dps", "ed": "eds"} if strategy.dp_replicate > 1 else {}
    named = (shards.get(axis, axis) for axis in column.axes)
    axes = tuple(axis for axis in named if sizes[axis] > 1)
    payload_bytes = int(column.payload_bytes[row])
    cover = column.cover if column.part[row].any() else Cover.NOTHING
    closed = column.closes and strategy.vpp > 1
    return AxisRequest(column.name, column.kind, axes, payload_bytes, calls, cover, closed)


# What strategies take without communication, and what their communication can hide under.


MEMORY = ("parameter_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes")
"""Rows that add up to the memory of a stage."""


@dataclass(frozen=True, slots=True)
class CoveredRequest:
    """A request with the seconds that it may hide under, of shape (strategies, stages).

    They are those of a micro-batch, or for one that is ``once`` in an iteration those on the first
    stage.  ``edge``: calls of an iteration that have nothing to hide under.
    """

    column: RequestColumn
    cover_s: FloatArray
    edge: int


@dataclass(frozen=True, slots=True)
class StrategyWork:
    """Work of strategies: arrays of shape (strategies,) or (strategies, stages).

    ``compute_s``: a micro-batch forward and backward on a stage, without communication;
    ``memory_parts``: bytes by stage, in the order of ``MEMORY``.  ``flops``: of the model in an
    iteration, where batches differ that of the first.
    """

    micro_batches: FloatArray
    vpp: IntArray
    stages: Stages
    compute_s: FloatArray
    backward_s: FloatArray
    optimizer_s: FloatArray
    memory_parts: tuple[FloatArray, ...]
    requests: tuple[CoveredRequest, ...]
    flops: float

    @property
    def memory_bytes(self) -> FloatArray:
        """Of the stage that needs most: shape (strategies,).

        Each part is rounded up to whole bytes by itself, as it is in a prediction.
        """
        worst = np.sum(self.memory_parts, axis=0).argmax(axis=1)[:, None]
        whole = np.ceil(self.memory_parts).sum(axis=0)
        return np.asarray(np.take_along_axis(whole, worst, axis=1)[:, 0])

    def take(self, rows: IntArray | BoolArray) -> StrategyWork:
        """The work of some of the strategies, by index or by mask."""
        return replace(
            self,
            micro_batches=self.micro_batches[rows],
            vpp=self.vpp[rows],
            stages=self.stages.take(rows),
            compute_s=self.compute_s[rows],
            backward_s=self.backward_s[rows],
            optimizer_s=self.optimizer_s[rows],
            memory_parts=tuple(part[rows] for part in self.memory_parts),
            requests=tuple(
                replace(one, column=one.column.take(rows), cover_s=one.cover_s[rows])
                for one in self.requests
            ),
        )


def work(
    model: Transformer,
    batch: Batch,
    columns: StrategyColumns,
    device: Device,
    efficiency: Efficiency,
) -> StrategyWork:
    """The work of strategies on a device.

    Raises:
        InputError: a split does not fit the model, or the device has no peak for a data type.
    """
    counted = quantities(model, batch, columns, efficiency.framework, efficiency)
    return work_of(with_seconds(counted, columns, device, efficiency), columns)


def work_of(timed: Quantities, columns: StrategyColumns) -> StrategyWork:
    """The same of quantities that are known, with seconds."""
    backward_s = timed.of_stage("stage_backward_s")
    return StrategyWork(
        micro_batches=timed.of_strategy("micro_batches"),
        vpp=columns.vpp,
        stages=timed.stages,
        compute_s=timed.of_stage("stage_forward_s") + backward_s,
        backward_s=backward_s,
        optimizer_s=np.asarray(timed.of_stage("optimizer_s").max(axis=1)),
        memory_parts=tuple(timed.of_stage(name) for name in MEMORY),
        requests=_covered(timed, columns),
        flops=float(np.ravel(timed.values["model_flops"])[0]),
    )


def _covered(timed: Quantities, columns: StrategyColumns) -> tuple[CoveredRequest, ...]:
    sent = request_columns(timed, columns)
    return tuple(
        CoveredRequest(column, timed.of_stage(row.row_name("cover_s")), row.edge)
        for row, column in zip(_sent(timed), sent, strict=True)
    )

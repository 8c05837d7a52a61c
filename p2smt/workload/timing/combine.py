"""From the seconds of single calls to the time of an iteration.

The time grows with every price: prices that are too low give a time that is too low, which a search
uses as a bound.

Requests beside products and beside attention hide first, each has work of its own there; reductions
of a micro-batch's gradients hide under what these leave of its backward pass, then fetches and
sends under what is left of both passes, then what is done once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.cost.loads.routing import FloatArray
from p2smt.workload.requests import Cover
from p2smt.workload.timing.free_work import FreeWork
from p2smt.workload.timing.work import CoveredRequest, StrategyWork

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
    wanted = sum(able, np.zeros(1))
    cover_s = np.minimum(group[0].cover_s, free.under(group[0].column.cover))
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

"""Predicted time of a schedule on a topology, and what limits it (docs/schedule-cost.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from p2smt.collectives.names import operation_named
from p2smt.cost.accuracy import (
    PricedStep,
    PriceRange,
    most_in_node,
    outermost_crossed,
    range_of_others,
)
from p2smt.errors import InputError
from p2smt.schedules.cost.event_run import SimulatedRun, run_on
from p2smt.schedules.cost.links import DirectedLink, PlacedRoutes, Routes
from p2smt.schedules.cost.ranks import devices_of
from p2smt.schedules.index import index_of
from p2smt.schedules.model import DEFAULT_DEPTH
from p2smt.schedules.verify.deadlock import local_order
from p2smt.schedules.verify.structure import broken_steps, unmatched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from p2smt.cluster.topology import Topology
    from p2smt.collectives.contract import Contract
    from p2smt.schedules.cost.event_run import Token
    from p2smt.schedules.index import Index
    from p2smt.schedules.model import Schedule


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """What one link carries in one direction."""

    link: DirectedLink
    load_bytes: float

    @property
    def busy_s(self) -> float:
        """Seconds that it needs at its full bandwidth."""
        return self.load_bytes / self.link.bandwidth_bytes_per_s


@dataclass(frozen=True, slots=True)
class ScheduleCost:
    """Predicted times of a schedule, in seconds.

    time_s: until every step is done and all that was written has arrived.
    starts_s, finishes_s: of each step, by number.
    critical: steps that wait for each other one after another up to the end, first to last.
    links: what each link carries that is used at all, the longest busy first.
    path_s: the longest chain of steps with every link to itself: a lower bound, as is ``load_s``.
    protocol: the (latency, bandwidth) pairs that were used, where a level has that name.
    rough: links were not shared quite fairly: too many transfers met.
    """

    time_s: float
    payload_bytes: float
    chunk_bytes: float
    protocol: str
    starts_s: tuple[float, ...]
    finishes_s: tuple[float, ...]
    critical: tuple[int, ...]
    links: tuple[LinkLoad, ...]
    path_s: float
    rough: bool = False

    @property
    def bottleneck(self) -> LinkLoad | None:
        """The link that is busy longest; None if nothing leaves a device."""
        return self.links[0] if self.links else None

    @property
    def load_s(self) -> float:
        """Seconds that the busiest link needs for its bytes: a lower bound."""
        return self.links[0].busy_s if self.links else 0.0

    @property
    def bound_s(self) -> float:
        """The larger of both lower bounds."""
        return max(self.load_s, self.path_s)

    @property
    def busy_share(self) -> float:
        """The part of the time for which the bottleneck is busy, from 0 to 1."""
        return self.load_s / self.time_s if self.time_s else 0.0


def schedule_cost(
    schedule: Schedule,
    topology: Topology,
    payload_bytes: float,
    fifo_depth: int = DEFAULT_DEPTH,
    protocol: str | None = None,
    devices: Sequence[int] | None = None,
) -> ScheduleCost:
    """Predicted time of a schedule on a topology.

    Args:
        payload_bytes: the whole vector per device: of an all-gather its output, of a
            reduce-scatter its input, of an all-to-all all that a rank sends; in general the
            larger of input and output, on the rank that has most.
        fifo_depth: messages that a connection holds before its sender must wait.
        protocol: whose latency and bandwidth to use where a link has several; by default the
            schedule's own.
        devices: of each rank; None: rank r is device r of the topology.

    Raises:
        InputError: too few devices, or places without a host, a payload that is not positive, or a
            schedule that is broken or does not run to its end.
    """
    if topology.installed < topology.devices:
        rule = "has places without a host, where rank r may not be device r"
        raise InputError(f"topology {topology.name}", rule, "cost the plan instead")
    if devices is None:
        devices = devices_of(None, topology, schedule.ranks)
    name = schedule.protocol if protocol is None else protocol
    routes = PlacedRoutes(topology, name, devices=tuple(devices))
    return cost_on(routes, schedule, payload_bytes, fifo_depth)


def cost_on(
    routes: Routes, schedule: Schedule, payload_bytes: float, fifo_depth: int = DEFAULT_DEPTH
) -> ScheduleCost:
    """The same on routes that are known.

    Raises:
        InputError: as there.
    """
    if not 0 < payload_bytes < math.inf:
        raise InputError(f"payload of {payload_bytes} bytes", "must be positive and finite")
    chunk_bytes = payload_bytes / payload_chunks(schedule.contract)
    index = index_of(schedule)
    _check(index)
    run = run_on(index, local_order(index), routes, chunk_bytes, fifo_depth)
    if not run.finished:
        rule = f"does not run to its end with connections of depth {fifo_depth}"
        raise InputError(f"schedule {schedule.name[:60]}", rule, "verify it first")
    arrived = [end + tail for end, tail in zip(run.ends_s, run.tails_s, strict=True)]
    last = max(reversed(run.started), key=lambda step: arrived[step], default=None)
    return ScheduleCost(
        max(arrived, default=0.0),
        payload_bytes,
        chunk_bytes,
        routes.protocol,
        tuple(run.starts_s),
        tuple(run.ends_s),
        () if last is None else _critical(run, last),
        _loads(run),
        _longest_path(run),
        run.sharing.rough,
    )


def schedule_range(
    schedule: Schedule, topology: Topology, cost: ScheduleCost, devices: Sequence[int]
) -> PriceRange | None:
    """The range of a predicted time; None: nothing leaves a device.

    ``devices``: of each rank.
    """
    groups = np.array([devices])
    level = outermost_crossed(topology, groups)
    if level is None or cost.time_s <= 0:
        return None
    name = schedule.contract.collective
    operation = operation_named(name)
    step = PricedStep(
        name if operation is None else operation.value,
        round(cost.payload_bytes),
        cost.time_s,
        level,
        most_in_node(topology, groups),
    )
    return range_of_others(topology, step)


def payload_chunks(contract: Contract) -> int:
    """Chunks of the payload: of the largest input or output that the contract speaks of."""
    outputs = (goal.chunk + 1 for goal in contract.goals)
    return max(1, *(len(chunks) for chunks in contract.starts), *outputs)


def _check(index: Index) -> None:
    found = next(chain(broken_steps(index), unmatched(index)), None)
    if found is not None:
        raise InputError(
            f"schedule {index.schedule.name[:60]}", found.message, "only a sound one has a time"
        )


def _loads(run: SimulatedRun) -> tuple[LinkLoad, ...]:
    loads = [LinkLoad(run.routes.links[k], load) for k, load in run.sharing.loads.items()]
    return tuple(sorted(loads, key=lambda load: (-load.busy_s, load.link)))


def _meeting(run: SimulatedRun, step: int) -> Sequence[int]:
    return run.local.meeting.get(step, (step,))


def _critical(run: SimulatedRun, last: int) -> tuple[int, ...]:
    """Backwards from the last step, each time to what came last of all it waited for."""
    found = [last]
    while True:
        step = max(_meeting(run, found[-1]), key=lambda n: run.works_s[n])
        if step != found[-1] and run.works_s[step] > run.works_s[found[-1]]:
            found.append(step)
        before = [token for token in run.after[found[-1]] if token.step >= 0]
        if not before:
            return tuple(reversed(found))
        found.append(max(before, key=lambda token: token.time_s).step)


def _longest_path(run: SimulatedRun) -> float:
    """The time of the run with every link to itself: waits as they were, no sharing."""
    starts, works = [0.0] * len(run.starts_s), [0.0] * len(run.starts_s)

    def there(token: Token) -> float:
        met = _meeting(run, token.step)
        base = starts[token.step] if token.from_start else max(works[n] for n in met)
        return base + token.lag_s

    for step in run.started:
        starts[step] = max((there(t) for t in run.after[step] if t.step >= 0), default=0.0)
        works[step] = starts[step] + run.alone_s[step]
    ends = (work + tail for work, tail in zip(works, run.tails_s, strict=True))
    return max(ends, default=0.0)

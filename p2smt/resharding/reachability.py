"""The least caps that some plan meets, for a question whose own cap is met by none."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.resharding.best_path import best_path
from p2smt.resharding.cuts import Cuts, PathResult, splits_of
from p2smt.resharding.endpoints import Ends, check_same_array, ends_of, orders_left_out
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.state_graph import StateGraph
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.step_table import StateTable, can_tabulate
from p2smt.resharding.steps import MemoryLimit, peak_step_bytes
from p2smt.resharding.types import ArrayType
from p2smt.result import SearchLimits, SolveStats, Status, StopWatch
from p2smt.units import format_bytes

LEAST_S = 5.0
"""Wall seconds that may be spent on the least cap of plans of few steps."""
_ANY_BYTES = 2**62


@dataclass(frozen=True, slots=True)
class LeastCaps:
    """Bytes on a device; None: not known.

    ``limit_bytes`` is of states or of steps, as the question's cap; ``memory_bytes`` of steps: what
    to give as ``--memory``.  ``too_few_steps``: no plan of so few steps exists, whatever the cap.
    """

    limit_bytes: int | None = None
    memory_bytes: int | None = None
    too_few_steps: bool = False


def least_caps(
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    max_steps: int | None,
    limits: SearchLimits,
) -> LeastCaps:
    """What plans need at least; of at most ``max_steps`` steps, if that is limited."""
    of_steps = replace(memory, limit_bytes=_ANY_BYTES, of_steps=True)
    if max_steps is not None:
        return _of_few_steps(ends, prices, of_steps, max_steps, limits, memory.of_steps)
    watch = StopWatch.start(limits)
    least = least_limit(ends, prices, memory, watch)
    if memory.of_steps:
        return LeastCaps(least, least)
    return LeastCaps(least, least_limit(ends, prices, of_steps, watch))


def _of_few_steps(
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    max_steps: int,
    limits: SearchLimits,
    asked: bool,
) -> LeastCaps:
    """A plan under any cap, then again and again one that needs less, until there is none."""
    left_s = limits.time_limit_s
    share_s = LEAST_S if left_s is None else min(LEAST_S, left_s)
    watch, least = StopWatch.start(replace(limits, time_limit_s=share_s)), None
    while True:
        found = best_path(ends, prices, memory, watch.left(), max_steps=max_steps)
        if found.seconds is None:
            break
        least = _needed(ends[found.ends], found, memory)
        memory = replace(memory, limit_bytes=least - 1)
    if found.status is not Status.INFEASIBLE:
        return LeastCaps()
    return LeastCaps(least if asked else None, least, too_few_steps=least is None)


def _needed(ends: Ends, found: PathResult, memory: MemoryLimit) -> int:
    steps = peak_step_bytes(ends.frame, found.steps, memory.keep_source)
    return max(steps, ends.frame.local_bytes(ends.source))


# The least cap that some plan meets.


def least_limit(
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    watch: StopWatch | None = None,
) -> int | None:
    """Bytes of the least cap, of states or of steps as ``memory`` says, that some plan meets.

    Its ``limit_bytes`` does not count.  None: there are too many types to tell, no plan at all, or
    the time of ``watch`` is up.
    """
    found = []
    for one, price in zip(ends, prices, strict=True):
        if watch is not None and watch.expired():
            return None
        if can_tabulate(one):
            found.append(_least(one, price, memory, watch))
    if watch is not None and watch.expired():
        return None  # of some ends nothing may be known
    return min((limit for limit in found if limit is not None), default=None)


def _least(
    ends: Ends, prices: StepPrices, memory: MemoryLimit, watch: StopWatch | None
) -> int | None:
    """Dijkstra, a path being as long as its dearest step; None: no path, or no time."""
    table = StateTable.of(ends)
    graph = StateGraph(ends, table, prices, replace(memory, limit_bytes=2**62), counted=False)
    source, target = table.index(ends.source), table.index(ends.target)
    start = int(table.size[source])
    best, heap, closed = {source: start}, [(start, int(source != target), source)], set()
    while heap:
        needed, _, state = heapq.heappop(heap)
        if state == target:
            return needed
        if state in closed:
            continue
        if watch is not None and watch.expired():
            return None
        closed.add(state)
        edges = graph.untimed_from(state, first=state == source)
        for there, size in zip(edges.targets.tolist(), edges.bytes.tolist(), strict=True):
            then = max(needed, size)
            if then < best.get(there, 2**62):
                best[there] = then
                heapq.heappush(heap, (then, int(there != target), there))
    return None


# What is asked of a redistribution, and what the answer is.


MAX_STEPS = 64


@dataclass(frozen=True, slots=True)
class RedistributionQuestion:
    """From ``source`` to ``target`` on a topology, under a cap.

    ``memory_bytes`` bounds input, output and pack buffer of every step (with ``keep_source`` the
    source beside them); None: every state is at most the larger of source and destination.
    ``max_steps``: compare plans of at most so many steps; None: of any length, where that can be
    proved.
    """

    source: ArrayType
    target: ArrayType
    topology: Topology
    memory_bytes: int | None = None
    keep_source: bool = False
    max_steps: int | None = None
    cuts: Cuts = Cuts.PRIMES
    limits: SearchLimits = field(default_factory=SearchLimits)

    def __post_init__(self) -> None:
        if self.max_steps is not None and not 1 <= self.max_steps <= MAX_STEPS:
            raise InputError(f"{self.max_steps} steps", f"must be 1 to {MAX_STEPS}")
        check_same_array(self.source, self.target)
        _check_devices(self.source, self.topology)

    def ends(self) -> tuple[Ends, ...]:
        """Source and destination on common digits, for each order of the primes.

        Raises:
            InputError: the types have no common digits.
        """
        splits = splits_of(self.cuts, self.topology, self.source.mesh)
        return ends_of(self.source, self.target, splits)

    def orders_left_out(self) -> int:
        """How many orders of the primes :meth:`ends` leaves out."""
        splits = splits_of(self.cuts, self.topology, self.source.mesh)
        return orders_left_out(self.source, self.target, splits)

    def memory(self, ends: Ends) -> MemoryLimit:
        """The cap.

        Raises:
            InputError: it is below source or destination.
        """
        if self.memory_bytes is None:
            return MemoryLimit(ends.states_limit_bytes, keep_source=self.keep_source)
        for name, state in (("source", ends.source), ("destination", ends.target)):
            needed = ends.frame.local_bytes(state)
            if self.memory_bytes < needed:
                rule = f"is below the {name}'s {format_bytes(needed)} on a device"
                remedy = f"give at least {needed}B"
                raise InputError(f"memory {format_bytes(self.memory_bytes)}", rule, remedy)
        return MemoryLimit(self.memory_bytes, of_steps=True, keep_source=self.keep_source)


def _check_devices(kind: ArrayType, topology: Topology) -> None:
    """Raise InputError unless the mesh lies on all devices of the topology."""
    given = f"a mesh of {kind.mesh.size} devices"
    if topology.installed < topology.devices:
        rule = f"{topology.name} has hosts at {topology.installed} of {topology.devices} places"
        raise InputError(given, rule, "give a topology whose places all have hosts")
    if kind.mesh.size != topology.devices:
        rule = f"{topology.name} has {topology.devices}"
        remedy = "give as many, or another number of nodes (NAME:N), or --use"
        raise InputError(given, rule, remedy)
    if max(kind.mesh.devices) >= topology.devices:
        rule = f"devices are numbered 0 to {topology.devices - 1}"
        raise InputError(f"device {max(kind.mesh.devices)}", rule, "name each of these once")


@dataclass(frozen=True, slots=True)
class RedistributionAnswer:
    """The outcome of a search: a plan, or why there is none.

    ``least``: of an infeasible question, the least caps that some plan meets.
    ``bound_s``: no plan under the cap is faster.
    ``orders_left_out``: of the axes' primes; nothing is proved of plans on these.
    ``interrupted``: by the user; the plan is the best until then.
    """

    question: RedistributionQuestion
    memory: MemoryLimit
    status: Status
    plan: RedistributionPlan | None
    bound_s: float
    physical_bound_s: float
    stats: SolveStats
    least: LeastCaps = field(default_factory=LeastCaps)
    orders_left_out: int = 0
    interrupted: bool = False

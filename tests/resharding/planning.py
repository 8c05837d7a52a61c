"""Plans of redistributions as values, by the brute force of the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from p2smt.cluster.file import topology_from_data
from p2smt.resharding.endpoints import ends_of
from p2smt.resharding.redistribution_plan import PlannedStep, RedistributionPlan
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import ArrayStep, MemoryLimit, StepKind
from p2smt.resharding.time_left import physical_bound_s
from p2smt.resharding.types import ArrayType, ElementType, Uneven, parse_layout, parse_mesh
from p2smt.result import SearchLimits, SolveStats, Status
from tests.oracles.redistributions import best_path

TOPOLOGY = topology_from_data(
    {
        "name": "two-nodes",
        "levels": [
            {
                "name": "node",
                "size": 2,
                "link": {
                    "kind": "switch",
                    "ports": 4,
                    "bandwidth": "25 GB/s",
                    "latency": "8 us",
                },
            },
            {
                "name": "gpu",
                "size": 4,
                "link": {"kind": "switch", "bandwidth": "300 GB/s", "latency": "2 us"},
            },
        ],
    },
    "two-nodes",
)


def array_type(
    mesh: str,
    shape: tuple[int, ...],
    layout: str,
    devices: Sequence[int] | None = None,
    uneven: Uneven = Uneven.REFUSE,
    element: ElementType = ElementType.BF16,
) -> ArrayType:
    on = parse_mesh(mesh, devices)
    return ArrayType(on, shape, element, parse_layout(layout, on), uneven)


def planned(prices: StepPrices, step: ArrayStep) -> PlannedStep:
    sources: tuple[int, ...] = ()
    if step.kind is StepKind.PERMUTE:
        sources = tuple(map(int, prices.messages(step.before, step.after)[0]))
    return PlannedStep(step, prices.step(step), sources)


def best_plan(
    source: ArrayType, target: ArrayType, memory: MemoryLimit | None = None
) -> RedistributionPlan:
    """The fastest plan, found by looking at every state."""
    ends = ends_of(source, target)[0]
    prices = StepPrices(TOPOLOGY, ends.frame)
    limit = memory or MemoryLimit(ends.states_limit_bytes)
    found = best_path(ends, lambda step: prices.step(step).seconds, limit)
    assert found is not None
    return plan_of(source, target, found[1], limit)


def dearest_plan(source: ArrayType, target: ArrayType) -> RedistributionPlan:
    """The slowest plan of at most three steps; it does not say that it is the fastest."""
    ends = ends_of(source, target)[0]
    prices = StepPrices(TOPOLOGY, ends.frame)
    limit = MemoryLimit(ends.states_limit_bytes)
    found = best_path(ends, lambda step: -prices.step(step).seconds, limit, 3)
    assert found is not None
    return replace(plan_of(source, target, found[1], limit), status=Status.FEASIBLE, bound_s=0.0)


def plan_of(
    source: ArrayType, target: ArrayType, steps: Sequence[ArrayStep], limit: MemoryLimit
) -> RedistributionPlan:
    """These steps as a plan that is called the fastest."""
    ends = ends_of(source, target)[0]
    prices = StepPrices(TOPOLOGY, ends.frame)
    made = tuple(planned(prices, step) for step in steps)
    seconds = sum(one.time.seconds for one in made)
    return RedistributionPlan(
        TOPOLOGY,
        source,
        target,
        ends.frame,
        ends.source,
        made,
        limit,
        Status.OPTIMAL,
        seconds,
        min(seconds, physical_bound_s(TOPOLOGY, ends)),
        None,
        False,
        SearchLimits(),
        SolveStats("oracle"),
    )

"""Redistributions by the plainest steps: reduce, gather everything, cut again."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.cluster.file import parse_topology
from p2smt.resharding.endpoints import Ends, ends_of
from p2smt.resharding.redistribution_plan import PlannedStep, RedistributionPlan
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import (
    AllGather,
    AllReduce,
    ArrayStep,
    LocalSlice,
    MemoryLimit,
    Permute,
    StepKind,
)
from p2smt.resharding.types import ArrayType, ElementType, Uneven, parse_layout, parse_mesh
from p2smt.result import SearchLimits, SolveStats, Status

NODES_OF_TWO = """\
name: nodes-of-two
algorithms: [ring]
levels:
  - {{name: node, size: {}, link: {{kind: switch, bandwidth: 10 GB/s, latency: 5 us}}}}
  - {{name: gpu, size: 2, link: {{kind: switch, bandwidth: 100 GB/s, latency: 1 us}}}}
"""


def types(
    mesh: str,
    shape: Sequence[int],
    *layouts: str,
    dtype: str = "f64",
    devices: Sequence[int] | None = None,
    uneven: Uneven = Uneven.REFUSE,
) -> list[ArrayType]:
    """Types of one array, by their layouts."""
    made, element = parse_mesh(mesh, devices), ElementType.parse(dtype)
    return [
        ArrayType(made, tuple(shape), element, parse_layout(text, made), uneven) for text in layouts
    ]


def gathered_plan(source: ArrayType, target: ArrayType) -> RedistributionPlan:
    """A plan that holds the whole array in between; a step for each digit."""
    ends = ends_of(source, target)[0]
    text = NODES_OF_TWO.format(ends.frame.devices // 2)
    topology = parse_topology(text, "nodes-of-two")
    prices = StepPrices(topology, ends.frame)
    planned = tuple(_planned(prices, step) for step in _steps(ends))
    memory = MemoryLimit(source.global_bytes)
    told = (memory, Status.FEASIBLE, 0.0, 0.0, None, False, SearchLimits(), SolveStats("gather"))
    return RedistributionPlan(topology, source, target, ends.frame, ends.source, planned, *told)


def _planned(prices: StepPrices, step: ArrayStep) -> PlannedStep:
    if step.kind is not StepKind.PERMUTE:
        return PlannedStep(step, prices.step(step))
    senders = prices.messages(step.before, step.after)[0]
    return PlannedStep(step, prices.step(step), tuple(int(device) for device in senders))


def _steps(ends: Ends) -> list[ArrayStep]:
    """All-reduces, all-gathers from the ends of lists, the devices' new order, slices."""
    now, steps = ends.source, list[ArrayStep]()
    for digit in [d for d in now.partial if d not in ends.target.partial]:
        partial = tuple(d for d in now.partial if d != digit)
        steps.append(AllReduce(now, ArrayState(now.dims, partial, now.order)))
        now = steps[-1].after
    for dim in range(len(now.dims)):
        while now.dims[dim]:
            steps.append(AllGather(now, _with(now, dim, now.dims[dim][:-1])))
            now = steps[-1].after
    if ends.target.order != now.order:
        steps.append(Permute(now, ArrayState(now.dims, now.partial, ends.target.order)))
        now = steps[-1].after
    for dim, digits in enumerate(ends.target.dims):
        for count in range(1, len(digits) + 1):
            steps.append(LocalSlice(now, _with(now, dim, digits[:count])))
            now = steps[-1].after
    check(ends.frame, steps)
    return steps


def _with(state: ArrayState, dim: int, digits: Sequence[int]) -> ArrayState:
    dims = tuple(tuple(digits) if i == dim else old for i, old in enumerate(state.dims))
    return ArrayState(dims, state.partial, state.order)


def check(frame: Frame, steps: Sequence[ArrayStep]) -> None:
    for step in steps:
        step.check(frame)

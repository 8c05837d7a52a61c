"""Plans that walk at random over the states of a frame, by legal steps."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

from p2smt.cluster.file import load_topology
from p2smt.errors import InputError
from p2smt.resharding.endpoints import Ends, ends_of
from p2smt.resharding.redistribution_plan import PlannedStep, RedistributionPlan
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import KINDS, ArrayStep, MemoryLimit, StepKind
from p2smt.resharding.types import (
    ArrayType,
    ElementType,
    Layout,
    Mesh,
    Uneven,
    parse_layout,
    parse_mesh,
)
from p2smt.result import SearchLimits, SolveStats, Status


def all_states(frame: Frame) -> Iterator[ArrayState]:
    """Every state that fits the array."""
    homes = range(len(frame.shape) + 2)  # a dimension, partial, replicated
    for home in itertools.product(homes, repeat=len(frame.digits)):
        lists = [[d for d, at in enumerate(home) if at == i] for i in range(len(frame.shape))]
        partial = tuple(d for d, at in enumerate(home) if at == len(frame.shape))
        for dims in itertools.product(*(itertools.permutations(one) for one in lists)):
            for order in range(len(frame.orders)):
                state = ArrayState(dims, partial, order)
                if frame.fits(state):
                    yield state


def legal(frame: Frame, step: ArrayStep) -> bool:
    try:
        step.check(frame)
    except InputError:
        return False
    return True


def walk(frame: Frame, start: ArrayState, length: int, seed: int) -> tuple[ArrayStep, ...]:
    """So many legal steps from a state, each kind as likely as another."""
    draw, states, steps = random.Random(seed), list(all_states(frame)), list[ArrayStep]()
    for _ in range(length):
        before = steps[-1].after if steps else start
        found: dict[StepKind, list[ArrayStep]] = {}
        for after, kind in itertools.product(states, KINDS.values()):
            step = kind(before, after)
            if legal(frame, step):
                found.setdefault(step.kind, []).append(step)
        steps.append(draw.choice(found[draw.choice(sorted(found, key=lambda kind: kind.value))]))
    return tuple(steps)


def kind_of(
    mesh: Mesh, shape: tuple[int, ...], text: str, element: ElementType, uneven: Uneven
) -> ArrayType:
    return ArrayType(mesh, shape, element, parse_layout(text, mesh), uneven)


def plan_of(ends: Ends, source: ArrayType, steps: tuple[ArrayStep, ...]) -> RedistributionPlan:
    """The plan of these steps, priced; its destination is where they end."""
    frame = ends.frame
    last = steps[-1].after if steps else ends.source
    mesh = replace(source.mesh, devices=frame.orders[last.order])
    target = replace(source, mesh=mesh, layout=frame.layout(last))
    topology = load_topology("dgx1-v100:2")
    prices = StepPrices(topology, frame)
    planned = tuple(_planned(prices, step) for step in steps)
    memory = MemoryLimit(frame.local_bytes(ends.source) * frame.devices)
    told = (memory, Status.FEASIBLE, 0.0, 0.0, None, False, SearchLimits(), SolveStats("walk"))
    return RedistributionPlan(topology, source, target, frame, ends.source, planned, *told)


def _planned(prices: StepPrices, step: ArrayStep) -> PlannedStep:
    sources: tuple[int, ...] = ()
    if step.kind is StepKind.PERMUTE:
        sources = tuple(prices.messages(step.before, step.after)[0].tolist())
    return PlannedStep(step, prices.step(step), sources)


def walked(
    axes: str,
    shape: tuple[int, ...],
    source: str,
    length: int,
    seed: int,
    *,
    element: ElementType = ElementType.F32,
    orders: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
    uneven: Uneven = Uneven.REFUSE,
) -> RedistributionPlan:
    """A walk from a type; the destination that only sets the frame is replicated."""
    first, last = orders or (None, None)
    mesh, other = parse_mesh(axes, first), parse_mesh(axes, last)
    given = kind_of(mesh, shape, source, element, uneven)
    layout = Layout(tuple(() for _ in shape), (), given.layout.op)
    ends = ends_of(given, replace(given, mesh=other, layout=layout))[0]
    return plan_of(ends, given, walk(ends.frame, ends.source, length, seed))

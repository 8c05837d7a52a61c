"""Bounds by counts of digits are no dearer than any plan, where devices share ports."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology
from p2smt.resharding.endpoints import Ends, ends_of
from p2smt.resharding.layered import LayeredQuestion, best_layered
from p2smt.resharding.layered_rows import RowTable
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import MemoryLimit, StepKind
from p2smt.resharding.types import ArrayType, ElementType, parse_layout, parse_mesh
from p2smt.result import SearchLimits, Status
from tests.oracles.redistributions import all_states, best_cost

LIMITS = SearchLimits()


def shared(ports: int, preset: str = "azure-ndv4:4") -> Topology:
    """Four nodes of four devices with so many ports a node."""
    topology = load_topology(preset)
    outer, inner = (replace(level, size=4, whole=0) for level in topology.levels[-2:])
    outer = replace(outer, link=replace(outer.link, ports=ports))
    return replace(topology, levels=(outer, inner))


def exchange() -> Ends:
    """An outer and an inner digit change places, and so do two inner ones."""
    mesh, shape = parse_mesh("o=4,i=4"), (8 * 3**12,)
    texts = ("S(o:(1)2,i:(2)2,i:(1)2)", "S(i:(1)2,o:(2)2,i:(2)2)")
    layouts = (parse_layout(text, mesh) for text in texts)
    source, target = (ArrayType(mesh, shape, ElementType.U8, layout) for layout in layouts)
    return ends_of(source, target)[0]


def cost(
    ends: Ends, prices: StepPrices, memory: MemoryLimit, steps: int | None = None
) -> float | None:
    return best_cost(ends, lambda step: prices.step(step).seconds, memory, steps)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("ports", "steps", "kinds"), [(1, 1, 1), (2, 1, 1), (2, 2, 2), (2, 3, 2)])
def test_digits_of_one_role_may_be_exchanged(ports: int, steps: int, kinds: int) -> None:
    ends = exchange()
    prices = StepPrices(shared(ports), ends.frame)
    memory = MemoryLimit(ends.states_limit_bytes)
    least = cost(ends, prices, memory, steps)
    assert least is not None
    for at_most_s in (None, least * 2):
        found = best_layered([ends], [prices], memory, LIMITS, steps, at_most_s=at_most_s)
        assert found.status is Status.OPTIMAL
        assert found.seconds == pytest.approx(least)
        assert [step.kind for step in found.steps] == [StepKind.PERMUTE] * kinds


def bounds(question: LayeredQuestion) -> list[float]:
    """Seconds after the source and before the target, as far as their rows say."""
    outlook = question.problem.outlook
    assert outlook is not None
    found = []
    for places, column in ((question.problem.source, -1), (question.problem.target, -2)):
        counts = tuple(
            sum(places[q][0] in bin for q in role) for role in outlook.roles for bin in outlook.bins
        )
        row = next(one for one in outlook.rows if one[:-2] == counts)
        found.append(row[column] * question.tick_s)
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [0, 1])
def test_bounds_are_no_dearer_than_the_best_plan(seed: int) -> None:
    """No plan of brute force is cheaper than the bounds of its ends."""
    draw = random.Random(seed)
    preset = ("azure-ndv4:4", "azure-ndv2:4")[seed]
    frame = exchange().frame
    sharded = [state for state in all_states(frame) if len(state.dims[0]) == 3]
    for number in range(16):
        ends = Ends(frame, *draw.sample(sharded if number % 2 else all_states(frame), 2))
        prices = StepPrices(shared(draw.choice((1, 2)), preset), frame)
        memory = MemoryLimit(ends.states_limit_bytes)
        least = cost(ends, prices, memory)
        assert least is not None
        question = LayeredQuestion(RowTable(ends, prices, memory), 4)
        assert max(bounds(question)) <= least

"""Plans of at most so many steps: against brute force on real prices, and what goes wrong."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest

from p2smt.cluster.file import load_topology
from p2smt.cluster.link import LinkKind
from p2smt.cluster.topology import Topology
from p2smt.errors import EncodingBug, TooLarge
from p2smt.problems.redistribution import Moves, RedistributionProblem
from p2smt.resharding import layered
from p2smt.resharding.cuts import PathResult
from p2smt.resharding.endpoints import Ends, ends_of
from p2smt.resharding.layered import best_layered
from p2smt.resharding.layered_rows import RowTable, digit_classes, sibling_levels
from p2smt.resharding.states import Frame
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import MemoryLimit, StepKind, within
from p2smt.resharding.types import ArrayType, ElementType, Uneven, parse_layout, parse_mesh
from p2smt.result import OUT_OF_TIME, Result, SearchLimits, Status
from p2smt.solvers.ask import Optimum, Solver, ask
from tests.oracles import redistribution_z3
from tests.oracles.redistributions import all_states, best_cost
from tests.tiers import but_every

LIMITS = SearchLimits()
MESHES = ("a=2,b=4", "a=2,b=2,c=2", "a=4,b=2", "a=3,b=2,c=2", "a=2,b=3", "a=4")
PRESETS = ("azure-ndv4:2", "azure-ndv2:2", "gb200-nvl72", "dgx1-v100", "tpu-v5p")
SHAPES = ((48, 48), (12, 24), (2, 48), (1, 96), (96,), (1536, 1536))


def resized(preset: str, devices: int, draw: random.Random) -> Topology:
    """A preset's links on so few devices; where there are two levels with other ports."""
    topology = load_topology(preset)
    inner = draw.choice([n for n in (2, 3, 4) if devices % n == 0])
    sizes = (devices // inner, inner) if len(topology.levels) > 1 else (devices,)
    levels = []
    for j, (level, size) in enumerate(zip(topology.levels[-2:], sizes, strict=True)):
        link, under = level.link, inner if j == 0 and len(sizes) == 2 else 1
        if link.kind is LinkKind.SWITCH:
            link = replace(link, ports=draw.choice([n for n in (1, 2, 4) if under % n == 0]))
        torus = (size,) if link.torus else ()
        levels.append(
            replace(level, size=size, whole=0, groups=None, link=replace(link, torus=torus))
        )
    return replace(topology, levels=tuple(levels))


def array(mesh: str, shape: tuple[int, ...], layout: str, devices: list[int]) -> ArrayType:
    made = parse_mesh(mesh, devices)
    return ArrayType(made, shape, ElementType.F32, parse_layout(layout, made))


def drawn(seed: int, turns: bool = False) -> tuple[Ends, StepPrices, MemoryLimit, int]:
    """A question with real prices."""
    draw = random.Random(seed)
    mesh, shape = draw.choice(MESHES[-3:] if turns else MESHES), draw.choice(SHAPES)
    devices = list(range(parse_mesh(mesh).size))
    topology = resized(draw.choice(PRESETS), len(devices), draw)
    topology = draw.choice((topology, topology.nominal()))
    if draw.random() < 0.4:
        draw.shuffle(devices)
    other = draw.sample(devices, len(devices)) if turns else devices
    whole = ",".join("R" for _ in shape)
    partial = draw.choice(("", "", ";P(a)"))
    given = array(mesh, shape, whole + partial, devices)
    frame = ends_of(given, array(mesh, shape, whole, other))[0].frame
    ends = drawn_ends(draw, frame, (0,) if partial else ())
    limit = ends.states_limit_bytes
    memory = draw.choice(
        (
            MemoryLimit(limit),
            MemoryLimit(2**40),
            MemoryLimit(int(limit * draw.choice((2.0, 2.5, 3.0, 4.0))), True, draw.random() < 0.5),
        )
    )
    return ends, StepPrices(topology, frame), memory, draw.randint(1, 4)


def drawn_ends(draw: random.Random, frame: Frame, partial: tuple[int, ...]) -> Ends:
    states, last = all_states(frame, partial), len(frame.orders) - 1
    source = draw.choice([s for s in states if s.order == 0])
    targets = [s for s in states if s.order == last and set(s.partial) <= set(source.partial)]
    return Ends(frame, source, draw.choice(targets))


def agrees(seed: int, turns: bool = False) -> None:
    """The answer is that of brute force, within the ticks' rounding."""
    ends, prices, memory, steps = drawn(seed, turns)
    least = best_cost(ends, lambda step: prices.step(step).seconds, memory, steps)
    found = best_layered([ends], [prices], memory, LIMITS, steps)
    if least is None:
        assert (found.status, found.seconds, found.steps) == (Status.INFEASIBLE, None, ())
        return
    assert found.status is Status.OPTIMAL
    assert found.seconds == pytest.approx(least, rel=1e-5, abs=0)
    assert found.bound_s == pytest.approx(least, rel=1e-5, abs=0)
    assert found.bound_s <= least
    assert within(ends.frame, ends.source, found.steps, memory)
    assert sum(prices.step(step).seconds for step in found.steps) == found.seconds


@pytest.mark.parametrize("seed", range(14))
def test_answers_are_those_of_brute_force(seed: int) -> None:
    agrees(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [1, 3])
def test_another_order_of_devices(seed: int) -> None:
    agrees(seed, turns=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", but_every(4, range(1000, 1400)))
def test_more_answers_are_those_of_brute_force(seed: int) -> None:
    agrees(seed, turns=seed % 10 == 0)


def asked_of_z3(
    problem: RedistributionProblem, _: Optimum, __: Solver, limits: SearchLimits
) -> Result[Moves]:
    return redistribution_z3.optimal_redistribution(problem, limits)


@pytest.mark.slow
def test_z3_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ends, prices = swap("a=4")
    memory = MemoryLimit(ends.states_limit_bytes)
    one = best_layered([ends], [prices], memory, LIMITS, 2)
    monkeypatch.setattr(layered, "ask", asked_of_z3)
    other = best_layered([ends], [prices], memory, LIMITS, 2)
    assert (one.status, one.steps, one.seconds) == (other.status, other.steps, other.seconds)


@lru_cache
def swap(mesh: str = "dp=4,tp=8", preset: str = "azure-ndv4:4") -> tuple[Ends, StepPrices]:
    """S(dp),S(tp) to S(tp),S(dp), or the digits of one axis, at nominal links."""
    devices = list(range(parse_mesh(mesh).size))
    texts = ("S(dp),S(tp)", "S(tp),S(dp)") if "dp" in mesh else ("S(a:(1)2),R", "R,S(a:(2)2)")
    source, target = (array(mesh, (8192, 8192), text, devices) for text in texts)
    source, target = (replace(one, element=ElementType.BF16) for one in (source, target))
    ends = ends_of(source, target)[0]
    if "dp" not in mesh:
        return ends, StepPrices(resized(preset, 4, random.Random(0)), ends.frame)
    return ends, StepPrices(load_topology(preset).nominal(), ends.frame)


def swapped(max_steps: int = 4, at_most_s: float | None = None) -> PathResult:
    ends, prices = swap()
    memory = MemoryLimit(ends.states_limit_bytes)
    return best_layered([ends], [prices], memory, LIMITS, max_steps, at_most_s=at_most_s)


def test_a_swap_takes_three_all_to_alls() -> None:
    found = swapped()
    assert found.status is Status.OPTIMAL
    assert found.seconds == pytest.approx(170.2e-6, rel=1e-3)
    assert [step.kind for step in found.steps] == [StepKind.ALL_TO_ALL] * 3
    ends, _ = swap()
    texts = [step.text(ends.frame) for step in found.steps]
    assert texts[1] == "all-to-all dp,tp from dim 0 to dim 1"


def test_fewer_steps_are_no_faster() -> None:
    times = [swapped(steps).seconds or math.inf for steps in (1, 2, 3, 4)]
    assert times == sorted(times, reverse=True)
    assert swapped(0).status is Status.INFEASIBLE


def test_what_may_be_taken_limits_the_answer() -> None:
    best_s = swapped().seconds or 0.0
    assert swapped(at_most_s=best_s * 1.0001).seconds == best_s
    short = swapped(at_most_s=best_s * 0.999)
    assert (short.status, short.seconds) == (Status.INFEASIBLE, None)
    assert short.bound_s == pytest.approx(best_s * 0.999)


def test_a_reduction_is_a_scatter_and_a_gather() -> None:
    devices = list(range(32))
    source = array("dp=4,tp=8", (8192, 8192), "R,R;P(dp);P(tp)", devices)
    ends = ends_of(source, array("dp=4,tp=8", (8192, 8192), "R,R", devices))
    prices = [StepPrices(load_topology("azure-ndv4:4").nominal(), one.frame) for one in ends]
    found = best_layered(ends, prices, MemoryLimit(2**40), LIMITS, 3)
    kinds = [step.kind for step in found.steps]
    assert kinds == [StepKind.REDUCE_SCATTER, StepKind.ALL_GATHER]


def test_nothing_to_do() -> None:
    ends, prices = swap()
    same = replace(ends, target=ends.source)
    found = best_layered([same], [prices], MemoryLimit(2**40), LIMITS, 4)
    assert (found.status, found.steps, found.seconds) == (Status.OPTIMAL, (), 0.0)


def test_a_cap_below_the_ends_has_no_plan() -> None:
    ends, prices = swap()
    memory = MemoryLimit(ends.states_limit_bytes - 1)
    assert best_layered([ends], [prices], memory, LIMITS, 4).status is Status.INFEASIBLE


def test_no_time_proves_nothing() -> None:
    ends, prices = swap()
    limits = SearchLimits(time_limit_s=0.0)
    found = best_layered([ends], [prices], MemoryLimit(2**40), limits, 4)
    assert (found.status, found.seconds, found.bound_s) == (Status.UNKNOWN, None, 0.0)
    assert found.stats.reason == OUT_OF_TIME


def test_without_time_no_table_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many ends the tables alone would take longer than the limit."""
    monkeypatch.setattr(layered, "RowTable", None)
    ends, prices = swap()
    limits, memory = SearchLimits(time_limit_s=0.0), MemoryLimit(2**40)
    found = best_layered([ends] * 3, [prices] * 3, memory, limits, 4)
    assert (found.status, found.bound_s, found.stats.calls) == (Status.UNKNOWN, 0.0, 0)


def test_nested_chunks_are_refused() -> None:
    mesh = parse_mesh("a=2,b=2")
    source, target = (
        ArrayType(mesh, (5, 4), ElementType.F32, parse_layout(text, mesh), Uneven.NESTED)
        for text in ("S(a),R", "R,S(a)")
    )
    ends = ends_of(source, target)
    prices = [StepPrices(resized("dgx1-v100", 4, random.Random(0)), ends[0].frame)]
    with pytest.raises(TooLarge, match="nested chunks of uneven dimensions: are planned"):
        best_layered(ends, prices, MemoryLimit(2**40), LIMITS, 2)


@pytest.mark.parametrize("change", ["cheaper", "elsewhere", "no rule"])
def test_a_wrong_answer_of_the_solver_is_noticed(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*given: Any) -> Any:
        found: Any = ask(*given)
        moves = list(found.value)
        if change == "cheaper":
            counters = (("objective", 10**12),)
            stats = replace(found.stats, counters=counters)
            return replace(found, bound=10**12, stats=stats)
        if change == "elsewhere":
            return replace(found, value=tuple(moves[:-1]))
        return replace(found, value=((moves[1][0], moves[0][1]), *moves[1:], moves[0]))

    monkeypatch.setattr(layered, "ask", wrong)
    with pytest.raises(EncodingBug):
        swapped()


def test_digits_inside_a_level_are_of_one_class() -> None:
    ends, prices = swap()
    levels = [sibling_levels(prices.topology, ends.frame, 0)]
    assert levels == [(0, 0, 1, 1, 1)]
    assert digit_classes(prices.topology, ends.frame, levels) == (0, 0, 1, 1, 1)
    mixed = replace(ends.frame, orders=(tuple(reversed(ends.frame.orders[0])),))
    assert sibling_levels(prices.topology, mixed, 0) is None
    assert digit_classes(prices.topology, mixed, [None]) == (0, 1, 2, 3, 4)


def test_classes_have_one_price() -> None:
    """Whichever digits of a class a collective takes, its price is the row's."""
    ends, prices = swap("dp=4,tp=8", "azure-ndv4:4")
    table = RowTable(ends, prices, MemoryLimit(2**40))
    rows = {(r.move, r.moved, r.sharding): r.price for r in table.rows()}
    for row, seconds in rows.items():
        move, moved, sharding = row
        kind = {2: StepKind.ALL_GATHER, 3: StepKind.ALL_TO_ALL}.get(move)
        if kind is not None and moved == (1, 1):
            before = 8192 * 8192 * 2 // 2 ** sharding[0]
            payload = before * 4 if kind is StepKind.ALL_GATHER else before
            for digits in ((0, 2), (0, 4), (1, 3)):
                assert prices.collective(kind, digits, payload).seconds == seconds


def test_too_many_kinds_of_groups_are_refused() -> None:
    devices = list(range(4096))
    random.Random(0).shuffle(devices)
    ends = ends_of(
        array("a=64,b=64", (4096, 4096), "S(a),R", devices),
        array("a=64,b=64", (4096, 4096), "R,S(a)", devices),
    )
    prices = StepPrices(load_topology("dgx-h100:512").nominal(), ends[0].frame)
    with pytest.raises(TooLarge, match="too many for the solver"):
        best_layered(ends, [prices], MemoryLimit(2**40), LIMITS, 2)

"""Bounds on the time that is left: never above a step's price plus the bound after it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Algorithm
from p2smt.resharding.endpoints import Ends
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.time_left import (
    LinkBound,
    Overlaps,
    boxes_of,
    hardware_rates,
    physical_bound_s,
)
from p2smt.resharding.types import Uneven
from tests.oracles.redistributions import all_states, all_steps
from tests.resharding.types import first_ends
from tests.strategies.redistributions import (
    ArrayScene,
    array_scenes,
    random_frame,
    random_state,
    random_step,
)
from tests.tiers import but_the_first, examples_of

STEPS = 12


def at_most(low: float, high: float) -> bool:
    """Up to rounding."""
    return low <= high * (1 + 1e-9) + 1e-18


@pytest.mark.exhaustive
@settings(max_examples=examples_of(600))
@given(array_scenes())
def test_no_step_gains_more_than_its_price(scene: ArrayScene) -> None:
    """From a random state on a random walk: so the bound is below every plan's price, too."""
    shuffle, frame = scene.shuffle, scene.frame
    prices = StepPrices(scene.topology, frame)
    target = random_state(shuffle, frame)
    bounds = LinkBound(scene.topology, frame, target)
    links = LinkBound(scene.topology, frame, target, hardware_rates(scene.topology))
    assert bounds.seconds(target) == 0.0
    state = _above(random_state(shuffle, frame), target)
    for _ in range(STEPS):
        step = random_step(shuffle, frame, state)
        if step is None or not set(target.partial) <= set(step.after.partial):
            continue
        step.check(frame)
        here, after = bounds.seconds(state), bounds.seconds(step.after)
        assert at_most(links.seconds(state), here)
        assert at_most(here, prices.step(step).seconds + after), step
        state = step.after


def _above(state: ArrayState, target: ArrayState) -> ArrayState:
    """The state with the target's partial digits partial."""
    kept = set(state.partial) | set(target.partial)
    dims = tuple(tuple(d for d in dim if d not in kept) for dim in state.dims)
    return ArrayState(dims, tuple(sorted(kept)), state.order)


def lacking(frame: Frame, state: ArrayState, target: ArrayState, devices: set[int]) -> int:
    """Elements that devices need of the target and none of them holds, index by index."""

    def regions(of: ArrayState) -> set[tuple[int, ...]]:
        found: set[tuple[int, ...]] = set()
        for place, device in enumerate(frame.orders[of.order]):
            if device in devices:
                ranges = []
                for dim, size in enumerate(frame.shape):
                    low, high = 0, size
                    for digit in of.dims[dim]:
                        each = -(-(high - low) // frame.sizes[digit])
                        low = min(low + each * int(frame.coordinates()[place, digit]), high)
                        high = min(low + each, high)
                    ranges.append(range(low, high))
                found |= set(itertools.product(*ranges))
        return found

    return len(regions(target) - regions(state))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_what_entities_lack_is_counted_index_by_index(seed: int, nested: bool) -> None:
    shuffle = Random(seed)
    topology = load_topology("dgx1-v100").with_outermost(2)
    frame = random_frame(shuffle, [2, 2, 3], topology.devices)
    shape = tuple(shuffle.randint(1, 17) if nested else 12 for _ in range(2))
    frame = replace(frame, shape=shape, nested=nested)
    state, target = (random_state(shuffle, frame, ()) for _ in range(2))
    for level in range(3):
        under = topology.devices_under(level)
        boxes = boxes_of(topology, frame, np.ones(topology.devices // under), level)
        names = sorted({device // under for device in frame.orders[0]})
        found = Overlaps(frame, target, boxes).missing(state).tolist()
        members = [{d for d in frame.orders[0] if d // under == name} for name in names]
        every = [lacking(frame, state, target, one) for one in members]
        assert found == [one for one, kept in zip(every, boxes.kept, strict=True) if kept]
        assert under > 1 or boxes.kept.all()


def test_partial_values_are_held_where_all_contributions_are() -> None:
    """Of m that hold contributions and k that need the sum: m + k - 2 messages an element."""
    topology = replace(load_topology("dgx-a100").nominal(), algorithms=(Algorithm.RING,))
    ends = first_ends("dp=2,tp=8", (64,), "R;P(dp);P(tp)", "R")
    rates = hardware_rates(topology)
    node, device = (float(rates.into[level][0]) for level in (0, 1))
    bounds = LinkBound(topology, ends.frame, ends.target, rates)
    across, inside = 64 * 4 * (2 * (2 - 1) / 2) / node, 64 * 4 * (2 * 15 / 16) / device
    assert bounds.seconds(ends.source) == pytest.approx(max(across, inside) + rates.least_s[0])
    local = first_ends("dp=2,tp=8", (64,), "R;P(tp)", "R")
    bounds = LinkBound(topology, local.frame, local.target, rates)
    expected = 64 * 4 * (8 + 16 - 2) / 16 / device + rates.least_s[1]
    assert bounds.seconds(local.source) == pytest.approx(expected)


@pytest.mark.exhaustive
def test_contributions_count_by_the_order_of_devices_of_the_state() -> None:
    """In one order those to a sum lie in two nodes, in the other one in one."""
    topology = replace(load_topology("dgx1-v100:2").nominal(), algorithms=(Algorithm.RING,))
    frame = first_ends("a=2,b=8", (8,), "R", "R").frame
    turned = tuple(np.arange(16).reshape(8, 2).T.ravel().tolist())
    frame = replace(frame, orders=(frame.orders[0], turned))
    node = np.ones(2)
    found = Overlaps(frame, ArrayState(((),), (), 1), boxes_of(topology, frame, node, 0))
    assert found.entering(ArrayState(((),), (0,), 0)) == 8 * (2 + 2 - 2)
    assert found.entering(ArrayState(((),), (0,), 1)) == 0.0
    prices, every = StepPrices(topology, frame), all_steps(frame, (0, 1))
    for target in (ArrayState(((),)), ArrayState(((2,),), (), 1)):
        bounds = LinkBound(topology, frame, target)
        left = {state: bounds.seconds(state) for state in every}
        for state in Random(2).sample(sorted(every, key=repr), 40):
            for step in every[state]:
                assert at_most(left[state], prices.step(step).seconds + left[step.after]), step


def test_switches_that_reduce_let_each_sum_in_once() -> None:
    topology = load_topology("dgx-h100")
    ends = first_ends("dp=2,tp=8", (64,), "R;P(tp)", "R")
    rates = hardware_rates(topology)
    found = LinkBound(topology, ends.frame, ends.target, rates).seconds(ends.source)
    assert found == pytest.approx(64 * 4 / float(rates.into[1][0]))


@pytest.mark.parametrize("preset", ["azure-ndv4", "dgx-h100", "mi300x", "aws-p3dn", "tpu-v5p"])
def test_a_swap_takes_what_the_links_need_at_least(preset: str) -> None:
    topology = load_topology(preset)
    ends = first_ends("a=4,b=4", (1024, 1024), "S(a),S(b)", "S(b),S(a)")
    found = physical_bound_s(topology, ends)
    plan = StepPrices(topology, ends.frame).permute(ends.source, ends.target).seconds
    assert 0 < found < plan
    assert physical_bound_s(topology, Ends(ends.frame, ends.source, ends.source)) == 0.0


def test_one_device_lacks_nothing() -> None:
    topology = load_topology("dgx-h100")
    ends = first_ends("a=1", (4,), "R", "S(a)")
    assert LinkBound(topology, ends.frame, ends.target).seconds(ends.source) == 0.0
    assert physical_bound_s(topology, ends) == 0.0


@pytest.mark.parametrize("preset", but_the_first("dgx1-v100", "azure-ndv4", "mi300x"))
@pytest.mark.parametrize(
    ("mesh", "shape", "uneven"),
    [
        ("a=2,b=3", (5, 7), Uneven.NESTED),
        ("a=4", (5, 7 * 10**6), Uneven.NESTED),
        ("a=2,b=2", (3, 10**6 + 1), Uneven.NESTED),
        ("a=2,b=4", (8, 8), Uneven.REFUSE),
    ],
)
def test_every_step_of_a_small_frame_keeps_to_the_bound(
    preset: str, mesh: str, shape: tuple[int, ...], uneven: Uneven
) -> None:
    """Towards every target without partial values."""
    topology = load_topology(preset)
    ends = first_ends(mesh, shape, "S(a),R", "R,R", uneven)
    prices = StepPrices(topology, ends.frame)
    every = all_steps(ends.frame, (0,))
    priced = [(step, prices.step(step).seconds) for state in every for step in every[state]]
    shuffle = Random(1)
    states = all_states(ends.frame)
    for target in shuffle.sample(states, min(6, len(states))):
        bounds = LinkBound(topology, ends.frame, target)
        left = {state: bounds.seconds(state) for state in every}
        for step, seconds in priced:
            assert at_most(left[step.before], seconds + left[step.after]), step

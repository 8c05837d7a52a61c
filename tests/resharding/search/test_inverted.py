"""Clusters on which a level has more latency than one outside it, against brute force.

There the nearest holder of a block is not always the best sender, and two permutes may be faster
than the one that does what both do.  The oracle tries every state, every step and every sender.
"""

from __future__ import annotations

import math
from functools import partial
from random import Random

import pytest

from p2smt.cluster.file import parse_topology
from p2smt.errors import InputError
from p2smt.resharding.reachability import RedistributionAnswer, RedistributionQuestion
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.search import find_redistribution
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.types import ArrayType, ElementType, parse_layout, parse_mesh
from p2smt.result import Status
from tests.oracles import redistributions as oracle
from tests.oracles.senders import least_seconds
from tests.resharding.cost.inverted import inverted

MESHES = {
    4: ("a=2,b=2", "a=4"),
    6: ("a=2,b=3", "a=6", "a=3,b=2"),
    8: ("a=2,b=4", "a=4,b=2", "a=8", "a=2,b=2,c=2"),
}
SIZES = ((2, 4), (4, 2), (2, 2, 2), (2, 2), (2, 3), (3, 2))
FEASIBLE = 299
"""A case whose best plan the links and latencies of its permutes alone do not prove."""


def question(seed: int) -> RedistributionQuestion:
    """A random case of up to 8 devices.

    Raises:
        InputError: its dimensions do not divide.
    """
    shuffle = Random(seed)
    topology = inverted(shuffle, shuffle.choice(SIZES))
    count = topology.devices
    order = None if shuffle.random() < 0.7 else shuffle.sample(range(count), count)
    mesh = parse_mesh(shuffle.choice(MESHES[count]), order)
    shape = tuple(shuffle.choice([24, 48, 240, 12000]) for _ in range(shuffle.randint(1, 2)))
    axes = [axis.name for axis in mesh.axes]
    layouts = [_layout(shuffle, axes, len(shape), p) for p in (shuffle.random() < 0.3, False)]
    source, target = (
        ArrayType(mesh, shape, ElementType.F32, parse_layout(text, mesh)) for text in layouts
    )
    return RedistributionQuestion(source, target, topology)


def _layout(shuffle: Random, axes: list[str], dims: int, partial: bool) -> str:
    lists: list[list[str]] = [[] for _ in range(dims)]
    sums = ""
    for axis in shuffle.sample(axes, len(axes)):
        where = shuffle.randint(-2 if partial else -1, dims - 1)
        if where >= 0:
            lists[where].append(axis)
        sums += f";P({axis})" * (where == -2)
    return ",".join(f"S({','.join(some)})" if some else "R" for some in lists) + sums


def check(asked: RedistributionQuestion) -> RedistributionAnswer:
    """The answer is as fast as the best of all plans; it is called optimal if that is proved."""
    found, best = find_redistribution(asked), math.inf
    for ends in asked.ends():
        price = partial(least_seconds, StepPrices(asked.topology, ends.frame))
        seconds = oracle.best_cost(ends, price, asked.memory(ends))
        best = min(best, math.inf if seconds is None else seconds)
    assert isinstance(found.plan, RedistributionPlan)
    assert found.plan.objective_s == pytest.approx(best, rel=1e-9)
    assert found.bound_s <= best * (1 + 1e-9)
    optimal = found.status is Status.OPTIMAL
    assert optimal == (found.bound_s == pytest.approx(best, rel=1e-9))
    assert bool(found.stats.reason) == (not optimal)
    return found


def _check_seed(seed: int) -> None:
    try:
        asked = question(seed)
    except InputError:
        return
    check(asked)


@pytest.mark.parametrize("seed", [52, 72, 109])
def test_the_answer_is_that_of_brute_force(seed: int) -> None:
    """Of these no plan is as fast whose blocks are all sent by the nearest holders."""
    _check_seed(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(0, 1000, 50))
def test_the_answer_is_that_of_brute_force_often(first: int) -> None:
    for seed in range(first, first + 50):
        _check_seed(seed)


def test_what_only_a_bound_limits_is_feasible_and_says_why() -> None:
    asked = question(FEASIBLE)
    found = check(asked)
    assert found.status is Status.FEASIBLE
    assert 0 < found.bound_s < found.plan.objective_s  # type: ignore[union-attr]
    assert "other holders may send" in found.stats.reason


def test_two_permutes_across_nodes_are_faster_than_one_inside() -> None:
    topology = parse_topology(
        """
name: inverted
library: none
algorithms: [ring]
levels:
  - {name: l1, size: 2, link: {kind: switch, bandwidth: 5 GB/s, latency: 0.5 us}}
  - {name: l2, size: 4, link: {kind: switch, bandwidth: 100 GB/s, latency: 20 us}}
""",
        "inverted",
    )
    mesh = parse_mesh("a=2,b=4")
    source, target = (
        ArrayType(mesh, (16,), ElementType.F32, parse_layout(text, mesh))
        for text in ("S(a,b)", "S(b)")
    )
    found = check(RedistributionQuestion(source, target, topology))
    assert found.status is Status.OPTIMAL
    assert found.plan is not None
    assert found.plan.objective_s == pytest.approx(1.5128e-6)

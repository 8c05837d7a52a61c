"""Chains of steps: nothing waits that need not, nothing runs that must wait."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from p2smt.collectives import contract as contracts
from p2smt.runtime.schedules.rows import chains_of, order_in_ranks
from p2smt.schedules.model import Schedule, StepRef
from tests.runtime.schedules.tools import all_pairs, ring
from tests.schedules.building import Blocks


def _random(seed: int) -> Schedule:
    """Steps of one rank with arbitrary, but not circular, predecessors."""
    draw, blocks = random.Random(seed), Blocks()
    refs: list[StepRef] = []
    for _ in range(draw.randrange(1, 12)):
        some = tuple(ref for ref in refs if draw.random() < 0.3)
        kind = {"after": some} if draw.random() < 0.5 else {"waits": some}
        background = draw.random() < 0.3
        block = draw.randrange(3)
        refs.append(blocks.add(0, block, "nop", count=0, background=background, **kind))
    return blocks.schedule("random", contracts.contract("allreduce", 1, 1, in_place=True))


def test_blocks_in_program_order_are_chains() -> None:
    schedule = ring(3)
    for rank in range(3):
        (chain,) = chains_of(schedule, order_in_ranks(schedule), rank)
        assert [schedule.steps[n].index for n in chain.steps] == list(range(8))
        assert chain.waits == ((),) * 8
        assert chain.foreground == 8
    assert len(chains_of(all_pairs(3), order_in_ranks(all_pairs(3)), 0)) == 5


@given(st.integers(0, 10_000))
def test_chains_wait_for_exactly_what_the_schedule_says(seed: int) -> None:
    schedule = _random(seed)
    order = order_in_ranks(schedule)
    chains = chains_of(schedule, order, 0)
    assert sorted(n for chain in chains for n in chain.steps) == list(range(len(schedule.steps)))
    for chain in chains:
        for place, (number, waits) in enumerate(zip(chain.steps, chain.waits, strict=True)):
            earlier = set(chain.steps[:place])
            assert set(waits) == set(order.before[number]) - earlier
            if place:
                assert chain.steps[place - 1] in order.before[number]
        left = chain.steps[chain.foreground :]
        assert all(schedule.steps[number].background for number in left)
        if chain.foreground:
            assert not schedule.steps[chain.steps[chain.foreground - 1]].background

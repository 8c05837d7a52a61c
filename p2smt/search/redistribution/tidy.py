"""Of plans that take equally long, the one that reads best: lists of digits in ascending order.

An all-to-all may leave its digits in any order at the same price.  In ascending order adjacent
digits are one axis, and blocks that follow each other in memory need no pack buffer.
"""

from __future__ import annotations

from dataclasses import replace

from p2smt.arrays.ends import Ends
from p2smt.arrays.memory import MemoryLimit, within
from p2smt.arrays.state import ArrayState
from p2smt.arrays.steps import ArrayStep
from p2smt.cost.redistribution.prices import StepPrices
from p2smt.errors import InputError

_SAME = 1e-12


def tidied(
    ends: Ends, prices: StepPrices, steps: tuple[ArrayStep, ...], memory: MemoryLimit
) -> tuple[ArrayStep, ...]:
    """The same kinds of steps by way of tidier states, where that costs nothing."""
    for number in range(1, len(steps)):
        state = steps[number].before
        other = replace(state, dims=tuple(tuple(sorted(dim)) for dim in state.dims))
        if other != state:
            changed = _by_way_of(steps, number, other)
            if _as_good(ends, prices, changed[number - 1 : number + 1], steps, number) and within(
                ends.frame, ends.source, changed, memory
            ):
                steps = changed
    return steps


def _by_way_of(
    steps: tuple[ArrayStep, ...], number: int, state: ArrayState
) -> tuple[ArrayStep, ...]:
    """The steps with another state before the one of that number."""
    into, out_of = steps[number - 1], steps[number]
    changed = (type(into)(into.before, state), type(out_of)(state, out_of.after))
    return (*steps[: number - 1], *changed, *steps[number + 1 :])


def _as_good(
    ends: Ends,
    prices: StepPrices,
    changed: tuple[ArrayStep, ...],
    steps: tuple[ArrayStep, ...],
    number: int,
) -> bool:
    """Whether the two steps obey their rules and take no longer than those they replace."""
    try:
        for step in changed:
            step.check(ends.frame)
    except InputError:
        return False
    now = sum(prices.step(step).seconds for step in changed)
    before = sum(prices.step(step).seconds for step in steps[number - 1 : number + 1])
    return now <= before * (1 + _SAME)

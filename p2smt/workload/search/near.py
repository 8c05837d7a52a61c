"""Strategies side by side: what they have in common, and how far measured ones are.

Strategies that the model cannot tell apart are better chosen by what was measured: the distance
counts doublings of degrees, and switches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

from p2smt.workload.search.answer import StrategyRun
from p2smt.workload.search.question import SEARCHED
from p2smt.workload.strategy import Strategy
from p2smt.workload.strategy_text import key_of

FAR = 2.0
"""A run at a greater distance, such as two doublings and a switch, is not near."""
DEGREES = ("tp", "pp", "dp", "cp", "vpp", "micro_batch")
SWITCHES = ("sequence_parallel", "zero", "recompute")


def distance(one: Strategy, other: Strategy) -> float:
    """How far strategies are apart.

    The square root of the sum of squares: of each degree the doublings between both, of each switch
    1 if it differs.
    """
    ratios = (math.log2(getattr(one, name) / getattr(other, name)) for name in DEGREES)
    differ = (getattr(one, name) != getattr(other, name) for name in SWITCHES)
    return math.sqrt(sum(x * x for x in ratios) + sum(differ))


def nearest(
    strategies: Sequence[Strategy], measured: Sequence[StrategyRun]
) -> tuple[int, int, float]:
    """The pair of a strategy and a measured one that are least apart: indices, and the distance.

    Of several the first.
    """
    apart, one, run = min(
        (distance(strategy, run.strategy), i, j)
        for i, strategy in enumerate(strategies)
        for j, run in enumerate(measured)
    )
    return one, run, apart


def common(strategies: Sequence[Strategy]) -> tuple[tuple[str, str], ...]:
    """The searched fields that have one value in all strategies, with it, in words."""
    return tuple((name, found[0]) for name, found in _values(strategies) if len(found) == 1)


def differing(strategies: Sequence[Strategy]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The searched fields that have several values, with them, in words."""
    return tuple((name, found) for name, found in _values(strategies) if len(found) > 1)


def outside(strategy: Strategy, measured: Sequence[StrategyRun]) -> tuple[str, ...]:
    """How a strategy lies outside everything measured, in words, a text for each field.

    A degree does beyond the least and the greatest one measured, a switch if it was never set so,
    and all together if no run is at a distance of at most ``FAR``.
    """
    if not measured:
        return ()
    texts = []
    for name in DEGREES:
        value, seen = getattr(strategy, name), [getattr(run.strategy, name) for run in measured]
        if not min(seen) <= value <= max(seen):
            among = f"{min(seen)} to {max(seen)}" if min(seen) < max(seen) else f"{min(seen)} only"
            texts.append(f"{key_of(name)}={value}: measured are {among}")
    for name in SWITCHES:
        value, taken = getattr(strategy, name), {getattr(run.strategy, name) for run in measured}
        if value not in taken:
            known, verb = ", ".join(sorted(map(_word, taken))), "is" if len(taken) == 1 else "are"
            texts.append(f"{key_of(name)}={_word(value)}: measured {verb} {known}")
    _, run, apart = nearest([strategy], measured)
    if apart > FAR:
        texts.append(f"nothing near it was measured: {measured[run].name} is {apart:.2g} away")
    return tuple(texts)


def _values(strategies: Sequence[Strategy]) -> list[tuple[str, tuple[str, ...]]]:
    """The values of each searched field, ascending."""
    found = []
    for name in SEARCHED:
        values = {getattr(strategy, name) for strategy in strategies}
        ordered = sorted(values, key=lambda one: one.value if isinstance(one, Enum) else one)
        found.append((name, tuple(map(_word, ordered))))
    return found


def _word(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)

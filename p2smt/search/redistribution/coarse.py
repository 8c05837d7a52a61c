"""A good plan quickly where types are many: on digits that are several of a level's together.

Fewer digits leave fewer types, which the exact search visits all.  Every plan on coarse digits is
one on the fine ones, so that it bounds the best from above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.arrays.array_type import ArrayType
from p2smt.arrays.ends import Ends, Splits, ends_of, prime_factors
from p2smt.arrays.frame import Frame, digits_of_part
from p2smt.arrays.memory import MemoryLimit
from p2smt.arrays.state import ArrayState
from p2smt.arrays.steps import ArrayStep
from p2smt.cluster.topology import Topology
from p2smt.cost.redistribution.level_cuts import level_splits
from p2smt.cost.redistribution.prices import StepPrices
from p2smt.errors import InputError
from p2smt.result import SearchLimits
from p2smt.search.redistribution.exact.best import best_path
from p2smt.search.redistribution.path import PathResult
from p2smt.search.redistribution.question import RedistributionQuestion

MOST_DIGITS = 4
COARSE_S = 5.0
"""Wall seconds that a first plan may take."""


def coarse_path(
    question: RedistributionQuestion,
    ends: Sequence[Ends],
    memory: MemoryLimit,
    limits: SearchLimits,
) -> PathResult | None:
    """A plan in the frame of one of ``ends``; None: there is none on coarse digits, or no time."""
    topology, source = question.topology, question.source
    try:
        coarse = ends_of(source, question.target, coarse_splits(topology, source))
    except InputError:  # the types have cuts of their own, between which these do not fit
        return None
    left = limits.time_limit_s
    share = replace(limits, time_limit_s=COARSE_S if left is None else min(COARSE_S, left / 2))
    prices = [StepPrices(topology, one.frame) for one in coarse]
    found = best_path(coarse, prices, memory, share, max_steps=question.max_steps)
    if found.seconds is None:
        return None
    return _refined(found, coarse[found.ends].frame, ends)


def coarse_splits(topology: Topology, kind: ArrayType) -> Splits:
    """At most ``MOST_DIGITS`` factors, if levels are no more: those of one level are multiplied."""
    found = [
        [prime_factors(factor) for factor in axis] for axis in level_splits(topology, kind.mesh)
    ]
    while sum(len(factor) for axis in found for factor in axis) > MOST_DIGITS:
        pairs = [
            (factor[at] * factor[at + 1], factor, at)
            for axis in found
            for factor in axis
            for at in range(len(factor) - 1)
        ]
        if not pairs:
            break
        product, factor, at = min(pairs, key=lambda pair: pair[0])
        factor[at : at + 2] = [product]
    return tuple(tuple(part for factor in axis for part in factor) or (1,) for axis in found)


def _refined(found: PathResult, coarse: Frame, ends: Sequence[Ends]) -> PathResult | None:
    """The same steps on the finer digits of the first of ``ends`` that cuts where they do."""
    for number, one in enumerate(ends):
        try:
            finer = _Refinement.of(coarse, one.frame)
        except InputError:
            continue
        return replace(found, ends=number, steps=tuple(map(finer.step, found.steps)))
    return None


@dataclass(frozen=True, slots=True)
class _Refinement:
    """Of each coarse digit the fine ones that it is made of."""

    parts: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(coarse: Frame, fine: Frame) -> _Refinement:
        """Raises InputError unless every coarse digit is made of fine ones."""
        parts = (digits_of_part(digit, fine.digits, fine.mesh) for digit in coarse.digits)
        return _Refinement(tuple(parts))

    def step(self, step: ArrayStep) -> ArrayStep:
        return type(step)(self.state(step.before), self.state(step.after))

    def state(self, state: ArrayState) -> ArrayState:
        dims = tuple(self._digits(dim) for dim in state.dims)
        return ArrayState(dims, tuple(sorted(self._digits(state.partial))), state.order)

    def _digits(self, digits: Sequence[int]) -> tuple[int, ...]:
        return tuple(fine for digit in digits for fine in self.parts[digit])

"""Which sizes the axes of a strategy may have, by plain arithmetic.

It says again, number by number, what :mod:`p2smt.training.validity` and the search's own space say
of whole columns: for those who count what a search has covered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np

from p2smt.training.formulas.stages import splits_evenly
from p2smt.training.search.question import (
    LARGEST_CP,
    LARGEST_MICRO_BATCH,
    LARGEST_VPP,
    STAGES,
    PlanQuestion,
)
from p2smt.training.strategy import AXES

AxisSizes = tuple[int, ...]
"""In the order of :data:`~p2smt.training.strategy.AXES`: pp, dp, cp, tp."""


def possible_sizes(question: PlanQuestion) -> frozenset[AxisSizes]:
    """The sizes of all axes that some valid strategy of a question has."""
    allowed = _Allowed(question)
    devices = question.topology.devices
    every = _factorisations(devices, len(AXES))
    return frozenset(sizes for sizes in every if allowed.some_strategy(*sizes))


def _factorisations(number: int, parts: int) -> Iterator[AxisSizes]:
    """Every way to write a number as an ordered product."""
    small = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    divisors = sorted({*small, *(number // n for n in small)})

    def ways(left: int, many: int) -> Iterator[AxisSizes]:
        if many == 1:
            yield (left,)
            return
        for first in divisors:
            if left % first == 0:
                for rest in ways(left // first, many - 1):
                    yield (first, *rest)

    yield from ways(number, parts)


class _Allowed:
    """What a question allows, as numbers."""

    def __init__(self, question: PlanQuestion) -> None:
        self._question, self._fixed = question, dict(question.fixed)
        self._model, self._batch = question.model, question.batch

    def some_strategy(self, pp: int, dp: int, cp: int, tp: int) -> bool:
        """Whether a valid strategy has these sizes of its axes."""
        space, model, topology = self._question.space, self._model, self._question.topology
        domain = topology.devices_under(topology.node_level)
        degrees = (
            (pp, "pp", space.pp or model.layers + 2),
            (dp, "dp", topology.devices),
            (cp, "cp", space.cp or LARGEST_CP),
            (tp, "tp", space.tp or domain),
        )
        if not all(self._may(name, value, most) for value, name, most in degrees):
            return False
        chunks = range(1, (space.vpp or LARGEST_VPP) + 1)
        micro = range(1, (space.micro_batch or LARGEST_MICRO_BATCH) + 1)
        switches = [int(one) for one in space.sequence_parallel or (0, 1)]
        sharding = 0 in self._values("zero", list(space.zero or STAGES)) or dp * cp > 1
        return (
            sharding
            and self._axes_fit(cp, tp)
            and any(
                self._rest_fits(pp, dp, cp, tp, *one)
                for one in product(
                    self._values("vpp", chunks),
                    self._values("micro_batch", micro),
                    self._values("sequence_parallel", switches),
                )
            )
        )

    def _may(self, name: str, value: int, most: int) -> bool:
        fixed = self._fixed.get(name)
        return value <= most if fixed is None else value == fixed

    def _values(self, name: str, allowed: range | list[int]) -> range | list[int]:
        fixed = self._fixed.get(name)
        return [int(fixed)] if isinstance(fixed, int) else allowed

    def _axes_fit(self, cp: int, tp: int) -> bool:
        """What the model and the length of a sequence ask of the axes alone."""
        model, tokens = self._model, self._batch.tokens
        shared = model.kv_heads % tp == 0 or tp % model.kv_heads == 0
        halves = cp == 1 or tokens % (2 * cp) == 0
        return model.heads % tp == 0 and model.ffn % tp == 0 and shared and halves

    def _rest_fits(
        self, pp: int, dp: int, cp: int, tp: int, vpp: int, micro: int, parallel: int
    ) -> bool:
        """What batch, layers and sequence ask of all fields together."""
        sequences, stages = self._batch.sequences, pp * vpp
        if parallel and tp == 1:
            return False
        if sequences % (dp * micro) or self._batch.tokens % (cp * (tp if parallel else 1)):
            return False
        if vpp > 1 and (pp == 1 or sequences // (dp * micro) % pp):
            return False
        model = self._model
        return bool(splits_evenly(model.layers, model.mtp, np.array(stages)))

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
    LARGEST_OF_MIXTURES,
    LARGEST_VPP,
    STAGES,
    PlanQuestion,
)
from p2smt.training.strategy import AXES, DISPATCHERS, OPTIMIZER_BYTES, Recompute
from p2smt.training.transformer import Experts

AxisSizes = tuple[int, ...]
"""In the order of :data:`~p2smt.training.strategy.AXES`: pp, dp, cp, tp; of a mixture then ed, ep
and et.  Where copies of shards are searched for, dp and ed are these and the shards."""


def possible_sizes(question: PlanQuestion) -> frozenset[AxisSizes]:
    """The sizes of all axes that some valid strategy of a question has."""
    allowed = _Allowed(question)
    devices = question.topology.devices
    ways = _factorisations(devices, len(AXES))
    found = (sizes for sizes in ways if allowed.some_strategy(*sizes))
    experts = question.model.experts
    every = (
        (*sizes, *theirs)
        for sizes in found
        for theirs in ([()] if experts is None else allowed.of_experts(experts, *sizes))
    )
    return frozenset(one for sizes in every for one in allowed.with_copies(sizes))


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
        usual = {"cp": LARGEST_CP, "vpp": LARGEST_VPP, "micro_batch": LARGEST_MICRO_BATCH}
        self._most = usual | (dict(LARGEST_OF_MIXTURES) if question.model.experts else {})
        every = STAGES if question.optimizer_bytes == OPTIMIZER_BYTES else STAGES[1:]
        self._stages = self._values("zero", list(question.space.zero or every))

    def some_strategy(self, pp: int, dp: int, cp: int, tp: int) -> bool:
        """Whether a valid strategy has these sizes of its axes."""
        space, model, topology = self._question.space, self._model, self._question.topology
        domain = topology.devices_under(topology.node_level)
        degrees = (
            (pp, "pp", space.pp or model.layers + 2 + (model.mtp if model.experts else 0)),
            (dp, "dp", topology.devices),
            (cp, "cp", space.cp or self._most["cp"]),
            (tp, "tp", space.tp or (min(domain, model.heads) if model.experts else domain)),
        )
        if not all(self._may(name, value, most) for value, name, most in degrees):
            return False
        sharding = 0 in self._stages or dp * cp > 1
        return sharding and self._axes_fit(cp, tp) and bool(self._chunks(pp, dp, cp, tp))

    def of_experts(
        self, experts: Experts, pp: int, dp: int, cp: int, tp: int
    ) -> Iterator[AxisSizes]:
        """The sizes of ed, ep and et that go with those of a strategy."""
        space, ranks = self._question.space, dp * cp * tp
        chunks = self._chunks(pp, dp, cp, tp)
        if experts.shared_width % tp:
            return
        for ep in range(1, min(ranks, experts.count) + 1):
            for et in range(1, min(ranks // ep, experts.width) + 1):
                whole = not (experts.count % ep or experts.width % et or ranks % (ep * et))
                mine = self._may("ep", ep, space.ep or experts.count)
                mine = mine and self._may("etp", et, space.etp or self._most["etp"])
                if whole and mine and self._switches_fit(pp, ep, chunks):
                    yield ranks // (ep * et), ep, et

    def _switches_fit(self, pp: int, ep: int, chunks: frozenset[int]) -> bool:
        """Whether some recomputation, way of tokens and overlap go with graphs and degrees."""
        question, space = self._question, self._question.space
        again = [self._fixed["recompute"]] if "recompute" in self._fixed else question.recomputes
        moved = self._fixed.get("dispatcher")
        ways = (moved,) if moved else space.dispatcher or DISPATCHERS
        if question.graphs == "full" and ep > 1 and "flex" not in ways:
            return False
        whole = [one for one in again if one is Recompute.FULL]
        beside = [one for one in again if not (isinstance(one, tuple) and "moe" in one)]
        allowed = len(again) - len(whole) * (question.graphs == "partial")
        if 0 in self._values("overlap", list(map(int, space.overlap or (0, 1)))):
            return allowed > 0
        hides = ep > 1 and self._model.mtp < 2 and (pp == 1 or max(chunks) > 1)
        return hides and len(beside) > len(whole)

    def with_copies(self, sizes: AxisSizes) -> Iterator[AxisSizes]:
        """The sizes with data parallelism divided into copies and shards, where it is."""
        if not self._question.copied:
            yield sizes
            return
        pp, dp, cp, tp, *theirs = sizes
        most = self._question.most_copies
        for copies in range(1, min(dp, most) + 1):
            whole = dp % copies == 0 and not (theirs and theirs[0] % copies)
            split = copies == 1 or (dp * cp > copies and max(self._stages) > 0)
            if whole and split and self._may("dp_replicate", copies, most):
                experts = (copies, theirs[0] // copies, *theirs[1:]) if theirs else ()
                yield (pp, copies, dp // copies, cp, tp, *experts)

    def _chunks(self, pp: int, dp: int, cp: int, tp: int) -> frozenset[int]:
        """The chunks a stage of the valid strategies with these sizes of their axes."""
        space = self._question.space
        chunks = range(1, (space.vpp or self._most["vpp"]) + 1)
        micro = range(1, (space.micro_batch or self._most["micro_batch"]) + 1)
        switches = [int(one) for one in space.sequence_parallel or (0, 1)]
        return frozenset(
            one[0]
            for one in product(
                self._values("vpp", chunks),
                self._values("micro_batch", micro),
                self._values("sequence_parallel", switches),
            )
            if self._rest_fits(pp, dp, cp, tp, *one)
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
        cut = model.mamba is None or (model.mamba.heads % tp == 0 and model.mamba.groups % tp == 0)
        return model.heads % tp == 0 and model.ffn % tp == 0 and shared and halves and cut

    def _rest_fits(
        self, pp: int, dp: int, cp: int, tp: int, vpp: int, micro: int, parallel: int
    ) -> bool:
        """What batch, layers and sequence ask of all fields together."""
        sequences, stages = self._batch.sequences, pp * vpp
        if parallel and tp == 1:
            return False
        if self._model.experts and tp > 1 and not parallel:
            return False
        if sequences % (dp * micro) or self._batch.tokens % (cp * (tp if parallel else 1)):
            return False
        if vpp > 1 and (pp == 1 or sequences // (dp * micro) % pp):
            return False
        model = self._model
        return bool(splits_evenly(model.layers, model.mtp, np.array(stages)))

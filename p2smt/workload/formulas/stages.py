"""How many layers the stages of pipelines have.

Chunk ``i`` of ``pp * vpp`` lies on stage ``i mod pp``.  An even split has as many layers in every
chunk; where the layers do not divide, the embedding and the logits count as a layer each, and the
first and the last chunk have one layer fewer (Megatron-LM's
``account-for-embedding-in-pipeline-split`` and ``account-for-loss-in-pipeline-split``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.cost.loads.routing import FloatArray
from p2smt.errors import InputError
from p2smt.parallelism.placement import BoolArray, IntArray
from p2smt.workload.formulas.columns import StrategyColumns
from p2smt.workload.strategy import Strategy

_ENDS = 2  # the embedding and the logits


@dataclass(frozen=True, slots=True)
class Stages:
    """Stages that stand for all: arrays of shape (strategies, representatives).

    Of an even split these are the first, the second and the last stage, since those between are
    alike; of a given split all.  ``weight``: how many stages a representative stands for, 0 where
    it is a repetition.  ``layers`` are on it; ``uneven``: how many more of them hold activations at
    once than if its chunks were alike.
    """

    index: IntArray
    weight: IntArray
    layers: IntArray
    uneven: FloatArray

    @staticmethod
    def of(layers: int, columns: StrategyColumns, micro_batches: IntArray) -> Stages:
        """The stages of each strategy for a model of so many layers.

        Raises:
            InputError: a given split has a wrong length or sum, or no even split exists.
        """
        if columns.splits:
            return _given_stages(layers, columns, micro_batches)
        return _even_stages(layers, columns, micro_batches)

    def take(self, rows: IntArray | BoolArray) -> Stages:
        """Those of some of the strategies, by index or by mask."""
        return Stages(
            self.index[rows],
            self.weight[rows],
            self.layers[rows],
            self.uneven[rows],
        )


def chunk_layers(layers: int, strategy: Strategy) -> tuple[int, ...]:
    """Layers of each chunk in the order of the model.

    Raises:
        InputError: a given split has a wrong length or sum, or no even split exists.
    """
    if strategy.split:
        if len(strategy.split) != strategy.chunks or sum(strategy.split) != layers:
            raise _unsplit(layers, strategy.pp, strategy.vpp)
        return strategy.split
    chunks = strategy.chunks
    if layers % chunks == 0:
        return (layers // chunks,) * chunks
    if strategy.pp == 1 or (layers + _ENDS) % chunks:
        raise _unsplit(layers, strategy.pp, strategy.vpp)
    each = (layers + _ENDS) // chunks
    return (each - 1, *(each,) * (chunks - 2), each - 1)


def _unsplit(layers: int, pp: int, vpp: int) -> InputError:
    rule = f"do not split {layers} layers; {layers + _ENDS} with embedding and logits neither"
    return InputError(f"pp * vpp = {pp} * {vpp} chunks", rule)


def _given_stages(layers: int, columns: StrategyColumns, micro_batches: IntArray) -> Stages:
    shape = (len(columns), int(columns.pp.max()))
    index = np.minimum(np.arange(shape[1]), columns.pp[:, None] - 1)
    weight = (np.arange(shape[1]) < columns.pp[:, None]).astype(np.int64)
    layers_of, uneven = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    for row in range(len(columns)):
        strategy = columns.strategy(row)
        chunks = chunk_layers(layers, strategy)
        for at, stage in enumerate(index[row].tolist()):
            mine = chunks[stage :: strategy.pp]
            layers_of[row, at] = sum(mine)
            uneven[row, at] = uneven_layers(mine, stage, strategy.pp, int(micro_batches[row]))
    return Stages(index, weight, layers_of, uneven)


def _even_stages(layers: int, columns: StrategyColumns, micro_batches: IntArray) -> Stages:
    pp, vpp = columns.pp, columns.vpp
    chunks = pp * vpp
    by_layers = layers % chunks == 0
    wrong = ~by_layers & ((pp == 1) | ((layers + _ENDS) % chunks != 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise _unsplit(layers, int(pp[row]), int(vpp[row]))
    each = np.where(by_layers, layers // chunks, (layers + _ENDS) // chunks)
    index = np.stack((np.zeros_like(pp), np.minimum(1, pp - 1), pp - 1), axis=1)
    weight = np.stack((np.ones_like(pp), np.maximum(pp - 2, 0), np.minimum(pp - 1, 1)), axis=1)
    at_end = (index == 0) | (index == (pp - 1)[:, None])
    fewer = (at_end & ~by_layers[:, None]).astype(np.int64)
    uneven = np.zeros(index.shape)
    rows = np.flatnonzero(~by_layers & (vpp > 1))
    uneven[rows] = _uneven_ends(columns.take(rows), micro_batches[rows])
    return Stages(index, weight, (each * vpp)[:, None] - fewer, uneven)


def _uneven_ends(columns: StrategyColumns, micro_batches: IntArray) -> FloatArray:
    """``uneven`` of the first, the second and the last stage where ends count as layers.

    It is the same for any number of layers in a chunk, so few cases are different ones.
    """
    cases = np.stack((columns.pp, columns.vpp, micro_batches), axis=1)
    kinds, which = np.unique(cases, axis=0, return_inverse=True)
    found = np.zeros((len(kinds), 3))
    for n, (pp, vpp, many) in enumerate(kinds.tolist()):
        first, last = (0, *(1,) * (vpp - 1)), (*(1,) * (vpp - 1), 0)
        found[n, 0] = uneven_layers(first, 0, pp, many)
        found[n, 1] = uneven_layers(last, 1, pp, many) if pp == 2 else 0.0
        found[n, 2] = uneven_layers(last, pp - 1, pp, many)
    return found[which.ravel()]


def uneven_layers(chunks: Sequence[int], stage: int, pp: int, micro_batches: int) -> float:
    """How many more layers hold activations than if the stage's chunks were alike; maybe negative.

    A stage goes forward through a chunk for ``pp`` micro-batches, then through the next, and
    backward through the last chunk first; ``held`` forward passes are ahead of the backward ones.
    """
    vpp = len(chunks)
    if len(set(chunks)) == 1:
        return 0.0
    total = micro_batches * vpp
    held = min(total, 2 * (pp - stage - 1) + (vpp - 1) * pp + 1)
    ends = np.arange(held, min(total, held + pp * vpp) + 1)
    weights = np.array(chunks)
    done = weights[np.arange(int(ends[-1])) // pp % vpp].cumsum()
    undone = weights[::-1][np.arange(int(ends[-1])) // pp % vpp].cumsum()
    back = ends - held
    most = (done[ends - 1] - np.where(back > 0, undone[back - 1], 0)).max()
    return float(most) - held * sum(chunks) / vpp

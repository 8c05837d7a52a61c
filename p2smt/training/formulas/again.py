"""Layers that are computed again whole: all of a stage, or the first ones of each of its chunks.

The latter is ``recompute_method="block"`` of Megatron-LM (megatron/core/recompute.py lines 168-182,
d98e8a64), which leaves layers of multi-token prediction out (multi_token_prediction.py line 1630).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from p2smt.parallelism.placement import FloatArray, IntArray
from p2smt.training.formulas.stages import (
    RECOMPUTES,
    Stages,
    StrategyColumns,
    ahead_layers,
    chunk_layers,
    uneven_layers,
)
from p2smt.training.strategy import Recompute
from p2smt.training.transformer import Attention, LayerKind, Mlp, Transformer

_PARTS = ("full", "full_a", "full_f", "full_w", "full_m", "full_d", "full_x")
"""Symbols of the parts of a stage's layers: of all, and of those of each kind."""
_UNEVEN = ("n_again", "n_plain")


def parts_again(
    model: Transformer, columns: StrategyColumns, stages: Stages, micro_batches: IntArray
) -> Mapping[str, FloatArray]:
    """The part of a stage's layers of each kind, ``n_again`` and ``n_plain``, by their symbols.

    Of shape (strategies, 1), or (strategies, stages) where any strategy counts layers.
    """
    full = (columns.recompute == RECOMPUTES.index(Recompute.FULL)).astype(np.float64)[:, None]
    counted = columns.mixture.recompute_layers if columns.mixture else np.zeros(len(columns))
    if not counted.any():
        return dict.fromkeys(_PARTS, full) | dict.fromkeys(_UNEVEN, np.zeros((len(columns), 1)))
    found = {name: np.repeat(full, stages.index.shape[1], axis=1) for name in _PARTS}
    found |= {name: np.zeros(stages.index.shape) for name in _UNEVEN}
    for row in np.flatnonzero(counted).tolist():
        of_stages = _Again(model, columns, row, int(micro_batches[row]))
        for at, stage in enumerate(stages.index[row].tolist()):
            for name, value in of_stages.parts(stage, float(stages.uneven[row, at])):
                found[name][row, at] = value
    return found


class _Again:
    """What of each stage of a strategy is computed again."""

    def __init__(
        self, model: Transformer, columns: StrategyColumns, row: int, micro_batches: int
    ) -> None:
        self._model, self._many = model, micro_batches
        self._strategy = columns.strategy(row)
        self._chunks = chunk_layers(model.layers, self._strategy, model.mtp)
        self._every = list(model.each_kind)

    def parts(self, stage: int, uneven: float) -> Iterator[tuple[str, float]]:
        """The symbols' values on a stage that holds so many layers unevenly."""
        pp, most = self._strategy.pp, self._strategy.recompute_layers
        mine = range(stage, len(self._chunks), pp)
        these = [kind for at in mine for kind in self._layers(at)[:most]]
        all_ = [kind for at in mine for kind in self._layers(at) + self._ahead(at)]
        for name in _PARTS:
            yield name, _part(name, these, all_)
        again = tuple(min(self._chunks[at], most) for at in mine)
        whole = tuple(self._chunks[at] + len(self._ahead(at)) for at in mine)
        plain = tuple(count - some for count, some in zip(whole, again, strict=True))
        share = _part("full", these, all_)
        yield "n_again", uneven_layers(again, stage, pp, self._many) - share * uneven
        yield "n_plain", uneven_layers(plain, stage, pp, self._many) - (1 - share) * uneven

    def _layers(self, chunk: int) -> list[LayerKind]:
        """Those of a chunk but of multi-token prediction."""
        before = sum(self._chunks[:chunk])
        return self._every[before : before + self._chunks[chunk]]

    def _ahead(self, chunk: int) -> list[LayerKind]:
        """Those of multi-token prediction in a chunk."""
        return self._every[-1:] * ahead_layers(self._model.mtp, self._strategy)[chunk]


def _part(name: str, these: list[LayerKind], all_: list[LayerKind]) -> float:
    """Of the layers of a kind, the part that these are; 0 where there are none."""
    of, among = (sum(_is(name, kind) for kind in kinds) for kinds in (these, all_))
    return of / among if among else 0.0


def _is(name: str, kind: LayerKind) -> bool:
    match name:
        case "full":
            return True
        case "full_a":
            return kind.attention in (Attention.FULL, Attention.WINDOW)
        case "full_f":
            return kind.attention is Attention.FULL
        case "full_w":
            return kind.attention is Attention.WINDOW
        case "full_m":
            return kind.attention is Attention.MAMBA
        case "full_d":
            return kind.mlp is Mlp.DENSE
        case _:
            return kind.mlp is Mlp.EXPERTS

"""How many layers the stages of pipelines have.

Chunk ``i`` of ``pp * vpp`` lies on stage ``i mod pp``.  An even split has as many layers in every
chunk; where the layers do not divide, the embedding and the logits count as a layer each, and the
first and the last chunk have one layer fewer (Megatron-LM's
``account-for-embedding-in-pipeline-split`` and ``account-for-loss-in-pipeline-split``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from p2smt.errors import InputError
from p2smt.parallelism.placement import BoolArray, FloatArray, IntArray
from p2smt.training.strategy import MIXTURE_FIELDS, MODULES, Recompute, Strategy
from p2smt.training.transformer import Attention, Mlp, Transformer

_ENDS = 2  # the embedding and the logits


@dataclass(frozen=True, slots=True)
class Stages:
    """Stages that stand for all: arrays of shape (strategies, representatives).

    Of an even split these are the first, the second and the last stage, since those between are
    alike; of a given split all.  ``weight``: how many stages a representative stands for, 0 where
    it is a repetition.  ``layers`` are on it; ``uneven``: how many more of them hold activations at
    once than if its chunks were alike.  ``kinds``: of layers of several kinds, how many of each are
    on it, by the symbol of the formulas.
    """

    index: IntArray
    weight: IntArray
    layers: IntArray
    uneven: FloatArray
    kinds: Mapping[str, IntArray] = field(default_factory=dict)

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
            {name: counts[rows] for name, counts in self.kinds.items()},
        )

    @staticmethod
    def of_kinds(model: Transformer, columns: StrategyColumns, micro_batches: IntArray) -> Stages:
        """Every stage of each strategy for a model with layers of several kinds.

        Raises:
            InputError: as of :meth:`of`.
        """
        most = int(columns.pp.max())
        found = [np.zeros((len(columns), most)) for _ in range(2 + len(KINDS))]
        known: dict[tuple[object, ...], FloatArray] = {}
        splits = columns.splits or ((),) * len(columns)
        cases = zip(
            columns.pp.tolist(), columns.vpp.tolist(), micro_batches.tolist(), splits, strict=True
        )
        for row, case in enumerate(cases):
            if case not in known:
                known[case] = _kinds_of_stages(model, *case)
            for at, column in enumerate(known[case]):
                found[at][row, : case[0]] = column
                found[at][row, case[0] :] = column[-1]
        index = np.minimum(np.arange(most), columns.pp[:, None] - 1)
        weight = (np.arange(most) < columns.pp[:, None]).astype(np.int64)
        layers, uneven, *kinds = found
        counts = {name: one.astype(np.int64) for name, one in zip(KINDS, kinds, strict=True)}
        return Stages(index, weight, layers.astype(np.int64), uneven, counts)


def chunk_layers(layers: int, strategy: Strategy, ahead: int = 0) -> tuple[int, ...]:
    """Layers of each chunk in the order of the model, but those of multi-token prediction.

    ``ahead``: how many these are; they lie in the last chunk, which has fewer others for it.

    Raises:
        InputError: a given split has a wrong length or sum, or no even split exists.
    """
    if strategy.split:
        if len(strategy.split) != strategy.chunks or sum(strategy.split) != layers:
            raise _unsplit(layers, strategy.pp, strategy.vpp)
        return strategy.split
    return _even_chunks(layers, strategy.pp, strategy.vpp, ahead)


def _even_chunks(layers: int, pp: int, vpp: int, ahead: int) -> tuple[int, ...]:
    """As many in each chunk, ends counted where that is needed."""
    chunks = pp * vpp
    if layers % chunks == 0:
        return (layers // chunks,) * chunks
    if pp > 1 and (layers + _ENDS) % chunks == 0:
        each = (layers + _ENDS) // chunks
        return (each - 1, *(each,) * (chunks - 2), each - 1)
    if pp == 1 or not ahead or (layers + _ENDS + ahead) % chunks:
        raise _unsplit(layers, pp, vpp)
    each = (layers + _ENDS + ahead) // chunks
    lacking = max(0, 1 + ahead - each)  # what the last chunk cannot give up, the first does
    first = each - 1 - lacking
    if first < 0:
        raise _unsplit(layers, pp, vpp)
    return (first, *(each,) * (chunks - 2), max(0, each - 1 - ahead))


KINDS = ("nf", "nw", "nm", "nd", "nx", "nt")
"""Symbols of how many layers of a stage have full, windowed and Mamba attention, a dense MLP and
experts, and how many predict later tokens."""


def _kinds_of_stages(
    model: Transformer, pp: int, vpp: int, micro_batches: int, split: tuple[int, ...]
) -> FloatArray:
    """Layers, uneven layers and layers of each kind of the stages of a strategy: (columns, pp)."""
    strategy = Strategy(pp=pp, vpp=vpp, split=split)
    chunks = chunk_layers(model.layers, strategy, model.mtp)
    every = [kind for run in model.runs for _ in range(run.repeat) for kind in run.kinds]
    bounds = np.cumsum((0, *chunks))
    ahead = [0] * (len(chunks) - 1) + [model.mtp]
    found = np.zeros((2 + len(KINDS), pp))
    for stage in range(pp):
        mine = range(stage, len(chunks), pp)
        held = tuple(chunks[at] + ahead[at] for at in mine)
        of = [kind for at in mine for kind in every[bounds[at] : bounds[at + 1]]]
        of += [every[-1]] * sum(ahead[at] for at in mine)
        attention = [sum(one.attention is kind for one in of) for kind in _ATTENTIONS]
        mlps = [sum(one.mlp is kind for one in of) for kind in (Mlp.DENSE, Mlp.EXPERTS)]
        uneven = uneven_layers(held, stage, pp, micro_batches)
        last = sum(ahead[at] for at in mine)
        found[:, stage] = (sum(held), uneven, *attention, *mlps, last)
    return found


_ATTENTIONS = (Attention.FULL, Attention.WINDOW, Attention.MAMBA)


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


# Strategies as columns of numbers, for formulas over many of them at once.


RECOMPUTES = tuple(Recompute)
"""``recompute`` of columns counts in this order."""


@dataclass(frozen=True, slots=True)
class StrategyColumns:
    """Fields of strategies, an array of equal length for each.

    ``recompute`` holds indices of ``RECOMPUTES``; ``splits`` the given splits (an empty one: even),
    or nothing if all are even.
    """

    tp: IntArray
    pp: IntArray
    dp: IntArray
    cp: IntArray
    vpp: IntArray
    micro_batch: IntArray
    sequence_parallel: BoolArray
    zero: IntArray
    recompute: IntArray
    flash: BoolArray
    dtype: npt.NDArray[np.str_]
    splits: tuple[tuple[int, ...], ...] = ()
    dropout: BoolArray | None = None
    mixture: MixtureColumns | None = None

    @staticmethod
    def of(strategies: Sequence[Strategy]) -> StrategyColumns:
        """The columns of some strategies, in their order."""
        values: dict[str, npt.NDArray[np.generic]] = {
            name: np.array([getattr(one, name) for one in strategies], dtype=dtype)
            for name, dtype in _DTYPES.items()
        }
        values["recompute"] = np.array(
            [RECOMPUTES.index(one.recompute) for one in strategies], dtype=np.int64
        )
        splits = tuple(one.split for one in strategies)
        mixture = MixtureColumns.of(strategies)
        return StrategyColumns(**values, splits=splits if any(splits) else (), mixture=mixture)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.tp)

    def take(self, rows: IntArray | BoolArray) -> StrategyColumns:
        """Some of the strategies, by index or by mask."""
        chosen = {
            field.name: getattr(self, field.name)[rows]
            for field in fields(self)
            if field.name not in ("splits", "mixture", "dropout")
        }
        chosen["dropout"] = self.dropped[rows]
        order = np.arange(len(self))[rows].tolist() if self.splits else []
        mixture = self.mixture.take(rows) if self.mixture else None
        return StrategyColumns(
            **chosen, splits=tuple(self.splits[i] for i in order), mixture=mixture
        )

    def strategy(self, row: int) -> Strategy:
        """One of them as a strategy."""
        whole: dict[str, Any] = {name: int(getattr(self, name)[row]) for name in _WHOLE}
        return Strategy(
            **whole,
            sequence_parallel=bool(self.sequence_parallel[row]),
            recompute=RECOMPUTES[int(self.recompute[row])],
            flash=bool(self.flash[row]),
            dtype=str(self.dtype[row]),
            dropout=bool(self.dropped[row]),
            split=self.splits[row] if self.splits else (),
            **(self.mixture.fields(row) if self.mixture else {}),
        )

    @property
    def dropped(self) -> BoolArray:
        """Whether each has dropout; None of all: none has."""
        return np.zeros(len(self), dtype=np.bool_) if self.dropout is None else self.dropout

    @property
    def ranks(self) -> Mapping[str, IntArray]:
        """The sizes of all axes by name, experts' too."""
        more = self.mixture or MixtureColumns.none(len(self))
        ed = self.dp * self.cp * self.tp // (more.ep * more.etp)
        own = {"pp": self.pp, "dp": self.dp, "cp": self.cp, "tp": self.tp}
        return {**own, "ed": ed, "ep": more.ep, "et": more.etp}


_WHOLE = ("tp", "pp", "dp", "cp", "vpp", "micro_batch", "zero")
_DTYPES: dict[str, type[np.generic]] = {
    **dict.fromkeys(_WHOLE, np.int64),
    "sequence_parallel": np.bool_,
    "flash": np.bool_,
    "dtype": np.str_,
    "dropout": np.bool_,
}


@dataclass(frozen=True, slots=True)
class MixtureColumns:
    """What strategies of a mixture or in low precision have besides, as arrays.

    ``modules``: whether each of ``MODULES`` is computed again, shape (strategies, modules).
    """

    ep: IntArray
    etp: IntArray
    dispatcher: npt.NDArray[np.str_]
    overlap: BoolArray
    graphs: npt.NDArray[np.str_]
    fp8_attention: BoolArray
    fp8_params: BoolArray
    modules: BoolArray

    @staticmethod
    def of(strategies: Sequence[Strategy]) -> MixtureColumns | None:
        """Those of strategies; None where all have the defaults."""
        usual = Strategy()
        names = MIXTURE_FIELDS
        if all(getattr(one, name) == getattr(usual, name) for one in strategies for name in names):
            return None
        columns = {name: np.array([getattr(one, name) for one in strategies]) for name in _MIXTURE}
        modules = [[name in one.modules for name in MODULES] for one in strategies]
        return MixtureColumns(**columns, modules=np.array(modules, dtype=bool))

    @staticmethod
    def none(count: int) -> MixtureColumns:
        """The defaults of so many strategies."""
        usual = Strategy()
        columns = {name: np.full(count, getattr(usual, name)) for name in _MIXTURE}
        return MixtureColumns(**columns, modules=np.zeros((count, len(MODULES)), dtype=bool))

    def take(self, rows: IntArray | BoolArray) -> MixtureColumns:
        """Those of some of the strategies."""
        return MixtureColumns(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})

    def fields(self, row: int) -> dict[str, Any]:
        """The fields of a strategy."""
        found = {name: getattr(self, name)[row].item() for name in _MIXTURE}
        chosen = self.modules[row].tolist()
        again = tuple(name for name, is_again in zip(MODULES, chosen, strict=True) if is_again)
        return found | {"modules": again}


_MIXTURE = tuple(name for name in MIXTURE_FIELDS if name != "modules")

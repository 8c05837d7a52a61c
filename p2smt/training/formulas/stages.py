"""How many layers the stages of pipelines have.

Chunk ``i`` of ``pp * vpp`` lies on stage ``i mod pp``.  An even split has as many layers in every
chunk; where the layers do not divide, the embedding and the logits count as a layer each, and the
first and the last chunk have one layer fewer (Megatron-LM's
``account-for-embedding-in-pipeline-split`` and ``account-for-loss-in-pipeline-split``); where
that does not divide either, the D layers of multi-token prediction count too, and the last chunk
gives up D + 2 layers, the first what it lacks for that (as Megatron-Bridge's recipes lay out
DeepSeek-V3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from p2smt.errors import InputError
from p2smt.parallelism.placement import BoolArray, FloatArray, IntArray
from p2smt.training.strategy import KIND_FIELDS, MIXTURE_FIELDS, MODULES, Recompute, Strategy
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
        """The stages of each strategy for a model with layers of several kinds.

        Of those with the same layers the first stands for all: none holds more activations.

        Raises:
            InputError: as of :meth:`of`.
        """
        cases, which = _distinct_cases(columns, micro_batches)
        every = [_alike_stages(model, *case) for case in cases]
        most = max(len(one) for one in every)
        table = np.stack([np.pad(one, ((0, most - len(one)), (0, 0)), "edge") for one in every])
        for one, rows in zip(every, table, strict=True):
            rows[len(one) :, 1] = 0
        index, weight, layers, uneven, *kinds = np.moveaxis(table[which], -1, 0)
        first, many, held = (one.astype(np.int64) for one in (index, weight, layers))
        counts = {name: one.astype(np.int64) for name, one in zip(KINDS, kinds, strict=True)}
        return Stages(first, many, held, uneven, counts)


def chunk_layers(layers: int, strategy: Strategy, ahead: int = 0) -> tuple[int, ...]:
    """Layers of each chunk in the order of the model, but those of multi-token prediction.

    ``ahead``: how many these are; of an even split they lie in the last chunk, which has fewer
    others for it.

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
    lacking = max(0, _ENDS + ahead - each)  # what the last chunk cannot give up, the first does
    if lacking > each:
        raise _unsplit(layers, pp, vpp)
    return (each - lacking, *(each,) * (chunks - 2), max(0, each - _ENDS - ahead))


def ahead_layers(ahead: int, strategy: Strategy) -> tuple[int, ...]:
    """Layers of multi-token prediction of each chunk: all in one, the last unless one is named."""
    at = strategy.mtp_chunk or strategy.chunks
    return tuple(ahead * (chunk == at) for chunk in range(1, strategy.chunks + 1))


def countings(layers: int, ahead: int = 0) -> tuple[int, ...]:
    """What is split evenly over chunks: layers, ends with them, layers of MTP with both."""
    more = (layers + _ENDS + ahead,) if ahead else ()
    return (layers, layers + _ENDS, *more)


def splits_evenly(layers: int, ahead: int, chunks: IntArray) -> BoolArray:
    """Whether there is an even split over so many chunks (of one stage: layers must divide)."""
    fair = np.logical_or.reduce([count % chunks == 0 for count in (layers, layers + _ENDS)])
    counted = layers + _ENDS + ahead
    roomy = 2 * (counted // chunks) >= _ENDS + ahead  # of the first and the last chunk together
    return np.asarray(fair | ((ahead > 0) & (counted % chunks == 0) & roomy))


KINDS = ("nf", "nw", "nm", "nd", "nx", "nt")
"""Symbols of how many layers of a stage have full, windowed and Mamba attention, a dense MLP and
experts, and how many predict later tokens."""


_Case = tuple[int, int, int, int, tuple[int, ...]]
"""What tells the stages of a strategy: pp, vpp, micro-batches, the chunk with layers of multi-token
prediction, and a given split."""


def _distinct_cases(
    columns: StrategyColumns, micro_batches: IntArray
) -> tuple[list[_Case], IntArray]:
    """The different cases, and which of them each strategy is.

    More micro-batches than can be on their way make no difference.
    """
    many = np.minimum(micro_batches, 3 * columns.pp + 1)
    splits = columns.splits or ((),) * len(columns)
    numbers = {split: at for at, split in enumerate(dict.fromkeys(splits))}
    of = np.array([numbers[split] for split in splits]) if columns.splits else np.zeros_like(many)
    more = columns.mixture or MixtureColumns.none(len(columns))
    stacked = np.stack((columns.pp, columns.vpp, many, more.mtp_chunk, of))
    base = np.cumprod((stacked.max(axis=1) + 1)[::-1])[::-1]
    keys = (stacked * np.append(base[1:], 1)[:, None]).sum(axis=0)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    given = list(numbers)
    cases = [(*case[:4], given[case[4]]) for case in stacked[:, first].T.tolist()]
    return cases, which.ravel()


def _alike_stages(
    model: Transformer,
    pp: int,
    vpp: int,
    micro_batches: int,
    mtp_chunk: int,
    split: tuple[int, ...],
) -> FloatArray:
    """Of stages with the same layers the first, and how many they are.

    Columns: its number, these, its layers, how uneven they are, and its layers of each kind.
    """
    layers = _kinds_of_stages(model, pp, vpp, mtp_chunk, split)
    found: dict[tuple[float, ...], list[float]] = {}
    for stage, (held, of_kinds) in enumerate(layers):
        uneven = uneven_layers(held, stage, pp, micro_batches)
        key = (stage == 0, stage == pp - 1, sum(held), uneven, *of_kinds)
        found.setdefault(key, [stage, 0, *key[2:]])[1] += 1
    return np.array(list(found.values()), dtype=np.float64)


@lru_cache(maxsize=4096)
def _kinds_of_stages(
    model: Transformer, pp: int, vpp: int, mtp_chunk: int, split: tuple[int, ...]
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Of each stage the layers of its chunks, and its layers of each kind."""
    strategy = Strategy(pp=pp, vpp=vpp, split=split, mtp_chunk=mtp_chunk)
    chunks = chunk_layers(model.layers, strategy, model.mtp)
    every = model.each_kind
    bounds = np.cumsum((0, *chunks)).tolist()
    ahead = ahead_layers(model.mtp, strategy)
    found = []
    for stage in range(pp):
        mine = range(stage, len(chunks), pp)
        of = [kind for at in mine for kind in every[bounds[at] : bounds[at + 1]]]
        of += [every[-1]] * sum(ahead[at] for at in mine)
        attention = [sum(one.attention is kind for one in of) for kind in _ATTENTIONS]
        mlps = [sum(one.mlp is kind for one in of) for kind in (Mlp.DENSE, Mlp.EXPERTS)]
        held = tuple(chunks[at] + ahead[at] for at in mine)
        found.append((held, (*attention, *mlps, sum(ahead[at] for at in mine))))
    return tuple(found)


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
    or nothing if all are even.  ``sequences``: the batch of each; None: that of the question.
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
    sequences: IntArray | None = None

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
            if field.name not in ("splits", "mixture", "dropout", "sequences")
        }
        chosen["dropout"] = self.dropped[rows]
        if self.sequences is not None:
            chosen["sequences"] = self.sequences[rows]
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

    def given(self, values: Mapping[str, Any]) -> StrategyColumns:
        """The same with one value of some fields of mixtures for all strategies."""
        usual = Strategy()
        if all(value == getattr(usual, name) for name, value in values.items()):
            return self
        more = self.mixture or MixtureColumns.none(len(self))
        filled = {name: np.full(len(self), value) for name, value in values.items()}
        return replace(self, mixture=replace(more, **filled))

    @property
    def dropped(self) -> BoolArray:
        """Whether each has dropout; None of all: none has."""
        return np.zeros(len(self), dtype=np.bool_) if self.dropout is None else self.dropout

    @property
    def ranks(self) -> Mapping[str, IntArray]:
        """The sizes of all axes by name, experts' too.

        Of dp and ed they are those over which ZeRO shards; dpr and edr are their copies.
        """
        more = self.mixture or MixtureColumns.none(len(self))
        copies = more.dp_replicate
        ed = self.dp * self.cp * self.tp // (more.ep * more.etp * copies)
        own = {"pp": self.pp, "dp": self.dp // copies, "cp": self.cp, "tp": self.tp}
        theirs = {"ed": ed, "ep": more.ep, "et": more.etp}
        return {**own, **theirs, "dpr": copies, "edr": copies}


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
    recompute_layers: IntArray
    dp_replicate: IntArray
    shared_overlap: BoolArray
    mtp_chunk: IntArray
    imbalance: FloatArray
    optimizer_bytes: IntArray
    offload: FloatArray

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

    @property
    def of_kinds(self) -> bool:
        """Whether any strategy has what only the formulas of kinds of layers know."""
        usual = Strategy()
        differ = (np.any(getattr(self, name) != getattr(usual, name)) for name in _KINDS_ONLY)
        return bool(self.modules.any() or any(differ))

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
_KINDS_ONLY = tuple(name for name in KIND_FIELDS if name != "modules")

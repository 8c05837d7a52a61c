"""The table of formulas, evaluated for arrays of strategies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from p2smt.cluster.link import Device
from p2smt.errors import InputError
from p2smt.parallelism.placement import FloatArray, IntArray
from p2smt.training.efficiency import Efficiency, Framework, LayerConstants
from p2smt.training.formulas.compiled import formula_table, kinds_table
from p2smt.training.formulas.compiled.table import FormulaTable
from p2smt.training.formulas.stages import (
    RECOMPUTES,
    MixtureColumns,
    Stages,
    StrategyColumns,
    ahead_layers,
    chunk_layers,
    uneven_layers,
)
from p2smt.training.strategy import MODULES, PEAK_OF, SIXTEEN, Batch, Recompute
from p2smt.training.transformer import Attention, LayerKind, Mlp, Transformer


@dataclass(frozen=True, slots=True)
class Quantities:
    """Values of symbols and rows by name, of shape (strategies, 1) or (strategies, stages).

    ``stages`` says which stages the second dimension stands for.
    """

    stages: Stages
    values: Mapping[str, FloatArray]
    table: FormulaTable

    def of_strategy(self, name: str) -> FloatArray:
        """A value that does not differ by stage: shape (strategies,)."""
        return self.of_stage(name)[:, 0]

    def of_stage(self, name: str) -> FloatArray:
        """A value by stage: shape (strategies, stages)."""
        value, shape = self.values[name], self.stages.index.shape
        return value if value.shape == shape else np.broadcast_to(value, shape)


def by_kinds(model: Transformer, columns: StrategyColumns, efficiency: Efficiency | None) -> bool:
    """Whether the formulas of layers of several kinds are needed, or those of an efficiency.

    The formulas of dense models in 16 bits are exact copies of these, with constants of their own.
    """
    low = not set(np.unique(columns.dtype).tolist()) <= set(SIXTEEN)
    fitted = efficiency is not None and efficiency.layers is not None
    mixed = columns.mixture is not None and columns.mixture.of_kinds
    return fitted or low or not model.dense or mixed


def quantities(
    model: Transformer,
    batch: Batch,
    columns: StrategyColumns,
    framework: Framework,
    efficiency: Efficiency | None = None,
) -> Quantities:
    """Sizes, operations, memory and what requests carry: all that needs no device.

    Raises:
        InputError: a split does not fit the model.
    """
    model = model.seen(batch.tokens)
    sequences = batch.sequences if columns.sequences is None else columns.sequences
    micro_batches = sequences // (columns.dp * columns.micro_batch)
    kinds = by_kinds(model, columns, efficiency)
    stages = (
        Stages.of_kinds(model, columns, micro_batches)
        if kinds
        else Stages.of(model.layers, columns, micro_batches)
    )
    values = {
        **_of_model(model, batch),
        **_of_framework(framework, columns),
        **_of_strategies(columns),
        "B": _sequences(columns, batch),
        **_of_stages(stages, columns),
        **parts_again(model, columns, stages, micro_batches),
    }
    if not kinds:
        return Quantities(stages, {**values, **formula_table().counts(values)}, formula_table())
    clamped = model.experts is not None and model.experts.clamped
    values |= {**_of_parts(model, batch), **_of_mixtures(columns, clamped)}
    table = kinds_table(model.mla is not None)
    return Quantities(stages, {**values, **table.counts(values)}, table)


def with_seconds(
    counted: Quantities, columns: StrategyColumns, device: Device, efficiency: Efficiency
) -> Quantities:
    """The same with seconds on a device.

    Raises:
        InputError: the device states no peak for a data type, or scales no blocks for it.
    """
    return timed(counted, given(counted, columns, device, efficiency))


def timed(counted: Quantities, values: Mapping[str, FloatArray]) -> Quantities:
    """Quantities of these values, with the seconds that they give."""
    seconds = counted.table.seconds(values)
    return Quantities(counted.stages, {**values, **seconds}, counted.table)


def _peak_flops(device: Device, dtype: str) -> float:
    """Of a type of products; cores that scale blocks (mxfp8) came with those of 4 bits."""
    if dtype == "mxfp8" and "fp4" not in dict(device.peaks):
        device.peak_flops(PEAK_OF[dtype])
        rule = "mxfp8 is of devices that scale blocks, which have a peak of fp4 as well"
        raise InputError(f"device {device.name}", rule, "take dtype=fp8, or give its peak of fp4")
    return device.peak_flops(PEAK_OF[dtype])


def given(
    counted: Quantities, columns: StrategyColumns, device: Device, efficiency: Efficiency
) -> dict[str, FloatArray]:
    """All that seconds follow from: what is counted, a device, and its constants.

    Raises:
        InputError: as of :func:`with_seconds`.
    """
    names = {str(dtype): PEAK_OF[str(dtype)] for dtype in np.unique(columns.dtype)}
    kinds = {dtype: _peak_flops(device, dtype) for dtype in names}
    peaks = np.array([kinds[str(dtype)] for dtype in columns.dtype])
    constants = _for_all(
        W=device.memory_bandwidth_bytes_per_s,
        eta=efficiency.fraction,
        layer_s=efficiency.layer_s,
    )
    values = {**counted.values, **_by_strategy(peak=peaks), **constants}
    if counted.stages.kinds:
        values |= _of_constants(columns, device, efficiency, names, peaks)
    return values


def _of_constants(
    columns: StrategyColumns,
    device: Device,
    efficiency: Efficiency,
    names: Mapping[str, str],
    peaks: FloatArray,
) -> dict[str, FloatArray]:
    """What the formulas of kinds ask of a device and an efficiency besides."""
    layers = efficiency.layers or LayerConstants()
    low = {dtype: efficiency.fraction_of(peak) for dtype, peak in names.items()}
    wide = {dtype: device.peak_flops("fp16" if dtype == "fp16" else "bf16") for dtype in names}
    by_dtype = _by_strategy(
        peak=np.array([wide[str(dtype)] for dtype in columns.dtype]),
        peak_low=peaks,
        eta_low=np.array([low[str(dtype)] for dtype in columns.dtype]),
    )
    return by_dtype | _for_all(
        eta_memory=layers.memory,
        eta_core=layers.core,
        edge=layers.edge,
        quantised=layers.quantised,
        state_bytes=layers.state_bytes,
        hides=layers.hides,
        host_attention_s=layers.host_attention_s,
        host_mlp_s=layers.host_mlp_s,
        host_mamba_s=layers.host_mamba_s,
        host_experts_s=layers.host_experts_s,
        host_expert_s=layers.host_expert_s,
    )


# Symbols by name, as arrays of the shapes that the formulas take.


def _for_all(**numbers: float) -> dict[str, FloatArray]:
    """Symbols of one value for all strategies."""
    return {name: np.array(float(number)) for name, number in numbers.items()}


def _by_strategy(**columns: ArrayLike) -> dict[str, FloatArray]:
    """Symbols with a value for each strategy."""
    return {name: values[:, None] for name, values in _by_stage(**columns).items()}


def _by_stage(**values: ArrayLike) -> dict[str, FloatArray]:
    """Symbols of shape (strategies, stages)."""
    return {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}


def _of_model(model: Transformer, batch: Batch) -> dict[str, FloatArray]:
    return _for_all(
        L=model.layers,
        h=model.hidden,
        a=model.heads,
        e=model.head_size,
        q=model.query_width,
        k=model.key_width,
        f=model.ffn,
        g=1 + model.gated,
        V=model.vocab,
        tied=model.tied,
        mtp=model.mtp > 0,
        s=batch.tokens,
    )


def _of_parts(model: Transformer, batch: Batch) -> dict[str, FloatArray]:
    """Sizes of experts, latent attention and Mamba-2; 0 where a model has none."""
    one, mla, mamba = model.experts, model.mla, model.mamba
    return _for_all(
        E=one.count if one else 0,
        r=one.active if one else 0,
        fe=one.width if one else 0,
        fs=one.shared_width if one else 0,
        w=(one.latent or model.hidden) if one else 0,
        wl=one.latent if one else 0,
        rq=mla.query_rank if mla else 0,
        direct=bool(mla and not mla.query_rank),
        rkv=mla.kv_rank if mla else 0,
        en=mla.nope if mla else 0,
        er=mla.rope if mla else 0,
        ev=mla.value if mla else 0,
        win=model.window,
        HP=mamba.width if mamba else 0,
        GN=mamba.groups * mamba.state if mamba else 0,
        Hm=mamba.heads if mamba else 0,
        Ns=mamba.state if mamba else 0,
        token_flops=model.token_flops(batch.tokens),
    )


CLAMPED = 65
"""Bytes more that biased, clamped activations move for each element inside an expert; half of it
where they are fused, as full graphs ask for: fitted."""


COPY_BYTES_8, COPY_BYTES_4 = 2 + 2 / 32, 1 + 2 / 16
"""Bytes of a parameter in low precision: once as it is and once transposed, as the backward pass
takes it, with a scale for each block of 32 or 16 (arXiv 2310.10537; Transformer Engine keeps both
from the first micro-batch on)."""


def _of_mixtures(columns: StrategyColumns, clamped: bool) -> dict[str, FloatArray]:
    more, ranks = columns.mixture or MixtureColumns.none(len(columns)), columns.ranks
    again = dict(zip(MODULES, more.modules.T, strict=True))
    selective = columns.recompute == RECOMPUTES.index(Recompute.SELECTIVE)
    low = ~np.isin(columns.dtype, SIXTEEN)
    copies = np.where(columns.dtype == "nvfp4", COPY_BYTES_4, COPY_BYTES_8) * low
    return _by_strategy(
        ep=ranks["ep"],
        et=ranks["et"],
        ed=ranks["ed"] * more.dp_replicate,
        low=low,
        fp8_params=more.fp8_params & low,
        copy_bytes=copies,
        again_core=again["core_attn"] | selective,
        again_up=again["mla_up_proj"],
        again_norm=again["layernorm"],
        again_act=again["moe_act"],
        again_experts=again["moe"],
        again_mlp=again["mlp"],
        again_shared=again["shared_experts"],
        hidden_dispatch=more.overlap,
        beside=more.shared_overlap,
        skew=np.minimum(more.imbalance, ranks["ep"]),  # a rank has all tokens of its ep at most
        launches=np.select([more.graphs == "full", more.graphs == "partial"], [0.0, 0.95], 1.0),
        core_8=more.fp8_attention,
        clamp=clamped * CLAMPED * np.where(more.graphs == "full", 0.5, 1.0),
    )


def _of_framework(framework: Framework, columns: StrategyColumns) -> dict[str, FloatArray]:
    kinds, places = np.unique(columns.dtype, return_inverse=True)
    reduced = np.array([float(framework.reduced_bytes(str(dtype))) for dtype in kinds])
    return _by_strategy(G=reduced[places]) | _for_all(
        loss_b=framework.loss_bytes,
        fused=framework.attention,
        overlap_tp=framework.tp_hidden,
        overlap_pp=framework.pp_hidden,
        overlap_dp=framework.dp_hidden,
        overlap_fetch=framework.fetch_hidden,
    )


def _sequences(columns: StrategyColumns, batch: Batch) -> FloatArray:
    """The batch of all strategies, or that of each."""
    if columns.sequences is None:
        return np.array(float(batch.sequences))
    return np.asarray(columns.sequences, dtype=np.float64)[:, None]


def _of_strategies(columns: StrategyColumns) -> dict[str, FloatArray]:
    selective = RECOMPUTES.index(Recompute.SELECTIVE)
    more = columns.mixture or MixtureColumns.none(len(columns))
    return _by_strategy(
        t=columns.tp,
        p=columns.pp,
        d=columns.dp,
        c=columns.cp,
        v=columns.vpp,
        b=columns.micro_batch,
        sp=columns.sequence_parallel,
        zero_1=columns.zero >= 1,
        zero_2=columns.zero >= 2,
        zero_3=columns.zero >= 3,
        selective=columns.recompute == selective,
        flash=columns.flash,
        dr=more.dp_replicate,
        state=more.optimizer_bytes,
        off=more.offload,
        dropout=columns.dropped,
    )


def _of_stages(stages: Stages, columns: StrategyColumns) -> dict[str, FloatArray]:
    return _by_stage(
        i=stages.index,
        n=stages.layers,
        n_uneven=stages.uneven,
        first=stages.index == 0,
        last=stages.index == columns.pp[:, None] - 1,
        **stages.kinds,
    )


# Layers that are computed again whole: all of a stage, or the first ones of each of its chunks.
# The latter is ``recompute_method="block"`` of Megatron-LM (megatron/core/recompute.py lines
# 168-182, d98e8a64), which leaves layers of multi-token prediction out (multi_token_prediction.py
# line 1630).


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

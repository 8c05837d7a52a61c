"""The table of formulas, evaluated for arrays of strategies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from p2smt.cluster.link import Device
from p2smt.parallelism.placement import FloatArray
from p2smt.training.efficiency import Efficiency, Framework
from p2smt.training.formulas.stages import RECOMPUTES, Stages, StrategyColumns
from p2smt.training.formulas.table import formula_table
from p2smt.training.strategy import Batch, Recompute
from p2smt.training.transformer import Transformer


@dataclass(frozen=True, slots=True)
class Quantities:
    """Values of symbols and rows by name, of shape (strategies, 1) or (strategies, stages).

    ``stages`` says which stages the second dimension stands for.
    """

    stages: Stages
    values: Mapping[str, FloatArray]

    def of_strategy(self, name: str) -> FloatArray:
        """A value that does not differ by stage: shape (strategies,)."""
        return self.of_stage(name)[:, 0]

    def of_stage(self, name: str) -> FloatArray:
        """A value by stage: shape (strategies, stages)."""
        return np.broadcast_to(self.values[name], self.stages.index.shape)


def quantities(
    model: Transformer, batch: Batch, columns: StrategyColumns, framework: Framework
) -> Quantities:
    """Sizes, operations, memory and what requests carry: all that needs no device.

    Raises:
        InputError: a split does not fit the model.
    """
    micro_batches = batch.sequences // (columns.dp * columns.micro_batch)
    stages = Stages.of(model.layers, columns, micro_batches)
    values = {
        **_of_model(model, batch),
        **_of_framework(framework, columns),
        **_of_strategies(columns),
        **_of_stages(stages, columns),
    }
    return Quantities(stages, {**values, **formula_table().counts(values)})


def with_seconds(
    counted: Quantities, columns: StrategyColumns, device: Device, efficiency: Efficiency
) -> Quantities:
    """The same with seconds on a device.

    Raises:
        InputError: the device states no peak for a data type.
    """
    kinds = {str(dtype): device.peak_flops(str(dtype)) for dtype in np.unique(columns.dtype)}
    peaks = np.array([kinds[str(dtype)] for dtype in columns.dtype])[:, None]
    values = {
        **counted.values,
        "peak": peaks,
        "W": np.array(device.memory_bandwidth_bytes_per_s),
        "eta": np.array(efficiency.fraction),
        "layer_s": np.array(efficiency.layer_s),
    }
    return Quantities(counted.stages, {**values, **formula_table().seconds(values)})


def _of_model(model: Transformer, batch: Batch) -> dict[str, FloatArray]:
    numbers = {
        "L": model.layers,
        "h": model.hidden,
        "a": model.heads,
        "e": model.head_size,
        "q": model.query_width,
        "k": model.key_width,
        "f": model.ffn,
        "g": 1 + model.gated,
        "V": model.vocab,
        "tied": model.tied,
        "B": batch.sequences,
        "s": batch.tokens,
    }
    return {name: np.array(float(number)) for name, number in numbers.items()}


def _of_framework(framework: Framework, columns: StrategyColumns) -> dict[str, FloatArray]:
    kinds, places = np.unique(columns.dtype, return_inverse=True)
    reduced = np.array([float(framework.reduced_bytes(str(dtype))) for dtype in kinds])
    gradients = reduced[places][:, None]
    numbers = {
        "fused": framework.attention,
        "overlap_tp": framework.tp_hidden,
        "overlap_pp": framework.pp_hidden,
        "overlap_dp": framework.dp_hidden,
        "overlap_fetch": framework.fetch_hidden,
    }
    found: dict[str, FloatArray] = {
        name: np.array(float(number)) for name, number in numbers.items()
    }
    return {"G": gradients, **found}


def _of_strategies(columns: StrategyColumns) -> dict[str, FloatArray]:
    selective, full = (RECOMPUTES.index(one) for one in (Recompute.SELECTIVE, Recompute.FULL))
    numbers = {
        "t": columns.tp,
        "p": columns.pp,
        "d": columns.dp,
        "c": columns.cp,
        "v": columns.vpp,
        "b": columns.micro_batch,
        "sp": columns.sequence_parallel,
        "zero_1": columns.zero >= 1,
        "zero_2": columns.zero >= 2,
        "zero_3": columns.zero >= 3,
        "selective": columns.recompute == selective,
        "full": columns.recompute == full,
        "flash": columns.flash,
    }
    return {name: np.asarray(number, dtype=np.float64)[:, None] for name, number in numbers.items()}


def _of_stages(stages: Stages, columns: StrategyColumns) -> dict[str, FloatArray]:
    numbers = {
        "i": stages.index,
        "n": stages.layers,
        "n_uneven": stages.uneven,
        "first": stages.index == 0,
        "last": stages.index == columns.pp[:, None] - 1,
    }
    return {name: np.asarray(number, dtype=np.float64) for name, number in numbers.items()}

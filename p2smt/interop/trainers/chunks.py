"""The layers of each chunk of a pipeline, in the order of the model."""

from __future__ import annotations

from p2smt.workload.batch import Batch
from p2smt.workload.strategy import Strategy


def counts_ends(layers: tuple[int, ...]) -> bool:
    """Whether embedding and logits stand for a layer of the first and the last chunk."""
    each = layers[0] + 1
    return len(layers) > 2 and layers == (each - 1, *(each,) * (len(layers) - 2), each - 1)


def micro_batches(batch: Batch, strategy: Strategy) -> int:
    """How many micro-batches a pipeline takes in an iteration."""
    return batch.sequences // (strategy.dp * strategy.micro_batch)

"""A training run as it is asked about: what is trained, on what, and how it is spread."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.workload.batch import Batch
from p2smt.workload.strategy import Strategy
from p2smt.workload.transformer import Transformer


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A model, the batch of an iteration, and a strategy."""

    model: Transformer
    batch: Batch
    strategy: Strategy

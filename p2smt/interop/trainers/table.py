"""The trainers that strategies are written for, by the names that users call them."""

from __future__ import annotations

from collections.abc import Callable

from p2smt.errors import InputError
from p2smt.interop.trainers.deepspeed import DEEPSPEED
from p2smt.interop.trainers.megatron import MEGATRON
from p2smt.interop.trainers.torchtitan import TORCHTITAN
from p2smt.interop.trainers.trainer import Trainer
from p2smt.workload.batch import Batch
from p2smt.workload.strategy import Strategy
from p2smt.workload.transformer import Transformer

TRAINERS: tuple[Trainer, ...] = (MEGATRON, TORCHTITAN, DEEPSPEED)


def find_trainer(name: str) -> Trainer:
    """The trainer of this name.

    Raises:
        InputError: there is none.
    """
    for trainer in TRAINERS:
        if trainer.name == name:
            return trainer
    names = ", ".join(trainer.name for trainer in TRAINERS)
    raise InputError(f"launcher {name[:40]!r}", "is none that strategies are written for", names)


def lacks_of(trainer: Trainer, batch: Batch) -> Callable[[Strategy, Transformer], tuple[str, ...]]:
    """What the trainer lacks for strategies with this batch, as a search asks it."""

    def lacks(strategy: Strategy, model: Transformer) -> tuple[str, ...]:
        return trainer.lacks(model, batch, strategy)

    return lacks

"""The trainers that strategies are written for, by the names that users call them."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.interop.trainers.deepspeed import DEEPSPEED
from p2smt.interop.trainers.megatron import MEGATRON
from p2smt.interop.trainers.megatron_bridge import MEGATRON_BRIDGE
from p2smt.interop.trainers.torchtitan import TORCHTITAN
from p2smt.interop.trainers.trainer import Trainer
from p2smt.training.strategy import Batch, Strategy
from p2smt.training.transformer import Transformer

TRAINERS: tuple[Trainer, ...] = (MEGATRON, MEGATRON_BRIDGE, TORCHTITAN, DEEPSPEED)


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


@dataclass(frozen=True, slots=True)
class LacksOf:
    """What the trainer of a name lacks for strategies with a batch: can be pickled."""

    name: str
    batch: Batch

    def __call__(self, strategy: Strategy, model: Transformer) -> tuple[str, ...]:
        """What it lacks for a strategy of a model, in words; empty: nothing."""
        return find_trainer(self.name).lacks(model, self.batch, strategy)


def lacks_of(trainer: Trainer, batch: Batch) -> LacksOf:
    """What the trainer lacks for strategies with this batch, as a search asks it."""
    return LacksOf(trainer.name, batch)

"""How a training is spread over devices: degrees of parallelism and what goes with them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod

from p2smt.cluster.device import DTYPES
from p2smt.errors import InputError

AXES = ("pp", "dp", "cp", "tp")
"""Parallelism axes in Megatron's order, outermost first."""


class Recompute(Enum):
    """What the backward pass computes again instead of keeping it (arXiv 2205.05198)."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Strategy:
    """Degrees and switches of one training run.

    ``tp`` tensor, ``pp`` pipeline (1F1B, interleaved over ``vpp`` chunks a stage), ``dp`` data and
    ``cp`` context parallelism (ring attention); ``micro_batch`` sequences go through a pipeline at
    once; ``sequence_parallel``: activations between the matrices of tp are split over it, too;
    ``zero``: what dp and cp shard, by the stages of ZeRO: 1 optimizer, 2 also gradients, 3 also
    parameters;
    ``flash``: fused attention, which keeps no scores; ``dtype`` of parameters and activations.
    ``split``: layers of each of the pp * vpp chunks in the order of the model; empty: evenly.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    vpp: int = 1
    micro_batch: int = 1
    sequence_parallel: bool = False
    zero: int = 0
    recompute: Recompute = Recompute.NONE
    flash: bool = True
    dtype: str = "bf16"
    split: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for key in (*AXES, "vpp", "micro_batch"):
            if not _is_whole(getattr(self, key)) or getattr(self, key) < 1:
                rule = "must be a whole number, at least 1"
                raise InputError(f"strategy {key}={getattr(self, key)!r:.40}", rule)
        if not _is_whole(self.zero) or not 0 <= self.zero <= 3:
            raise InputError(f"strategy zero={self.zero!r:.40}", "ZeRO has stages 0 to 3")
        for key in ("sequence_parallel", "flash"):
            if not isinstance(getattr(self, key), bool):
                raise InputError(f"strategy {key}={getattr(self, key)!r:.40}", "is yes or no")
        if not isinstance(self.recompute, Recompute):
            rule = f"must be one of {', '.join(kind.value for kind in Recompute)}"
            raise InputError(f"strategy recompute={self.recompute!r:.40}", rule)
        if self.dtype not in DTYPES:
            rule = f"must be one of {', '.join(DTYPES)}"
            raise InputError(f"strategy dtype={self.dtype!r:.40}", rule)
        if not all(map(_is_whole, self.split)):
            raise InputError(f"strategy split={self.split!r:.60}", "must hold whole numbers")

    @property
    def devices(self) -> int:
        """How many devices it takes."""
        return prod(self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the axes in the order of ``AXES``."""
        return (self.pp, self.dp, self.cp, self.tp)

    @property
    def chunks(self) -> int:
        """Into how many parts the layers are cut."""
        return self.pp * self.vpp


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

"""What an iteration trains on."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.errors import InputError

MAX_BATCH = 10**9


@dataclass(frozen=True, slots=True)
class Batch:
    """``sequences`` of ``tokens`` each go through the model in an iteration (global batch)."""

    sequences: int
    tokens: int

    def __post_init__(self) -> None:
        for what, value in (("global batch", self.sequences), ("sequence length", self.tokens)):
            if not 1 <= value <= MAX_BATCH:
                raise InputError(f"{what} {value}", f"must be 1 to {MAX_BATCH}")

"""What memory holds before anything is written there: nothing that could pass for a result."""

from __future__ import annotations

import math

import torch

_INTEGER = -(2**40)


def fill_unwritten(memory: torch.Tensor) -> None:
    """Fill with not-a-number, or with an integer far below all that are used."""
    memory.fill_(math.nan if memory.dtype.is_floating_point else _INTEGER)


def is_unwritten(value: float) -> bool:
    """Whether a value found in a result was never written."""
    return math.isnan(value) or value <= _INTEGER / 2

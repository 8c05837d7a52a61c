"""What a device of a cluster can do by itself: arithmetic, memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

from p2smt.errors import InputError

DTYPES = ("bf16", "fp16")
"""Data types of matrix products that a peak may be given for."""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU or another accelerator.

    ``peaks``: flop/s of dense matrix products by data type, as the vendor states them.
    ``memory_bandwidth_bytes_per_s`` and ``memory_bytes`` are those of its own memory (HBM).
    """

    name: str
    peaks: tuple[tuple[str, float], ...]
    memory_bandwidth_bytes_per_s: float
    memory_bytes: int

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("a device without a name", "needs one", "such as h100")
        names = [name for name, _ in self.peaks]
        if not names or len(set(names)) != len(names) or not set(names) <= set(DTYPES):
            rule = f"name each of {', '.join(DTYPES)} at most once, and one at least"
            raise InputError(f"peaks {[name[:40] for name in names]} of {self.name[:40]}", rule)
        rates = [rate for _, rate in self.peaks] + [self.memory_bandwidth_bytes_per_s]
        if not all(1 <= rate < math.inf for rate in rates) or self.memory_bytes < 1:
            rule = "peaks, bandwidth and memory are 1 FLOP/s, 1 B/s and 1 B or more"
            raise InputError(f"device {self.name[:40]}", rule)

    def peak_flops(self, dtype: str) -> float:
        """Flop/s of matrix products of a data type.

        Raises:
            InputError: its peak is not given.
        """
        found = dict(self.peaks).get(dtype)
        if found is None:
            given = ", ".join(name for name, _ in self.peaks)
            raise InputError(f"device {self.name}", f"gives no peak of {dtype}, but of {given}")
        return found

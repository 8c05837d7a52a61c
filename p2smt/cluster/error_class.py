"""How far off predictions are: relative errors by operation and payload, from measurements.

A calibration gives them for the topology that it fitted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from p2smt.collectives.names import CALL_NAMES
from p2smt.errors import InputError

MAX_ERROR = 10.0
"""The largest relative error: elevenfold."""
LARGEST_SHORTFALL = 0.9
"""Predictions are taken to be short by at most this part of what is measured."""
SHARE = 0.8
"""Part of the measurements that keep to the error of their class."""


class Basis(Enum):
    """What an error was found on."""

    IN_SAMPLE = "in sample"  # the constants were fitted to these measurements, too
    LEFT_OUT = "left out"  # a fit to others predicted them


@dataclass(frozen=True, slots=True)
class ErrorClass:
    """The relative error of predictions for an operation, and what it was found on.

    It holds for payloads of ``least_bytes`` to ``most_bytes`` (None: and of any larger one).

    Raises:
        InputError: an error below 0 or above ``MAX_ERROR``, no such operation, or no payload.
    """

    operation: str
    error: float
    basis: Basis
    least_bytes: int = 1
    most_bytes: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.error <= MAX_ERROR:
            rule = f"must be from 0 to {MAX_ERROR:g}"
            raise InputError(f"error {self.error}", rule, "0.25 is 25 per cent")
        if self.operation not in CALL_NAMES:
            rule = f"is none of {', '.join(CALL_NAMES)}"
            raise InputError(f"operation {self.operation[:40]!r}", rule)
        if self.least_bytes < 1:
            given = f"an error from {self.least_bytes} bytes"
            raise InputError(given, "a payload has at least 1 byte", "leave it out: from 1 byte")
        if self.most_bytes is not None and self.most_bytes < self.least_bytes:
            given = f"an error from {self.least_bytes} to {self.most_bytes} bytes"
            raise InputError(given, "holds for no payload", "exchange least and most")

    def holds(self, operation: str, payload_bytes: int) -> bool:
        """Whether the error is that of such a payload."""
        most = math.inf if self.most_bytes is None else self.most_bytes
        return operation == self.operation and self.least_bytes <= payload_bytes <= most

    @property
    def ratios(self) -> tuple[float, float]:
        """Measured over predicted, least and most; of errors near 1 and above at most tenfold."""
        return 1 / (1 + self.error), 1 / (1 - min(self.error, LARGEST_SHORTFALL))


def kept_error(errors: Sequence[float]) -> float:
    """The error that ``SHARE`` of the measurements keep to (of few ones: the largest)."""
    return sorted(errors)[math.ceil(SHARE * len(errors) - 1e-9) - 1]

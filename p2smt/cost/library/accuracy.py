"""How well predictions under a library held: relative errors by operation and size, as data.

The file ``accuracy.yaml`` beside this one has, by the name of a library, classes of payloads with
the abs(predicted / measured - 1) that four of five published measurements keep to; it is written by
the study that compares all of them, never by hand:

    nccl-2.20:
      - {operation: all-reduce, up_to: 64 KiB, error: 0.4}
      - {operation: all-reduce, error: 0.2}
      - {error: 0.5}

The first class that holds a payload counts, so the smaller ones come first.  A gain that is
smaller than the error says nothing: whoever measures will not find it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from p2smt.cluster.topology import CALL_NAMES
from p2smt.errors import InputError
from p2smt.files.yaml_text import Plain, load_yaml, read_text
from p2smt.units import parse_bytes

ACCURACY_FILE = Path(__file__).with_name("accuracy.yaml")
MAX_ERROR = 10.0
"""The largest relative error: elevenfold."""


@dataclass(frozen=True, slots=True)
class Sized:
    """A part of an answer: an operation, its payload in bytes, and its seconds, which weigh it."""

    operation: str
    payload_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ErrorClass:
    """The relative error of predictions for payloads of at most ``up_to_bytes`` (None: for all).

    ``operation``: a name such as ``all-reduce``; empty: every one that has no class before it.

    Raises:
        InputError: an error below 0 or above ``MAX_ERROR``, or no such operation.
    """

    error: float
    up_to_bytes: int | None = None
    operation: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.error <= MAX_ERROR:
            rule = f"must be from 0 to {MAX_ERROR:g}"
            raise InputError(f"error {self.error}", rule, "0.25 is 25 per cent")
        if self.operation and self.operation not in CALL_NAMES:
            rule = f"is none of {', '.join(CALL_NAMES)}"
            raise InputError(f"operation {self.operation[:40]!r}", rule)

    def holds(self, operation: str, payload_bytes: int) -> bool:
        """Whether the error is that of such a payload."""
        here = self.operation in ("", operation)
        return here and (self.up_to_bytes is None or payload_bytes <= self.up_to_bytes)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The errors of the predictions under one library; the first class that holds counts."""

    library: str
    classes: tuple[ErrorClass, ...]

    def error_of(self, operation: str, payload_bytes: int) -> float | None:
        """The relative error of such a prediction; None where nothing was measured."""
        found = (one.error for one in self.classes if one.holds(operation, payload_bytes))
        return next(found, None)

    def error_over(self, sizes: Sequence[Sized]) -> float | None:
        """The error of a sum of predictions: each part's, weighed by its share of the time.

        As if all parts were off to the same side.  None where one was never measured, or where
        nothing takes time.
        """
        parts = [one for one in sizes if one.seconds > 0]
        errors = [self.error_of(one.operation, one.payload_bytes) for one in parts]
        known = [error for error in errors if error is not None]
        if not parts or len(known) < len(parts):
            return None
        total = sum(one.seconds * error for one, error in zip(parts, known, strict=True))
        return total / sum(one.seconds for one in parts)

    def measurable(self, gain: float, sizes: Sequence[Sized]) -> bool | None:
        """Whether who measures would find a gain (old time over new, less one).

        False below the error of the predictions; None where that is not known.
        """
        error = self.error_over(sizes)
        return None if error is None else gain >= error


def accuracy_of(library: str) -> Accuracy | None:
    """What is committed of a library's predictions; None: of this library nothing is."""
    return _committed(ACCURACY_FILE).get(library) if library else None


@lru_cache(maxsize=8)
def _committed(path: Path) -> Mapping[str, Accuracy]:
    """Every library of a file; a file that is not there has none."""
    return read_accuracies(read_text(str(path)), path.name) if path.is_file() else {}


def read_accuracies(text: str, source: str) -> dict[str, Accuracy]:
    """The accuracies in a YAML text, by library.

    Raises:
        InputError: it breaks a rule of the format.
    """
    data = load_yaml(text, source)
    if not isinstance(data, dict):
        raise InputError(source, "is no mapping of libraries to classes", _EXAMPLE)
    return {name: Accuracy(name, _classes(rows, f"{source} {name}")) for name, rows in data.items()}


_EXAMPLE = "write it like nccl-2.20: [{operation: all-reduce, up_to: 64 KiB, error: 0.4}]"


def _classes(rows: Plain, source: str) -> tuple[ErrorClass, ...]:
    if not isinstance(rows, list):
        raise InputError(source, "is no list of classes", _EXAMPLE)
    return tuple(_class(row, source) for row in rows)


def _class(row: Plain, source: str) -> ErrorClass:
    """One class; fractions are text until here."""
    if not isinstance(row, dict) or not {"error"} <= set(row) <= {"operation", "up_to", "error"}:
        raise InputError(f"{source}: {str(row)[:60]}", "is no class", _EXAMPLE)
    try:
        error = float(str(row["error"]))
    except ValueError:
        given = f"{source}: error {str(row['error'])[:40]!r}"
        raise InputError(given, "is no number", _EXAMPLE) from None
    up_to = row.get("up_to")
    most = None if up_to is None else parse_bytes(up_to, f"{source}: up_to")
    return ErrorClass(error, most, str(row.get("operation") or ""))

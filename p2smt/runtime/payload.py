"""Payloads whose results have a closed form, in every type and for every kind of request.

The exact payload consists of small integers, chosen so that no sum over the ranks leaves the
range in which the type holds every integer: any order of additions then gives the same bits.
The random payload is of that type too, and compared with sums in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2smt.errors import InputError

PERIOD = 65_521
"""Values repeat after so many elements: a prime, so that no offset of rows or chunks of a
realistic size maps an array to itself."""

Array = NDArray[Any]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class DataType(Enum):
    """Element types of payloads, by the names that PyTorch has for them."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT64 = "int64"

    @property
    def item_bytes(self) -> int:
        """Size of an element."""
        return {"float32": 4, "int64": 8}.get(self.value, 2)

    @property
    def exact_limit(self) -> int:
        """All integers from 0 to this one are values of the type."""
        return {"float32": 2**24, "float16": 2**11, "bfloat16": 2**8}.get(self.value, 2**53)

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of rounding to the type (0: integers)."""
        return {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}.get(self.value, 0.0)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Contributions of ``ranks`` ranks to sums over at most ``members`` of them.

    ``period``: values repeat after so many elements; as few as the payload has are enough.
    """

    data_type: DataType
    members: int
    ranks: int
    seed: int = 0
    period: int = PERIOD

    def integers(self, rank: int) -> Integers:
        """One period of a rank's exact payload."""
        element = np.arange(self.period, dtype=np.uint64)
        limit = self.data_type.exact_limit
        most = min(limit // self.members, 2**16)
        if most >= 2:  # no zeros: each missing or doubled contribution changes a sum
            mixed = mixed_bits(element, rank, self.seed) % np.uint64(most)
            return np.asarray(mixed + np.uint64(1), np.int64)
        # More ranks than the type can tell apart and count: an element gets ones from at most
        # ``limit`` of all ranks, those that a permutation of its own puts first.
        size = 1 << (self.ranks - 1).bit_length()
        mixed = mixed_bits(element, 0, self.seed)
        place = (mixed | np.uint64(1)) * np.uint64(rank) + (mixed >> np.uint64(32))
        return np.asarray(place % np.uint64(size) < np.uint64(min(limit, size // 2)), np.int64)

    def floats(self, rank: int) -> Floats:
        """One period of a rank's random payload in (-1, 1), before rounding to the type."""
        mixed = mixed_bits(np.arange(self.period, dtype=np.uint64), rank, self.seed + 1)
        signed: Floats = mixed.astype(np.float64) / 2.0**63 - 1.0
        return signed

    def error_bound(self, magnitude: Floats) -> Floats:
        """Bound on |computed - exact| of a sum in any order; ``magnitude`` is the sum of |x|.

        N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2:
        gamma(m - 1) times the sum of magnitudes, gamma(i) = iu / (1 - iu).
        """
        gamma = (self.members - 1) * self.data_type.unit_roundoff
        if gamma >= 0.5:
            return np.full_like(magnitude, np.inf)
        return gamma / (1 - gamma) * magnitude


def mixed_bits(element: NDArray[np.uint64], rank: int, seed: int) -> NDArray[np.uint64]:
    """Well-mixed bits of (element, rank, seed): the finaliser of SplitMix64."""
    salt = (rank * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03) % 2**64
    mixed = element * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(salt)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@dataclass(frozen=True, slots=True)
class Cutting:
    """How a payload of ``elements`` is cut into pieces (pipeline chunks) of ``rows`` rows each.

    Piece i holds a run of the payload's elements, padded with zeros to ``rows`` rows of equal
    width.  ``spans`` are (first element, elements, width) per piece.
    """

    rows: int
    spans: tuple[tuple[int, int, int], ...]

    @staticmethod
    def of(payload_bytes: int, data_type: DataType, rows: int, chunks: int) -> Cutting:
        """How a payload is cut; there are fewer pieces where it has fewer elements."""
        elements = max(1, -(-payload_bytes // data_type.item_bytes))
        ends = [elements * (i + 1) // chunks for i in range(chunks)]
        spans, first = [], 0
        for end in ends:
            if end > first:
                spans.append((first, end - first, -(-(end - first) // rows)))
                first = end
        return Cutting(rows, tuple(spans))

    @property
    def elements(self) -> int:
        """Elements of the payload, without padding."""
        return sum(length for _, length, _ in self.spans)

    @property
    def padded(self) -> int:
        """Elements of all pieces, with padding."""
        return sum(self.rows * width for _, _, width in self.spans)


def spread(period: Array, span: tuple[int, int, int], rows: int) -> Array:
    """One piece (rows, width) of a periodic payload, padded with zeros."""
    return _stretch(period, span, 0, rows * span[2]).reshape(rows, span[2])


def spread_row(period: Array, span: tuple[int, int, int], row: int) -> Array:
    """One row of a piece."""
    return _stretch(period, span, row * span[2], (row + 1) * span[2])


def spread_whole_row(period: Array, cutting: Cutting, row: int) -> Array:
    """One row of all pieces (padded) laid one after the other and cut into rows anew."""
    width = cutting.padded // cutting.rows
    start, stop, found, at = row * width, (row + 1) * width, [], 0
    for span in cutting.spans:
        size = cutting.rows * span[2]
        first, last = max(start - at, 0), min(stop - at, size)
        if first < last:
            found.append(_stretch(period, span, first, last))
        at += size
    return np.concatenate(found)


def _stretch(period: Array, span: tuple[int, int, int], start: int, stop: int) -> Array:
    """Elements ``start`` to ``stop`` of a piece; those past its end are padding."""
    first, length, _ = span
    found = np.zeros(stop - start, dtype=period.dtype)
    inside = max(0, min(stop, length) - start)
    found[:inside] = np.resize(np.roll(period, -((first + start) % len(period))), inside)
    return found


# How a job is run, and what a rank reports.


BACKENDS = ("gloo", "nccl", "mpi", "reference")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """``device``: where tensors live (cpu, cuda); NCCL needs cuda, Gloo takes both.

    ``warmup`` and ``repeat`` count repetitions (0 repetitions: results are checked, nothing is
    timed); ``ranks_per_gpu`` above 1 is for checking results, its times mean nothing.  ``check``:
    compare results with the closed form; ``timed`` says what is timed, of those named.
    """

    backend: str = "gloo"
    device: str = "cpu"
    data_type: DataType = DataType.FLOAT32
    warmup: int = 1
    repeat: int = 5
    seed: int = 0
    time_limit_s: float = 600.0
    ranks_per_gpu: int = 1
    check: bool = True
    timed: tuple[str, ...] = ("program", "baseline", "steps")

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            known = ", ".join(BACKENDS)
            raise InputError(f"backend {self.backend[:20]!r}", f"must be one of {known}")
        if self.device not in ("cpu", "cuda"):
            raise InputError(f"device {self.device[:20]!r}", "must be cpu or cuda")
        if (self.backend, self.device) in (("nccl", "cpu"), ("reference", "cuda"), ("mpi", "cuda")):
            raise InputError(f"backend {self.backend}", f"does not run on device {self.device}")
        if self.backend == "mpi" and self.data_type.item_bytes < 4:
            rule = f"has no {self.data_type.value}: MPI sums no numbers of half precision"
            raise InputError("backend mpi", rule, "use float32 or int64")
        if self.ranks_per_gpu > 1 and self.device == "cpu":
            raise InputError(f"{self.ranks_per_gpu} ranks per GPU", "needs a backend on GPUs")

    @property
    def repetitions(self) -> range:
        """Those that warm up, by numbers below 0, and those that are timed; none without timed."""
        return range(-self.warmup, self.repeat) if self.repeat else range(0)

    def named(self, repetition: int) -> str:
        """One of them in words."""
        if repetition < 0:
            return f"warm-up {repetition + self.warmup + 1} of {self.warmup}"
        return f"timed repetition {repetition + 1} of {self.repeat}"


@dataclass(slots=True)
class RequestRun:
    """One request on one rank.

    ``checked``: the exact result was compared (or there is nothing to do), ``float_checked``: the
    random one too, within a finite bound.  ``repetitions_checked``: timed repetitions whose results
    were compared.  ``errors`` are wrong results in words, ``digest`` is a hash of the exact result
    ("" if it is not replicated), ``random_digest`` of the random one.  Times are in seconds, one
    per repetition; ``steps_s`` has a list per step.  ``memory_bytes``: the most that the rank held
    of the payload and of what was allocated for it (None: not measured).
    """

    errors: list[str] = field(default_factory=list)
    digest: str = ""
    random_digest: str = ""
    float_checked: bool = False
    total_s: list[float] = field(default_factory=list)
    baseline_s: list[float] = field(default_factory=list)
    steps_s: list[list[float]] = field(default_factory=list)
    checked: bool = False
    repetitions_checked: int = 0
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RankReport:
    """What a rank found, and what it ran on."""

    rank: int
    requests: list[RequestRun]
    machine: dict[str, str]


def report_of(data: dict[str, object]) -> RankReport:
    """The report of a rank from its JSON form."""
    requests: list[dict[str, object]] = data["requests"]  # type: ignore[assignment]
    runs = [RequestRun(**run) for run in requests]  # type: ignore[arg-type]
    return RankReport(data["rank"], runs, data["machine"])  # type: ignore[arg-type]


def named(ranks: Sequence[int]) -> str:
    """The ranks in words: "rank 3", "ranks 3, 5"."""
    shown = ", ".join(map(str, ranks[:16])) + (", .." if len(ranks) > 16 else "")
    return f"rank{'s' * (len(ranks) != 1)} {shown}"


def in_short(error: BaseException) -> str:
    """What an error says in one line: its first, and its last, where NCCL gives the reason."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "; ".join(dict.fromkeys(line[:200] for line in lines[:1] + lines[-1:]))

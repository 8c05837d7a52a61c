"""How a job is run, and what a rank reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from p2smt.errors import InputError
from p2smt.runtime.payload import DataType

BACKENDS = ("gloo", "nccl")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """``device``: where tensors live (cpu, cuda); NCCL needs cuda, Gloo takes both."""

    backend: str = "gloo"
    device: str = "cpu"
    data_type: DataType = DataType.FLOAT32
    warmup: int = 1
    repeat: int = 5
    seed: int = 0
    time_limit_s: float = 600.0
    ranks_per_gpu: int = 1

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            known = ", ".join((*BACKENDS, "reference"))
            raise InputError(f"backend {self.backend[:20]!r}", f"must be one of {known}")


@dataclass(slots=True)
class RequestRun:
    """One request on one rank.

    ``errors`` are wrong results in words, ``digest`` a hash of the exact result by part of the
    payload held ("" if it is not replicated), ``random_digest`` the same of the random one.
    Times are in seconds, one per repetition; ``steps_s`` has a list per step.
    """

    errors: list[str] = field(default_factory=list)
    digest: str = ""
    random_digest: str = ""
    float_checked: bool = False
    total_s: list[float] = field(default_factory=list)
    baseline_s: list[float] = field(default_factory=list)
    steps_s: list[list[float]] = field(default_factory=list)


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

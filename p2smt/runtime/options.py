"""How a job is run, and what a rank reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from p2smt.errors import InputError
from p2smt.runtime.payload import DataType

BACKENDS = ("gloo", "nccl", "reference")


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
        if (self.backend, self.device) in (("nccl", "cpu"), ("reference", "cuda")):
            raise InputError(f"backend {self.backend}", f"does not run on device {self.device}")
        if self.ranks_per_gpu > 1 and self.device == "cpu":
            raise InputError(f"{self.ranks_per_gpu} ranks per GPU", "needs a backend on GPUs")


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

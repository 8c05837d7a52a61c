"""Reads the modelled results, and reduces them to the figures of the report.

A *request* is a case with one placement; each counts once, whatever scene it shares with others.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.placement_448x.cases import Case
from experiments.placement_448x.model.solving import LIBRARY
from experiments.placement_448x.model.systems import SYSTEMS
from experiments.placement_448x.model.times import Times
from experiments.placement_448x.store import HERE
from experiments.testbed.written.results import read
from p2smt.parallelism.placement import Matrix

GAIN = 1.01
"""A program counts as a gain if the single all-reduce takes at least so many times as long."""


@dataclass(frozen=True, slots=True)
class Outcome(Times):
    """One request with one payload and choice of algorithms."""

    case: Case
    matrix: Matrix
    scene: int
    factors: tuple[int, ...]

    @property
    def speedup(self) -> float:
        """Of the best program over the single all-reduce."""
        return self.default_s / self.best_s

    @property
    def gains(self) -> bool:
        """Whether the best program is a gain over the single all-reduce."""
        return self.speedup >= GAIN

    @property
    def pipelined_speedup(self) -> float:
        """Of the best pipelined program over the single all-reduce."""
        return self.default_s / self.pipelined_s

    @property
    def kind(self) -> str:
        """Where a group lies: ``inside`` one outermost entity, ``spread`` (one member in each
        that it reaches) or ``mixed`` (several)."""
        if self.factors[0] == 1:
            return "inside"
        return "spread" if math.prod(self.factors[1:]) == 1 else "mixed"

    @property
    def ring_limit(self) -> float:
        """The most that a program can gain over an ideal flat ring in node order.

        In the bandwidth limit, with n members in m entities of the outermost level: the ring
        sends 2(n-1)/n of the payload over an uplink, of which 2(m-1)/m must leave the entity.
        """
        n, m = math.prod(self.factors), self.factors[0]
        return (n - 1) * m / (n * (m - 1)) if m > 1 else 1.0


@dataclass(frozen=True, slots=True)
class Results:
    """The results of one system, as :mod:`experiments.placement_448x.model.study` writes them."""

    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the system."""
        return str(self.data["system"]["name"])

    @property
    def label(self) -> str:
        """How tables name the system."""
        return str(self.data["system"]["label"])

    @property
    def headline(self) -> int:
        """The paper's payload on this system, in bytes."""
        return int(self.data["system"]["paper_payload_bytes"])

    @property
    def payloads(self) -> list[int]:
        """All payloads, in bytes."""
        return sorted({row[1] for row in self.data["runs"]})

    @property
    def algorithms(self) -> list[str]:
        """All choices of algorithms."""
        return list(dict.fromkeys(row[2] for row in self.data["runs"]))

    def outcomes(self, payload_bytes: int = 0, algorithm: str = LIBRARY) -> list[Outcome]:
        """Every request with this payload (0: the paper's) and choice of algorithms."""
        wanted = [payload_bytes or self.headline, algorithm]
        scenes, programs = self.data["scenes"], self.data["programs"]
        runs = {row[0]: row[3:] for row in self.data["runs"] if row[1:3] == wanted}
        found = []
        for entry in self.data["cases"]:
            case = Case(tuple(entry["axes"]), tuple(entry["reduced"]))
            for matrix, scene in entry["placements"]:
                default, best, program, pipelined, chunks, chunked, bound = runs[scene]
                where = (tuple(map(tuple, matrix)), scene, tuple(scenes[scene]["factors"]))
                times = (default, best, programs[program], pipelined, chunks, programs[chunked])
                found.append(Outcome(*times, bound, case, *where))
        return found


def load(part: str | None = None) -> list[Results]:
    """The committed results of all systems, or of one part, in the order of the study."""
    paths = [HERE / "computed" / f"{s.name}.json" for s in SYSTEMS if part in (None, s.part)]
    return [Results(read(path)) for path in paths if path.exists()]


def by_name(name: str) -> Results:
    """The results of one system."""
    return Results(read(HERE / "computed" / f"{name}.json"))


def by_case(outcomes: Iterable[Outcome]) -> dict[Case, list[Outcome]]:
    """Outcomes by case."""
    found: dict[Case, list[Outcome]] = {}
    for one in outcomes:
        found.setdefault(one.case, []).append(one)
    return found


@dataclass(frozen=True, slots=True)
class Ratio:
    """The best and the worst placement of a case."""

    case: Case
    best: Outcome
    worst: Outcome
    ratio: float


def ratios(
    outcomes: Iterable[Outcome], seconds: Callable[[Outcome], float] = lambda one: one.default_s
) -> list[Ratio]:
    """The ratio of each case, the largest first; of tied ones the fewest axes first."""
    found = []
    for case, group in by_case(outcomes).items():
        best, worst = min(group, key=seconds), max(group, key=seconds)
        found.append(Ratio(case, best, worst, seconds(worst) / seconds(best)))
    return sorted(found, key=lambda r: (-r.ratio, len(r.case.axes), r.case.axes))


@dataclass(frozen=True, slots=True)
class Gains:
    """How many of some requests gain, and how much (arithmetic means)."""

    requests: int
    gaining: int
    mean_of_gaining: float
    mean: float
    largest: float

    @property
    def share(self) -> float:
        """The part of the requests that gain."""
        return self.gaining / self.requests if self.requests else 0.0


def gains(
    outcomes: Iterable[Outcome], speedup: Callable[[Outcome], float] = lambda one: one.speedup
) -> Gains:
    """The gains of some requests."""
    every = [speedup(one) for one in outcomes]
    up = [value for value in every if value >= GAIN]
    mean_up = statistics.fmean(up) if up else 1.0
    mean = statistics.fmean(every) if every else 1.0
    return Gains(len(every), len(up), mean_up, mean, max(every, default=1.0))


def crossing(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """The requests whose groups span several entities of the outermost level."""
    return [one for one in outcomes if one.kind != "inside"]

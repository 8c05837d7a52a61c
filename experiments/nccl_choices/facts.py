"""What NCCL's own planner chose, and its times: the committed facts of this study.

``choices.csv`` has a row for each group and collective: which way NCCL takes at 8 B, 16 B .. 8 GiB,
runs of the same as ``WAY*COUNT``, and its own time of it in microseconds at each of these sizes.
``estimates.csv`` has its time of every way at 8 B and 1 GiB.  ``more_choices.csv`` and
``more_estimates.csv`` are of systems that no rule was looked at with (README.md).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
GIVEN, MORE = "", "more_"
"""Prefixes of the two sets of files."""
SIZES = tuple(2**exponent for exponent in range(3, 34))
ESTIMATED = (8, 2**30)


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """``gpus`` GPUs of ``nodes`` nodes of a system, as many of each, and what they do."""

    system: str
    nodes: int
    gpus: int
    collective: str

    @property
    def local(self) -> int:
        """GPUs of one node."""
        return self.gpus // self.nodes


@dataclass(frozen=True, slots=True)
class Chosen:
    """What NCCL chose for a group, and its own time in seconds, size by size (``SIZES``)."""

    group: Group
    ways: tuple[str, ...]
    times_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Estimated:
    """NCCL's times in seconds of one way for a group (``ESTIMATED``)."""

    group: Group
    way: str
    times_s: tuple[float, float]


def choices(which: str = GIVEN) -> Iterator[Chosen]:
    """Every row of a file of choices."""
    for row in _rows(f"{which}choices.csv"):
        runs = [run.split("*") for run in row["ways"].split()]
        ways = [way for way, count in runs for _ in range(int(count))]
        times = tuple(float(text) * 1e-6 for text in row["times_us"].split())
        yield Chosen(_group(row), tuple(ways), times)


def estimates(which: str = GIVEN) -> Iterator[Estimated]:
    """Every row of a file of estimates."""
    for row in _rows(f"{which}estimates.csv"):
        times = (float(row["us_8b"]) * 1e-6, float(row["us_1gib"]) * 1e-6)
        yield Estimated(_group(row), row["way"], times)


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _group(row: dict[str, str]) -> Group:
    return Group(row["system"], int(row["nodes"]), int(row["gpus"]), row["collective"])

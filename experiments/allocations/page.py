"""Writes the page of the study from ``results.json`` and ``README.in.md``.

python -m experiments.allocations.page
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.allocations.jobs import SIZES, UPLINKS
from experiments.allocations.study import RESULTS, key
from experiments.testbed.script import ended
from experiments.testbed.written import results, timings
from p2smt.errors import InputError

HERE = Path(__file__).resolve().parent
PAGE, TEMPLATE = HERE / "README.md", HERE / "README.in.md"
Entry = dict[str, Any]


def entries(data: dict[str, Any]) -> list[Entry]:
    """The jobs, by column, with what they took."""
    times = timings.read(HERE)
    return [dict(zip(data["columns"], row, strict=True)) | times[key(row)] for row in data["jobs"]]


def page() -> str:
    """The page."""
    data = results.read(RESULTS)
    jobs = entries(data)
    return TEMPLATE.read_text(encoding="utf-8").format(
        jobs=len(jobs),
        proofs=table(PROOFS, jobs),
        gains=table(GAINS, jobs),
        measured=timings.measured_on(HERE),
        ortools=data["versions"]["ortools"],
        worse=sum(one["objective_s"] > better(one) * (1 + 1e-6) for one in jobs),
        random=spread([gain(one, one["random_s"]) + 1 for one in jobs], "{:.1f}"),
        zero=percent([gain(one, better(one)) < 0.0005 for one in jobs]),
        most=f"{max(gain(one, better(one)) for one in jobs):.0%}",
    )


def better(one: Entry) -> float:
    """The better of the two sorted orders, in seconds."""
    return float(min(one["sorted_s"], one["exchanged_s"]))


def gain(one: Entry, other_s: float) -> float:
    """How much longer another order takes than the answer."""
    return float(other_s / one["objective_s"] - 1)


def gap(one: Entry) -> float:
    """How far the bound is below the answer."""
    return float(1 - one["bound_s"] / one["objective_s"])


def percent(found: Sequence[bool]) -> str:
    """How many of them hold."""
    return f"{sum(found) / len(found):.0%}"


def spread(values: Sequence[float], shape: str = "{:.0%}") -> str:
    """Median and range."""
    ends = (statistics.median(values), min(values), max(values))
    middle, low, high = (shape.format(abs(value) if abs(value) < 5e-4 else value) for value in ends)
    return f"{middle} ({low} to {high})"


def gaps(jobs: Sequence[Entry]) -> str:
    """Gaps of those that are not proved."""
    left = [gap(one) for one in jobs if one["status"] != "optimal"]
    return spread(left) if left else "-"


def seconds(column: str) -> Callable[[Sequence[Entry]], str]:
    """Median and range of a column of seconds."""
    return lambda jobs: spread([one[column] for one in jobs], "{:.1f}")


def over(column: str) -> Callable[[Sequence[Entry]], str]:
    """Gains over the order of a column."""
    return lambda jobs: spread([gain(one, one[column]) for one in jobs])


Column = tuple[str, Callable[[Sequence[Entry]], str]]
PROOFS: tuple[Column, ...] = (
    ("jobs", lambda jobs: str(len(jobs))),
    ("proved", lambda jobs: percent([one["status"] == "optimal" for one in jobs])),
    ("gap of the others", gaps),
    ("wall s", seconds("wall_s")),
    ("CPU s", seconds("cpu_s")),
)
GAINS: tuple[Column, ...] = (
    ("alphabetical", over("alphabetical_s")),
    ("sorted by leaf", over("sorted_s")),
    ("axes exchanged", over("exchanged_s")),
    ("better of the two", lambda jobs: spread([gain(one, better(one)) for one in jobs])),
    ("random", over("random_s")),
)


def table(columns: Sequence[Column], jobs: Sequence[Entry]) -> str:
    """A row for each size, grid and kind of uplinks."""
    head = ("nodes on leaves", "pp x dp", "uplinks", *(name for name, _ in columns))
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for size in SIZES:
        for stages, members in size.grids:
            for uplinks in UPLINKS:
                key = (size.nodes, stages, members, uplinks)
                names = ("nodes", "stages", "members", "uplinks")
                chosen = [one for one in jobs if tuple(one[name] for name in names) == key]
                if chosen:
                    cells = [make(chosen) for _, make in columns]
                    first = (f"{size.nodes} on {size.leaves}", f"{stages} x {members}", uplinks)
                    lines.append(f"| {' | '.join((*first, *cells))} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """The script."""
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

"""The library's choices as p2smt has them beside those of NCCL's own planner; writes the page.

    python -m experiments.nccl_choices.study

A choice rests on NCCL's nominal costs, which the formula of a library file holds
(:mod:`p2smt.cost.library.tuner`), not on the prices that p2smt fits to measured tables: both
columns of the facts, the choice and its time, speak of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from experiments.nccl_choices.facts import (
    ESTIMATED,
    GIVEN,
    HERE,
    MORE,
    SIZES,
    Chosen,
    Estimated,
    Group,
    choices,
    estimates,
)
from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology
from p2smt.cluster.trimmed import trimmed
from p2smt.collectives.names import Collective
from p2smt.cost.library.tuner import LibraryChoice
from p2smt.cost.library.ways import library_choice
from p2smt.cost.loads.footprint import digits_of, regular_footprint
from p2smt.parallelism.placement import Placement
from p2smt.programs.program import Grouping
from p2smt.report.progress import live_line

LIBRARY = "nccl-2.30"
NEAR = 0.01
"""How far a time may be off to count as NCCL's."""
PAGE = HERE / "RESULTS.md"
_HEADINGS = {
    GIVEN: "The eight systems",
    MORE: "Seven other systems",
}


def topology_of(group: Group) -> Topology:
    """The group's GPUs as a cluster of their own, from the preset of their system."""
    preset = load_topology(f"{group.system.partition('.')[0]}:{group.nodes}")
    preset, left = preset.under(LIBRARY), group.local
    uses = {}
    for level in reversed(preset.levels[preset.node_level + 1 :]):
        uses[level.name] = min(left, level.size)
        left = max(1, left // level.size)
    return trimmed(preset, uses)


@lru_cache(maxsize=4096)
def choice_of(group: Group) -> LibraryChoice:
    """How the library chooses for a group."""
    topology = topology_of(group)
    placement = Placement((topology.sizes,))
    digits = digits_of(placement, (0,))
    grouping = Grouping(0, sum(1 for level in digits if level))
    footprint = regular_footprint(topology, digits, grouping)
    return library_choice(topology, footprint, Collective(group.collective))


def way_at(choice: LibraryChoice, size: int) -> str:
    """The way that is taken for a payload, named as the facts name it."""
    return _names(choice)[choice.pick(size)]


def time_of(choice: LibraryChoice, way: str, size: int) -> float | None:
    """Seconds that the formula estimates for a way; None: it says nothing of it."""
    times = dict(choice.estimates)
    index = _names(choice).index(way) if way in _names(choice) else -1
    return times[index].seconds(size) if index in times else None


def _names(choice: LibraryChoice) -> list[str]:
    return [f"{way.algorithm.value if way.algorithm else ''}-{way.protocol}" for way in choice.ways]


@dataclass(frozen=True, slots=True)
class Tally:
    """Of so many choices, those that are NCCL's, and whose time is; the worst loss of the others.

    ``loss``: how many times as long the way that p2smt names takes as NCCL's, by p2smt's estimates.
    """

    total: int
    same: int
    near: int
    loss: float = 1.0


def tally(rows: Iterable[Chosen]) -> Tally:
    """What the rows come to."""
    total = same = near = 0
    loss = 1.0
    for row in rows:
        choice = choice_of(row.group)
        for size, way, time_s in zip(SIZES, row.ways, row.times_s, strict=True):
            found, estimated = way_at(choice, size), time_of(choice, way, size)
            total, same = total + 1, same + (found == way)
            near += estimated is not None and abs(estimated / time_s - 1) <= NEAR
            if found != way:
                loss = max(loss, (time_of(choice, found, size) or 0.0) / time_s, 1.0)
    return Tally(total, same, near, loss)


def near_estimates(rows: Iterable[Estimated]) -> Tally:
    """How many times of every way are NCCL's."""
    total = near = 0
    for row in rows:
        for size, time_s in zip(ESTIMATED, row.times_s, strict=True):
            found = time_of(choice_of(row.group), row.way, size)
            total += 1
            near += found is not None and abs(found / time_s - 1) <= NEAR
    return Tally(total, near, near)


def page() -> str:
    """The page of results."""
    text = [
        "# Choices beside NCCL 2.30.7's planner",
        "",
        "Written by `python -m experiments.nccl_choices.study`; README.md says what is compared.",
    ]
    for which, heading in _HEADINGS.items():
        text += ["", f"## {heading}", "", *_choice_table(which), "", *_estimate_table(which)]
    return "\n".join(text) + "\n"


def _choice_table(which: str) -> list[str]:
    found = list(choices(which))
    kinds = dict.fromkeys((row.group.system, row.group.collective) for row in found)
    lines = [
        "| system | collective | choices | the same | time within 1 % | loss of others, at most |",
        "|---|---|---|---|---|---|",
    ]
    for system, collective in kinds:
        rows = [
            row for row in found if (row.group.system, row.group.collective) == (system, collective)
        ]
        lines.append(f"| {system} | {collective} | {_cells(tally(rows))} |")
    return [*lines, f"| all | | {_cells(tally(found))} |"]


def _cells(one: Tally) -> str:
    loss = "" if one.same == one.total else f"{one.loss:.2f}"
    return (
        f"{one.total} | {_percent(one.same, one.total)} | {_percent(one.near, one.total)} | {loss}"
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %"


def _estimate_table(which: str) -> list[str]:
    found = list(estimates(which))
    lines = ["| system | times of every way | within 1 % |", "|---|---|---|"]
    for system in dict.fromkeys(row.group.system for row in found):
        lines.append(_estimate_row(system, [row for row in found if row.group.system == system]))
    return [*lines, _estimate_row("all", found)]


def _estimate_row(name: str, rows: Sequence[Estimated]) -> str:
    one = near_estimates(rows)
    return f"| {name} | {one.total} | {_percent(one.near, one.total)} |"


def main(write: Callable[[str], object] = PAGE.write_text) -> None:
    """Compare everything and write the page."""
    with live_line("choices"):
        write(page())


if __name__ == "__main__":
    main()

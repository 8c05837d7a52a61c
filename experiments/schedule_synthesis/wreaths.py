"""What wreath products give all-to-alls, and what they would take from other collectives.

    python -m experiments.schedule_synthesis.wreaths [--times]

All-to-alls at their bounds, with the groups that are listed alone, and with all: CPU seconds from a
fabric in memory to messages, groups and models included.  And the fewest rounds of all-gathers and
all-reduces under the shifts of nodes and ranks, and under a wreath product: all fewer rounds are
refuted.  Writes ``found/wreaths/found.json`` and its part of docs/synthesis.md.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from experiments.schedule_synthesis.page import DOCS
from experiments.schedule_synthesis.store import HERE, Row, measured_on
from experiments.testbed.script import ended
from experiments.testbed.written import timings
from experiments.testbed.written.marked import filled
from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.schedule import ChunkRoute, ScheduleClass
from p2smt.report.progress import live_line
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.solvers.ask import Solver
from p2smt.synthesis.group_order import level_shifts
from p2smt.synthesis.schedule_replay import (
    all_reduce,
    all_reduce_problem,
    disseminate,
    dissemination_problem,
    spreads,
)
from p2smt.synthesis.setting import ScheduleSize, SynthesisSetting
from p2smt.synthesis.subgroups import SymmetryGroup
from p2smt.synthesis.symmetry_search import FIRST_SLICE, ScheduleSearch, symmetry_search_of, trials
from p2smt.synthesis.wreaths import moved_by_routes, wreath_products
from p2smt.units import roughly

LIMIT_S = 100.0
"""Of an all-to-all, by the wall clock."""
FOLDER = HERE / "found" / "wreaths"
FOUND, PART = FOLDER / "found.json", "wreaths"
EXCHANGES = (
    ("dgx-h100:2", ScheduleSize(3, 8, 1)),
    ("dgx-h100:4", ScheduleSize(3, 24, 1)),
    ("dgx-h100:8", ScheduleSize(3, 56, 1)),
    ("dgx-h100:16", ScheduleSize(2, 120, 1)),
    ("dgx1:2", ScheduleSize(3, 16, 1)),
    ("dgx1:4", ScheduleSize(2, 48, 1)),
    ("dgx1:4", ScheduleSize(3, 48, 1)),
    ("dgx1:8", ScheduleSize(2, 112, 1)),
)
FABRICS, SUMS = ("dgx-a100:2", "dgx-h100:2"), (("allgather", 2), ("allreduce", 2), ("allreduce", 4))
TIMED = timings.Timed(FOLDER, ("cpu_s",), lambda row: f"{row['title']} {row['groups']}")
LISTED, EVERY = "listed", "all"


def exchanged(name: str, size: ScheduleSize, groups: str) -> Row:
    """What an all-to-all has under the listed groups alone, or under all, and its CPU seconds."""
    setting, watch = (
        SynthesisSetting(load_fabric(name), "alltoall"),
        StopWatch.start(SearchLimits(LIMIT_S)),
    )
    begun = time.process_time()
    search = symmetry_search_of(setting, size, Solver.CPSAT, lambda _: None, watch)
    if groups == LISTED:
        some = (one for one in trials(setting, size, Solver.CPSAT, watch) if not one.rung.apart)
        search = ScheduleSearch(some, search.search, FIRST_SLICE[Solver.CPSAT])
    search.finish(watch)
    order = search.attempts[-1].order if search.sums is not None else None
    cpu_s = round(time.process_time() - begun, 2)
    return {"title": f"{name} {size}", "groups": groups, "order": order, "cpu_s": cpu_s}


def fewest_rounds(fabric: Fabric, collective: str, steps: int, group: SymmetryGroup) -> int:
    """Of a chunk a rank (of as many as ranks in all), which move as their ranks; trees of sums."""
    adds = collective == "allreduce"
    owned = tuple(ChunkRoute(rank, ()) for rank in range(fabric.ranks))
    routes = owned if adds else spreads(collective, fabric.ranks, 1)
    moved = moved_by_routes(fabric, group.generators, routes)
    for rounds in count(steps):
        if adds:
            asked = fabric, fabric.ranks, steps, rounds, ScheduleClass.TREES, 1, moved
            status = all_reduce(all_reduce_problem(*asked)).status
        else:
            plain = dissemination_problem(fabric, routes, steps, rounds)
            status = disseminate(replace(plain, symmetries=moved)).status
        if status is Status.FEASIBLE:
            return rounds
    raise AssertionError


def least(name: str) -> list[Row]:
    """The fewest rounds over a fabric, under shifts and under a wreath product."""
    fabric = load_fabric(name)
    shifts = SymmetryGroup(level_shifts(fabric, fabric.ranks)[0], fabric.ranks)
    wreath = wreath_products(fabric)[0]
    return [
        {
            "title": f"{name} {collective} in {steps}",
            "shifts": fewest_rounds(fabric, collective, steps, shifts),
            "wreath": fewest_rounds(fabric, collective, steps, wreath),
            "order": wreath.order,
        }
        for collective, steps in SUMS
    ]


def stored() -> dict[str, list[Row]]:
    """What is kept, with its times."""
    kept = json.loads(FOUND.read_text(encoding="utf-8"))
    return {"exchanges": TIMED.joined(kept["exchanges"]), "sums": kept["sums"]}


def part_of_docs(exchanges: Sequence[Row], sums: Sequence[Row]) -> str:
    """Both tables."""
    by = {(row["title"], row["groups"]): row for row in exchanges}
    lines = [
        f"| {title} | {_answer(by[title, LISTED])} | {_answer(by[title, EVERY])} |\n"
        for title in dict.fromkeys(row["title"] for row in exchanges)
    ]
    more = [
        f"| {one['title']} steps | {one['shifts']} "
        f"| {one['wreath']} (group of {roughly(one['order'])}) |\n"
        for one in sums
    ]
    return (
        "\n| all-to-all | listed groups alone | all |\n|---|---|---|\n"
        + "".join(lines)
        + "\n| n chunks | rounds under shifts | under a wreath product |\n|---|---|---|\n"
        + "".join(more)
        + "\n"
    )


def _answer(row: Row) -> str:
    found = "open" if row["order"] is None else f"group of {roughly(row['order'])}"
    return f"{found}, {row['cpu_s']:.1f} CPU s"


def main(arguments: Sequence[str]) -> None:
    """Ask everything, and write it.

    Raises:
        InputError: arguments are given.
    """
    named, anew = timings.taken(arguments)
    if named:
        raise InputError(f"{len(named)} arguments", "none is expected")
    exchanges, sums = list[Row](), list[Row]()
    for name, size in EXCHANGES:
        for groups in (LISTED, EVERY):
            with live_line(f"all-to-all on {name} {size}, groups: {groups}"):
                exchanges.append(exchanged(name, size, groups))
    for name in FABRICS:
        with live_line(f"fewest rounds on {name}"):
            sums += least(name)
    kept = {"exchanges": TIMED.apart(exchanges, anew, measured_on()), "sums": sums}
    FOUND.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    text = part_of_docs(**stored())
    DOCS.write_text(filled(DOCS.read_text(encoding="utf-8"), PART, text), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

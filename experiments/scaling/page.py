"""Writes the page of the study from its results and ``README.in.md``.

python -m experiments.scaling.page
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from experiments.scaling import cubes, overhead, store, study
from experiments.scaling.simulate import MeasuredCube, work_of
from experiments.testbed.script import ended
from p2smt.errors import InputError

PAGE, TEMPLATE = store.HERE / "README.md", store.HERE / "README.in.md"
NOT_YET = "Not measured yet: `make scaling`."


def page(data: dict[str, Any]) -> str:
    """The page."""
    measured = cubes.read() if cubes.CUBES.exists() else []
    return TEMPLATE.read_text(encoding="utf-8").format(
        cubes_text=cubes_text(data.get("question", []), measured),
        overhead_cubes=overhead.CUBES,
        length_ms=1e3 * overhead.LENGTH_S,
        runs=overhead.RUNS,
        overhead_table=overhead_table(data.get("overhead")),
        two_text=two_text(data.get("two")),
        plans_text=plans_text(data.get("plans"), data.get("beside")),
        waited_table=waited_table(data.get("waited")),
        drawn=study.DRAWN,
        resamplings=study.RESAMPLINGS,
        budget=study.BUDGET_OF_MEAN,
        simulated_table=simulated_table(data.get("simulated")),
        lengths_table=lengths_table(data.get("lengths"), measured),
        pruning_table=pruning_table(data.get("pruning")),
        deaths_text=deaths_text(data.get("deaths")),
    )


def cubes_text(question: Sequence[str], measured: Sequence[MeasuredCube]) -> str:
    """What was timed, of which question."""
    if not measured:
        return NOT_YET
    children = sum(len(cube.children) for cube in measured)
    middle = median(cube.seconds for cube in measured)
    longest = max(cube.seconds for cube in measured)
    first_s = sum(cube.first_s for cube in measured)
    return (
        f"`p2smt {' '.join(question)}`: {len(measured)} first cubes, {children} children\n"
        "of the longer ones. Each is closed to its end without any incumbent, in CPU seconds:\n"
        f"{work_of(measured):.2f} s together in one process that keeps its tables, the median "
        f"{middle:.4f} s, the longest\n{longest:.2f} s; {first_s:.2f} s if each has a process of "
        "its own, whose tables are empty. `cubes.json` has them."
    )


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    rule = "|" + "---|" * (head.count("|") + 1)
    return "\n".join([f"| {head} |", rule, *(f"| {' | '.join(row)} |" for row in rows)])


def overhead_table(found: dict[str, Any] | None) -> str:
    """Seconds beside the cubes', by engine."""
    if found is None:
        return NOT_YET
    head = (
        "engine | wall time beside a cube's own | of a cube of 0.5 s | CPU time of the coordinator"
    )
    return table(
        head,
        (
            (
                name,
                f"{1e3 * one['wall_s']:.2f} ms",
                f"{one['wall_s'] / 0.5:.1%}",
                f"{1e3 * one['cpu_s']:.2f} ms",
            )
            for name, one in found.items()
        ),
    )


def two_text(found: dict[str, Any] | None) -> str:
    """The real cubes on one and two processes, and how busy the machine was."""
    if found is None:
        return NOT_YET
    one, two = found["rows"]
    rows = table(
        "processes | measured, median | by simulation | off",
        (
            (str(r["workers"]), f"{r['measured_s']:.2f} s", f"{r['predicted_s']:.2f} s", off(r))
            for r in found["rows"]
        ),
    )
    speedup = one["measured_s"] / two["measured_s"]
    return (
        f"{rows}\n\n{speedup:.2f}x from one to two processes, on {found['cores']} cores that had "
        f"{found['load']} processes to run before (load average): above 0 these say as much of "
        "the others as of this."
    )


def plans_text(found: dict[str, Any] | None, beside: dict[str, Any] | None) -> str:
    """The whole command on one and two processes, and what two cores give at all."""
    if found is None:
        return NOT_YET
    one, two = (found["wall_s"][workers] for workers in ("1", "2"))
    return (
        f"`p2smt {' '.join(found['question'])}`:\n"
        f"{one:.1f} s with one process, {two:.1f} s with two: {one / two:.2f}x; medians of "
        f"{found['runs']} runs on {found['cores']} cores, load average {found['load']} before."
        + ("" if beside is None else _most_text(beside))
    )


def _most_text(beside: dict[str, Any]) -> str:
    alone_s, both_s = beside["alone_s"], beside["both_s"]
    return (
        f"\nTwo searches in one piece that share nothing took {both_s:.1f} s at once, one alone "
        f"{alone_s:.1f} s:\n{2 * alone_s / both_s:.2f}x is what two cores of this machine give."
    )


def off(row: dict[str, Any]) -> str:
    """How far a prediction is from what was measured."""
    return f"{row['predicted_s'] / row['measured_s'] - 1:+.1%}"


def waited_table(found: list[dict[str, Any]] | None) -> str:
    """Waiting cubes, by engine and number of workers."""
    if found is None:
        return NOT_YET
    return table(
        "engine | workers | measured | by simulation | off",
        (
            (
                r["engine"],
                str(r["workers"]),
                f"{r['measured_s']:.2f} s",
                f"{r['predicted_s']:.2f} s",
                off(r),
            )
            for r in found
        ),
    )


def simulated_table(found: list[dict[str, Any]] | None) -> str:
    """Efficiencies by engine and number of workers."""
    if found is None:
        return NOT_YET
    return table(
        "engine | workers | whole cubes, by simulation | with splits, by simulation",
        ((r["engine"], f"{r['workers']:,}", _part(r["whole"]), _part(r["split"])) for r in found),
    )


def lengths_table(found: list[dict[str, Any]] | None, measured: Sequence[MeasuredCube]) -> str:
    """Efficiencies by engine, number of workers, and how long a cube takes in the mean."""
    if found is None or not measured:
        return NOT_YET
    mean_s = work_of(measured) / len(measured)
    heads = (f"cubes of {mean_s * times:.2g} s" for times in study.LONGER)
    return table(
        " | ".join(("engine", "workers", *heads)),
        ((r["engine"], f"{r['workers']:,}", *map(_part, r["efficiency"])) for r in found),
    )


def _part(values: Sequence[float]) -> str:
    middle, low, high = values
    return f"{middle:.1%} [{low:.1%}, {high:.1%}]"


def pruning_table(found: list[dict[str, Any]] | None) -> str:
    """Work and speedup of the measured search with incumbents."""
    if found is None:
        return NOT_YET
    return table(
        "workers | cubes closed by a worker | dropped | work of one worker's | speedup",
        (
            (
                str(r["workers"]),
                str(r["closed"]),
                str(r["dropped"]),
                f"{r['work']:.2f}",
                f"{r['speedup']:.2f}x",
            )
            for r in found
        ),
    )


def deaths_text(found: dict[str, Any] | None) -> str:
    """A sentence for each engine."""
    if found is None:
        return NOT_YET
    return "\n".join(
        f"* {name}: {one['workers']} workers and {one['coordinators']} coordinators killed; "
        f"{len(one['faults']) or 'no'} faults"
        + "".join(f"; {fault}" for fault in one["faults"])
        + "."
        for name, one in found.items()
    )


def main(arguments: Sequence[str]) -> None:
    """Write the page.

    Raises:
        InputError: arguments are given.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    PAGE.write_text(page(store.read()), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

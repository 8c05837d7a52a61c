"""Writes README.md, and its part of docs/synthesis.md, from ``results.json``, ``frontier.json`` and
``timings.json``.

python -m experiments.schedule_synthesis.page
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from statistics import median
from typing import Any

from experiments.schedule_synthesis.answers import FOUND, LATE, NONE
from experiments.schedule_synthesis.compare import COMMIT, OURS, THEIRS
from experiments.schedule_synthesis.sccl_points import PUBLISHED
from experiments.schedule_synthesis.store import FRONTIER, HERE, RESULTS, Row, read
from experiments.testbed.script import ended
from experiments.testbed.written.marked import filled
from p2smt.errors import InputError

PAGE, TEMPLATE = HERE / "README.md", HERE / "README.in.md"
DOCS, PART = HERE.parents[1] / "docs" / "synthesis.md", "frontiers"
"""The page with a part of its own."""


def page(results: dict[str, Any], frontiers: dict[str, Row]) -> str:
    """The page."""
    rows, versions = results["rows"], results["versions"]
    return TEMPLATE.read_text(encoding="utf-8").format(
        repeat=max((len(row["cpu_s"]) for row in rows), default=0),
        commit=COMMIT[:12],
        z3=versions["z3-solver"],
        ortools=versions["ortools"],
        measured_on=results["measured_on"],
        table=_comparison(rows),
        losses=losses(rows),
        false=_false(rows),
        frontiers="\n\n".join(_section(*one) for one in frontiers.items()),
        published="; ".join(
            f"({one.steps}, {one.rounds}, {one.chunks}) {one.source}" for one in PUBLISHED
        ),
    )


def seconds(row: Row) -> float:
    """Median CPU seconds."""
    found: float = median(row["cpu_s"])
    return found


def times_as_fast(rows: Sequence[Row], row: Row) -> float | None:
    """How many times the CPU seconds of a row of ours msccl-tools takes; None: it has no answer."""
    peer = _peer(rows, row)
    if peer is None or row["tool"] == THEIRS or row["answer"] in ("", LATE):
        return None
    return seconds(peer) / seconds(row)


def _peer(rows: Sequence[Row], row: Row) -> Row | None:
    same = [one for one in rows if (one["title"], one["size"]) == (row["title"], row["size"])]
    return next((one for one in same if one["tool"] == THEIRS), None)


def _comparison(rows: Sequence[Row]) -> str:
    head = "| question | (S, R, C) | tool | answer | CPU s | wall s | CPU, msccl-tools / p2smt |"
    lines = [
        f"| {row['title']} | {_size(row)} | {row['tool']} | {_answer(row)} | {seconds(row):.2f} | "
        f"{median(row['wall_s']):.2f} | {_ratio(rows, row)} |"
        for row in rows
    ]
    return "\n".join((head, "|---|---|---|---|---|---|---|", *lines))


def _size(row: Row) -> str:
    return "-" if row["size"] is None else f"({', '.join(map(str, row['size']))})"


def _answer(row: Row) -> str:
    return f"{row['answer']} ({row['reason']})" if row["reason"] else row["answer"]


def _ratio(rows: Sequence[Row], row: Row) -> str:
    times = times_as_fast(rows, row)
    if times is None:
        return ""
    peer = _peer(rows, row)
    more = "more than " if peer is not None and peer["answer"] == LATE else ""
    return f"{more}{times:.1f} x" + (" (slower)" if times < 1 else "")


def losses(rows: Sequence[Row]) -> str:
    """Where p2smt takes longer than msccl-tools, in words."""
    lost = [
        f"{row['title']} {_size(row)} with {row['tool']} ({times:.1f} x)"
        for row in rows
        if (times := times_as_fast(rows, row)) is not None and times < 1
    ]
    if not lost:
        return "p2smt takes less CPU time in every row."
    return f"p2smt takes longer in: {'; '.join(lost)}."


def _false(rows: Sequence[Row]) -> str:
    wrong = [
        f"{row['title']} {_size(row)}"
        for row in rows
        if row["tool"] == THEIRS and row["answer"] == NONE and row["exists"] and _found(rows, row)
    ]
    if not wrong:
        return "no such answer here."
    return f"in {len(wrong)} rows above it is false ({'; '.join(wrong)}), as the schedules show."


def _found(rows: Sequence[Row], row: Row) -> bool:
    """Whether p2smt has a verified schedule where msccl-tools has none."""
    same = [one for one in rows if (one["title"], one["size"]) == (row["title"], row["size"])]
    return any(one["tool"] == OURS and one["answer"] == FOUND for one in same)


def _section(fabric: str, data: Row) -> str:
    table = _frontier_table(data["points"])
    return f"### {fabric}\n\n{_frontier_text(data)}\n\n{table}"


def part_of_docs(frontiers: dict[str, Row]) -> str:
    """What docs/synthesis.md says of the frontiers of several nodes."""
    head = "| fabric | S | bound | R/C | C | of | proof |\n|---|---|---|---|---|---|---|\n"
    lines = [
        f"| {name} | {one['steps']} | {one['bound']} | {one['best'] or '-'} | {one['chunks']} | "
        f"{_origin(one)} | {'optimal' if one['proved'] else _gap(one)} |\n"
        for name, data in frontiers.items()
        if ":" in name
        for one in data["points"]
        if one["rounds"] is not None
    ]
    took = ", ".join(
        f"`{name}` {data['cpu_s']:.0f}" for name, data in frontiers.items() if ":" in name
    )
    return f"\n{head}{''.join(lines)}\nCPU seconds of whole processes: {took}.\n\n"


def _origin(point: Row) -> str:
    return str(point["origin"] or f"a search, group of {point['group_order']}")


def _frontier_text(data: dict[str, Any]) -> str:
    proved = sum(point["proved"] for point in data["points"])
    return (
        f"The whole frontier took {data['cpu_s']:.1f} s CPU in one process. {proved} of its "
        f"{len(data['points'])} points are proved optimal. It ends where it does for this reason: "
        f"{data['ending']}; for any number of steps R/C is at least "
        f"{data['limit']}."
    )


def _frontier_table(points: Sequence[dict[str, Any]]) -> str:
    head = "| S | bound | kind | R/C found | (S, R, C) | class | group or origin | proof |"
    lines = [
        f"| {one['steps']} | {one['bound']} | {one['bound_kind']} | {one['best'] or '-'} | "
        f"{_size_of(one)} | {one['class'] or '-'} | {one['origin'] or one['group_order'] or '-'} | "
        f"{'optimal' if one['proved'] else _gap(one)} |"
        for one in points
    ]
    return "\n".join((head, "|---|---|---|---|---|---|---|---|", *lines))


def _size_of(point: Row) -> str:
    if point["rounds"] is None:
        return "that of fewer steps"
    return f"({point['steps']}, {point['rounds']}, {point['chunks']})"


def _gap(point: dict[str, Any]) -> str:
    return f"gap {float(Fraction(point['gap'])):.1%}" if point["gap"] else "open"


def main(arguments: Sequence[str]) -> None:
    """Write the page.

    Raises:
        InputError: arguments are given, or nothing is measured yet.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    for needed in (RESULTS, FRONTIER):
        if not needed.exists():
            raise InputError(needed.name, "is not there", "run compare and frontier first")
    results, frontiers = read()
    PAGE.write_text(page(results, frontiers), encoding="utf-8")
    text = DOCS.read_text(encoding="utf-8")
    DOCS.write_text(filled(text, PART, part_of_docs(frontiers)), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

"""Writes the page of the study from ``results.json`` and ``README.in.md``.

python -m experiments.redistribution.page
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from experiments.redistribution import summary
from experiments.redistribution.study import FIELD, RESULTS, committed, key
from experiments.testbed.script import ended
from experiments.testbed.written import timings
from p2smt.errors import InputError

PAGE, TEMPLATE = RESULTS.parent / "README.md", RESULTS.parent / "README.in.md"


def page(data: dict[str, Any]) -> str:
    """The page."""
    cases, times = data["cases"], timings.read(RESULTS.parent)

    def planning_s(case: summary.Entry) -> list[float]:
        return [times[key(case, prices)][FIELD] for prices in case["plans"]]

    return TEMPLATE.read_text(encoding="utf-8").format(
        cases=len(cases),
        short="\n".join(summary.short(cases)),
        peers=table(summary.PEER_HEAD, summary.peer_rows(cases)),
        proofs=table(
            (*summary.PROOF_HEAD, *summary.PLANNING_HEAD), summary.proof_rows(cases, planning_s)
        ),
        gains_shardy=table(summary.GAIN_HEAD, summary.gain_rows(cases, "shardy")),
        gains_graph=table(
            summary.GAIN_HEAD, summary.gain_rows(cases, "dtensor graph, flattened meshes")
        ),
        losses=_losses(cases),
        outside=_outside(cases),
        most=summary.MOST,
        time_limit_s=data["header"]["time_limit_s"],
    )


def _losses(cases: Sequence[summary.Entry]) -> str:
    rows = list(summary.loss_rows(cases))
    return table(summary.LOSS_HEAD, rows) if rows else "There are none."


def _outside(cases: Sequence[summary.Entry]) -> str:
    found = summary.outside(cases)
    if not found:
        return "Every plan of a peer consists of these six steps."
    return "\n".join(f"- {count} x {reason}" for reason, count in found.items())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: Sequence[str]) -> None:
    """Write the page.

    Raises:
        InputError: arguments are given.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    PAGE.write_text(page(committed()), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

"""Draws the all-reduce frontier of the DGX-1 with published points beside it.

    python -m experiments.schedule_synthesis.draw [FOLDER]

Needs the ``plots`` extra, and the ``frontier.json`` of ``frontier.py``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.schedule_synthesis.sccl_points import NAMED, PUBLISHED
from experiments.schedule_synthesis.store import FRONTIER, HERE
from experiments.testbed.script import ended
from experiments.testbed.written.figures import write_figures
from p2smt.errors import InputError

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#555555"
MOST_STEPS = 7
"""NCCL's rings take 14 steps: a note says where they are."""


def draw(data: dict[str, Any]) -> Figure:
    """Rounds a chunk by steps: the proved bound, points found, points published."""
    points = [point for point in data["points"] if point["best"] is not None]
    figure, panel = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    _bound(panel, data["points"])
    steps = [point["steps"] for point in points]
    panel.plot(steps, [float(Fraction(p["best"])) for p in points], "o", color=BLUE, ms=8)
    for point in points:
        _label(panel, point["steps"], Fraction(point["best"]), point["best"], BLUE, (7, 4))
    for one in PUBLISHED:
        if one.steps <= MOST_STEPS:
            panel.plot([one.steps], [float(one.rate)], "^" if one in NAMED else "v", color=ORANGE)
            _label(panel, one.steps, one.rate, str(one.rate), ORANGE, (-22, 4))
    _legend(panel)
    panel.set_xlabel("steps (NCCL's rings: 14 steps, 7/24)")
    panel.set_ylabel("rounds a chunk (bandwidth)")
    panel.set_title("All-reduce on a DGX-1", fontsize=10)
    return figure


def _bound(panel: Axes, points: Sequence[dict[str, Any]]) -> None:
    """The bound of each number of steps; in the grey below it there is nothing."""
    told = [(point["steps"], float(Fraction(point["bound"]))) for point in points if point["bound"]]
    steps, values = [one[0] for one in told], [one[1] for one in told]
    panel.bar(steps, values, width=1, color=GREY, alpha=0.12)
    ends = [step - 0.5 for step in steps], [step + 0.5 for step in steps]
    panel.hlines(values, *ends, color=GREY, lw=1)
    panel.set_xticks(steps)


def _label(
    panel: Axes, steps: int, rate: Fraction, text: str, color: str, offset: tuple[int, int]
) -> None:
    panel.annotate(
        text,
        (steps, float(rate)),
        textcoords="offset points",
        xytext=offset,
        color=color,
        fontsize=8,
    )


def _legend(panel: Axes) -> None:
    panel.plot([], [], "o", color=BLUE, label="p2smt: found and verified")
    panel.plot([], [], "^", color=ORANGE, label="SCCL, named in its paper")
    panel.plot([], [], "v", color=ORANGE, label="composed of its optimal all-gathers")
    panel.plot([], [], "-", color=GREY, label="proved: none below, whatever the number of chunks")
    panel.set_ylim(bottom=0)
    panel.legend(fontsize=8, frameon=False)


def main(arguments: Sequence[str]) -> None:
    """Write the figure.

    Raises:
        InputError: the frontier is not measured.
    """
    if not FRONTIER.exists():
        raise InputError("frontier.json", "is not there", "run frontier.py first")
    data = json.loads(FRONTIER.read_text(encoding="utf-8"))["dgx1"]
    write_figures({"dgx1_all_reduce": lambda: draw(data)}, HERE, arguments)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

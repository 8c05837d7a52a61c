"""Draws measured against predicted, from ``results.json``.  Needs the ``plots`` extra.

python -m experiments.accuracy.draw [FOLDER]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.accuracy.accuracy import COLUMNS, HERE, RESULTS
from experiments.testbed.script import ended
from experiments.testbed.written.figures import write_figures

COLOURS = {
    "dgx2": "#CC79A7",
    "dgx-a100": "#E69F00",
    "aws-p4d": "#E69F00",
    "mi300x": "#009E73",
    "gcp-a4": "#56B4E9",
    "dgx-b200": "#56B4E9",
    "gb200-nvl72": "#56B4E9",
    "gb300-nvl72": "#56B4E9",
}
H100 = "#0072B2"
"""Okabe and Ito's colours, one per kind of GPU; those not named are H100."""
KINDS = {
    "V100": "#CC79A7",
    "A100": "#E69F00",
    "H100": H100,
    "B200, B300": "#56B4E9",
    "MI300X": "#009E73",
}
ONE_NODE, SEVERAL = "o", "^"


def draw(tables: Sequence[dict[str, Any]]) -> Figure:
    """Times on the left, ratios by size on the right: a mark per cell from 1 KiB up."""
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for one in tables:
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in one["rows"]]
        rows = [row for row in rows if row["bytes"] >= 2**10]
        preset, nodes = one["topology"].split(":")
        style = {"color": COLOURS.get(preset, H100), "ms": 4, "alpha": 0.6, "mfc": "none"}
        mark = ONE_NODE if nodes == "1" else SEVERAL
        measured, predicted = ([row[key] for row in rows] for key in ("measured_s", "predicted_s"))
        panels[0].plot(measured, predicted, mark, **style)
        sizes, ratios = ([row[key] for row in rows] for key in ("bytes", "ratio"))
        panels[1].plot(sizes, ratios, mark, **style)
    _times(panels[0])
    _ratios(panels[1])
    return figure


def _times(panel: Axes) -> None:
    panel.axline((1e-3, 1e-3), slope=1, color="black", lw=0.8)
    for factor in (3, 1 / 3):
        panel.axline((1e-3, factor * 1e-3), (1e-2, factor * 1e-2), color="black", lw=0.6, ls=":")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("measured time (s)")
    panel.set_ylabel("predicted time (s)")
    for label, colour in KINDS.items():
        panel.plot([], [], "s", color=colour, label=label)
    for label, mark in (("one node or rack", ONE_NODE), ("several", SEVERAL)):
        panel.plot([], [], mark, color="black", mfc="none", label=label)
    panel.legend(frameon=False, fontsize=8, loc="upper left")


def _ratios(panel: Axes) -> None:
    panel.axhline(1, color="black", lw=0.8)
    for factor in (3, 1 / 3):
        panel.axhline(factor, color="black", lw=0.6, ls=":")
    panel.set_xscale("log", base=2)
    panel.set_yscale("log", base=2)
    panel.set_xticks(
        [2**10, 2**15, 2**20, 2**25, 2**30], ["1 KiB", "32 KiB", "1 MiB", "32 MiB", "1 GiB"]
    )
    panel.set_yticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
    panel.set_xlabel("size")
    panel.set_ylabel("predicted / measured")


def draw_accuracy() -> Figure:
    """The figure of the committed results."""
    return draw(json.loads(RESULTS.read_text(encoding="utf-8"))["tables"])


def main(arguments: Sequence[str]) -> None:
    """Write the figure as SVG, and as PNG into another folder where one is named."""
    write_figures({"accuracy": draw_accuracy}, HERE, arguments)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

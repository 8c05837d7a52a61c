"""Draws docs/figures/placement.svg: a placement of 32 GPUs and the groups it induces.

Needs the ``plots`` extra.  Usage: python docs/figures/placement.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, Rectangle

from p2smt.parallelism.placement import Placement

NODES, GPUS = 4, 8
PLACEMENT = Placement(((4, 2), (1, 4)))
NAMES = ("dp", "tp")
# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")


def draw(axes: Axes, axis: int) -> None:
    """One panel: every GPU in the colour and with the number of its group along ``axis``."""
    groups = PLACEMENT.groups([axis])
    for node in range(NODES):
        box = FancyBboxPatch(
            (-0.25, NODES - node - 0.9), GPUS + 0.5, 0.8, "round,pad=0.02", fc="none", ec="#666666"
        )
        axes.add_patch(box)
        axes.text(-0.5, NODES - node - 0.5, f"node {node}", ha="right", va="center")
    for number, group in enumerate(groups):
        for device in group:
            node, gpu = divmod(int(device), GPUS)
            place = (gpu + 0.08, NODES - node - 0.8)
            axes.add_patch(Rectangle(place, 0.84, 0.6, fc=COLOURS[number], ec="black", lw=0.5))
            axes.text(gpu + 0.5, NODES - node - 0.5, str(number), ha="center", va="center")
    row = " x ".join(map(str, PLACEMENT.matrix[axis]))
    axes.set_title(
        f"{NAMES[axis]}: split {row} over node x gpu,\n{len(groups)} groups of {groups.shape[1]}"
    )
    axes.set_xlim(-1.9, GPUS + 0.4)
    axes.set_ylim(0, NODES + 0.1)
    axes.axis("off")


def main() -> None:
    """Write the figure beside this script."""
    mpl.rcParams["svg.hashsalt"] = "p2smt"
    figure, panels = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained")
    for axis, panel in enumerate(panels):
        draw(panel, axis)
    target = Path(__file__).with_suffix(".svg")
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main()

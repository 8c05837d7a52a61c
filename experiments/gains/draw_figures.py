"""Draws the figures of the page from ``results.json``.  Needs the ``plots`` extra.

python -m experiments.gains.draw_figures [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from experiments.gains.groups import SHARED, SPREAD, WHOLE
from experiments.gains.store import GAIN, HERE, entries, read
from experiments.gains.summary import Entry, leafy
from experiments.testbed.script import ended
from experiments.testbed.written.figures import write_figures
from p2smt.units import format_bytes

MOST = 4.0
"""Ratio at which the colours end."""
BLUE, ORANGE = "#0072B2", "#E69F00"


def draw_programs() -> Figure:
    """Gains of programs: presets by payload, for groups and sizes; a dot: too small to measure."""
    found = [one for one in entries(read(), "groups") if one["collective"] == "all-reduce"]
    presets = list(dict.fromkeys(one["preset"] for one in found))
    columns = ("2 nodes", "4 nodes", "16 nodes (8)", "4 leaves of 4 nodes, 4:1")
    figure, panels = plt.subplots(
        3, 4, figsize=(11, 12.5), sharex=True, sharey=True, layout="constrained"
    )
    shown = None
    for line, group in zip(panels, (WHOLE, SHARED, SPREAD), strict=True):
        same = [one for one in found if one["group"] == group]
        for place, (panel, title) in enumerate(zip(line, columns, strict=True)):
            chosen = [one for one in same if _column(one) == place]
            shown = _heat(panel, chosen, presets)
            panel.set_title(f"{group}\n{title}", fontsize=8)
    if shown is not None:
        bar = figure.colorbar(shown, ax=panels, shrink=0.4, aspect=40, ticks=[1.05, 1.5, 2, 3, 4])
        bar.ax.set_yticklabels(["1.05x", "1.5x", "2x", "3x", "4x"], fontsize=8)
        bar.set_label("single all-reduce / best program", fontsize=8)
    return figure


def _column(entry: Entry) -> int:
    """Panel of a cluster: by nodes; -1: not shown."""
    if leafy(entry):
        return 3 if entry["leaves"] == 4 else -1
    return {2: 0, 4: 1}.get(entry["nodes"], 2)


def _heat(panel: Axes, chosen: Sequence[Entry], presets: Sequence[str]) -> AxesImage:
    payloads = sorted({one["payload"] for one in chosen})
    ratio = np.full((len(presets), len(payloads)), np.nan)
    for one in chosen:
        spot = presets.index(one["preset"]), payloads.index(one["payload"])
        if one["gain"] > GAIN:
            ratio[spot] = min(MOST, 1 + one["gain"])
            if one["measurable"] is False:
                panel.plot(spot[1], spot[0], ".", color="white", ms=3)
    panel.set_facecolor("#eeeeee")
    shown = panel.imshow(
        ratio, cmap="viridis_r", norm=LogNorm(1 + GAIN, MOST), aspect="auto", interpolation="none"
    )
    panel.set_xticks(range(len(payloads)), map(format_bytes, payloads), rotation=90, fontsize=7)
    panel.set_yticks(range(len(presets)), presets, fontsize=7)
    return shown


def draw_placements() -> Figure:
    """Default layout over the best one, one collective each; a point is a cluster and a payload."""
    found = entries(read(), "layouts")
    names = list(dict.fromkeys(one["layout"] for one in found))
    figure, panel = plt.subplots(figsize=(9, 4), layout="constrained")
    spread = np.random.default_rng(0)
    for leaves, colour, shift, label in (
        (False, BLUE, -0.18, "4 nodes"),
        (True, ORANGE, 0.18, "4 leaves of 4 nodes, 4:1"),
    ):
        same = [one for one in found if leafy(one) is leaves]
        x = np.array([names.index(one["layout"]) for one in same]) + shift
        y = [1 + one["placement_gain"] for one in same]
        panel.plot(
            x + spread.uniform(-0.1, 0.1, len(x)),
            y,
            "o",
            ms=3.5,
            mew=0,
            alpha=0.6,
            color=colour,
            label=label,
        )
    panel.axhline(1 + GAIN, color="black", lw=0.8, ls=":")
    panel.set_yscale("log")
    panel.set_yticks([1, 1.5, 2, 4, 8, 16], ["1x", "1.5x", "2x", "4x", "8x", "16x"])
    panel.minorticks_off()
    panel.set_xticks(range(len(names)), names, fontsize=8)
    panel.set_xlabel("axes, outermost first: the default layout")
    panel.set_ylabel("default layout / best layout")
    panel.legend(frameon=False, fontsize=8)
    return figure


FIGURES = {"programs": draw_programs, "placements": draw_placements}


def main(arguments: Sequence[str]) -> None:
    """Write every figure as SVG, and as PNG into another folder where one is named."""
    write_figures(FIGURES, HERE, arguments)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

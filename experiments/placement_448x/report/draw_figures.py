"""Draws the figures of the report from the committed JSON files.  Needs the ``plots`` extra.

python -m experiments.placement_448x.report.draw_figures [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.placement_448x.model.distance import LARGE
from experiments.placement_448x.model.solving import LIBRARY, RING
from experiments.placement_448x.model.summary import Outcome, by_name, load, ratios
from experiments.placement_448x.report.colours import BLACK, BLUE, GREEN, ORANGE, PINK, SKY
from experiments.placement_448x.report.figures_beyond import draw_beyond
from experiments.placement_448x.report.figures_predicted import draw_measured
from experiments.placement_448x.report.speedups import WAYS
from experiments.placement_448x.report.values import EFFECTIVE
from experiments.placement_448x.store import HERE
from experiments.testbed.script import ended
from experiments.testbed.written.figures import write_figures

PAPER_RATIO, PAPER_SHARE, PAPER_MEAN, PAPER_MOST = 448.5, 0.69, 1.27, 2.04


def draw_ratios() -> Figure:
    """Worst over best placement, case by case, largest first."""
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    lines = (
        ("paper-gcp-a100-4", BLUE, "-"),
        ("gcp-a2-highgpu-16g-4", SKY, "--"),
        ("paper-gcp-v100-4", ORANGE, "-"),
        ("azure-ndv4-4", GREEN, "-."),
        ("dgx-h100-4", PINK, ":"),
    )
    for name, colour, style in lines:
        results = by_name(name)
        values = [one.ratio for one in ratios(results.outcomes())]
        place = np.arange(1, len(values) + 1)
        axes.step(place, values, where="mid", color=colour, ls=style, label=results.label)
    axes.axhline(PAPER_RATIO, color=BLACK, lw=0.8)
    axes.text(86, PAPER_RATIO * 1.03, "paper: 448.5", va="bottom", ha="right", fontsize=8)
    axes.set_yscale("log")
    axes.set_ylim(0.8, 900)
    axes.set_xlabel("cases (axes, reduced axes), ordered by ratio")
    axes.set_ylabel("worst / best placement\n(single all-reduce)")
    axes.legend(frameon=False, fontsize=8)
    return figure


def draw_gains() -> Figure:
    """Speedups of all requests, as the share of requests that reach them."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
    styles = ((BLUE, "-"), (SKY, "--"), (ORANGE, "-"), (PINK, "--"))
    for panel, algorithm in zip(panels, (RING, LIBRARY), strict=True):
        for name, (colour, style) in zip(EFFECTIVE, styles, strict=True):
            results = by_name(name)
            outcomes = results.outcomes(0, algorithm)
            _at_least(panel, [one.speedup for one in outcomes], colour, style, results.label)
        _paper_lines(panel)
        panel.set_title(WAYS[algorithm], fontsize=10, pad=22)
        panel.set_xlabel("speedup of the best program, at least")
    panels[0].set_ylabel("share of requests")
    panels[1].legend(frameon=False, fontsize=8, loc="center right")
    return figure


def _paper_lines(panel: Axes) -> None:
    """The paper's share, mean and largest speedup."""
    panel.axhline(PAPER_SHARE, color=BLACK, lw=0.8, ls=":")
    inside = panel.get_yaxis_transform()
    panel.text(0.99, PAPER_SHARE, "69 %", fontsize=8, va="bottom", ha="right", transform=inside)
    for value, text in ((PAPER_MEAN, "paper: mean 1.27x"), (PAPER_MOST, "paper: max 2.04x")):
        panel.axvline(value, color=BLACK, lw=0.8, ls=":")
        panel.text(value + 0.01, 1.05, text, fontsize=8, ha="center", va="bottom")


def _at_least(panel: Axes, values: Sequence[float], colour: str, style: str, label: str) -> None:
    """The share of values that are at least so large; each twice, for both corners of its step."""
    ordered = np.sort(np.array([*values, *values]))
    share = 1 - np.arange(len(ordered)) / len(ordered)
    panel.step(ordered, share, where="pre", color=colour, ls=style, label=label)
    panel.set_ylim(0, 1.02)


def draw_bounds() -> Figure:
    """Time over physical bound, plain and pipelined, of requests of 1 GiB and more."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    ways = (("best program", BLUE, "-"), ("pipelined", ORANGE, "--"))
    every = load()
    paper = [by_name(name) for name in EFFECTIVE]
    groups = (("the paper's systems, effective", paper), ("all systems", every))
    for panel, (title, systems) in zip(panels, groups, strict=True):
        found = [o for r in systems for p in r.payloads if p >= LARGE for o in r.outcomes(p)]
        for label, colour, style in ways:
            values = np.sort([_seconds(one, label) / one.bound_s for one in found])
            share = np.arange(1, len(values) + 1) / len(values)
            panel.step(values, share, where="post", color=colour, ls=style, label=label)
        panel.axvline(1.1, color=BLACK, lw=0.8, ls=":")
        panel.text(1.12, 0.03, "10 %", fontsize=8)
        panel.set_xscale("log")
        panel.set_xlim(0.98, 15)
        panel.set_ylim(0, 1.02)
        panel.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
        panel.minorticks_off()
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("time / physical bound, at most")
    panels[0].set_ylabel("share of requests\nof 1 GiB and more")
    panels[1].legend(frameon=False, fontsize=8, loc="lower right")
    return figure


def _seconds(one: Outcome, way: str) -> float:
    return one.pipelined_s if way == "pipelined" else one.best_s


FIGURES = {
    "ratios": draw_ratios,
    "gains": draw_gains,
    "bounds": draw_bounds,
    "measured": draw_measured,
    "beyond": draw_beyond,
}


def main(arguments: Sequence[str]) -> None:
    """Write every figure as SVG, and as PNG into another folder where one is named."""
    write_figures(FIGURES, HERE, arguments)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

"""The figure of what goes beyond the paper: iterations, and choosing one after the other."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.placement_448x.report.colours import BLACK, BLUE, GREEN, ORANGE, PINK
from experiments.placement_448x.report.other import Data
from experiments.placement_448x.store import HERE
from experiments.testbed.written.results import read


def draw_beyond() -> Figure:
    """Times of iterations over the answer of solve; the largest losses of choosing in turn."""
    beyond = read(HERE / "beyond.json")
    figure, panels = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    _iterations(panels[0], beyond["iterations"])
    _losses(panels[1], beyond["together"])
    return figure


def _iterations(panel: Axes, iterations: list[Data]) -> None:
    ways = (
        ("bound_s", "physical bound", GREEN, "|"),
        ("after_another_s", "best placement of singles, best programs", BLACK, "x"),
        ("best_single_s", "best placement, single all-reduces", BLUE, "o"),
        ("default_layout_s", "default layout, single all-reduces", ORANGE, "s"),
        ("worst_single_s", "worst placement, single all-reduces", PINK, "v"),
    )
    names = [f"{one['system']}\n{one['axes']}" for one in iterations]
    for key, label, colour, marker in ways:
        values = [one[key] / one["together_s"] for one in iterations]
        panel.plot(values, range(len(values)), marker, color=colour, ms=7, label=label, mfc="none")
    panel.axvline(1, color=BLACK, lw=0.8, ls=":")
    panel.set_yticks(range(len(names)), names, fontsize=7)
    panel.invert_yaxis()
    panel.set_xscale("log", base=2)
    panel.set_xticks([1 / 64, 1 / 16, 1 / 4, 1, 4, 16], ["1/64", "1/16", "1/4", "1", "4", "16"])
    panel.set_xlabel("time of an iteration / answer of solve")
    _legend_above(panel)


def _losses(panel: Axes, together: list[Data]) -> None:
    ways = (
        ("two_requests_plain", "after_another", "luckiest tied placement", BLUE, "o"),
        ("two_requests_plain", "unlucky", "worst tied placement", ORANGE, "s"),
        ("two_requests_pipelined", "after_another", "pipelined, luckiest", GREEN, "+"),
        ("two_requests_pipelined", "unlucky", "pipelined, worst", PINK, "x"),
    )
    for key, which, label, colour, marker in ways:
        values = [one[key][which]["largest"] for one in together]
        panel.plot(values, range(len(values)), marker, color=colour, ms=7, label=label, mfc="none")
    panel.axvline(1, color=BLACK, lw=0.8, ls=":")
    panel.set_yticks(range(len(together)), [one["system"] for one in together], fontsize=7)
    panel.invert_yaxis()
    panel.set_xlabel("two requests: placement first, then programs;\nlargest time / both together")
    _legend_above(panel)


def _legend_above(panel: Axes) -> None:
    panel.legend(frameon=False, fontsize=7, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))

"""The figure of predicted against measured times of the test clusters."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.placement_448x.measure.summary import seconds_of
from experiments.placement_448x.report.colours import BLACK, BLUE, ORANGE
from experiments.placement_448x.report.measured import Data, label, with_model


def draw_measured() -> Figure:
    """Predicted against measured time of every measurement, one panel per cluster."""
    found = with_model()
    figure, panels = plt.subplots(
        1, len(found), figsize=(3.6 * len(found), 3.6), squeeze=False, layout="constrained"
    )
    for panel, data in zip(panels[0], found, strict=True):
        _measured_panel(panel, data)
    panels[0][0].set_ylabel("measured time (s)")
    panels[0][0].legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _measured_panel(panel: Axes, data: Data) -> None:
    """One cluster: other programs below, single all-reduces above."""
    ways = (("program", False, BLUE, "."), ("single all-reduce", True, ORANGE, "D"))
    for name, single, colour, marker in ways:
        entries = [entry for entry in data["entries"] if entry["single"] is single]
        predicted = [entry["predicted_s"] for entry in entries]
        real = [seconds_of(entry) for entry in entries]
        panel.plot(predicted, real, marker, color=colour, ms=4, alpha=0.8, label=name)
    panel.axline((1, 1), slope=1, color=BLACK, lw=0.8)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_aspect("equal", adjustable="datalim")
    panel.set_title(label(data), fontsize=10)
    panel.set_xlabel("predicted time (s)")

"""The figures of predicted against real times: published ones, and those of the test clusters."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.placement_448x.measure.summary import seconds_of
from experiments.placement_448x.report.colours import BLACK, BLUE, GREEN, ORANGE, PINK, SKY
from experiments.placement_448x.report.measured import Data, label, with_model
from experiments.placement_448x.store import HERE, read


def draw_published() -> Figure:
    """Predicted over published time by message size, one line per prediction."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
    experiments = read(HERE / "published.json")["experiments"]
    colours, markers = (BLUE, ORANGE, GREEN, PINK, SKY), "osd^v"
    for panel, halves in zip(panels, (False, True), strict=True):
        chosen = [e for e in experiments if (e["note"] == "other sizes") is halves]
        for one, colour, marker in zip(chosen, colours, markers, strict=True):
            points = sorted((size, after / seconds) for size, seconds, after in one["points"])
            sizes, values = zip(*points, strict=True)
            label = one["predicted"]
            if not halves:
                label += f"\n{one['note'].split(';')[0]}"
                label += ", 2 tables" if len(one["seen"]) > 1 else ""
            panel.plot(sizes, values, marker, color=colour, ms=4, alpha=0.8, label=label)
        panel.axhline(1, color=BLACK, lw=0.8)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log", base=2)
        panel.set_ylim(0.2, 4)
        panel.set_yticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
        ticks = [2**n for n in range(3, 35, 6)]
        panel.set_xticks(ticks, [_bytes(n) for n in ticks])
        panel.set_title("every second size unseen" if halves else "table unseen", fontsize=10)
        panel.set_xlabel("message size")
        panel.legend(frameon=False, fontsize=7, loc="upper right", ncols=2)
    panels[0].set_ylabel("predicted / published time")
    return figure


def _bytes(count: int) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:g} {unit}"
        count //= 1024
    return f"{count:g} TiB"


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

"""The three pictures of the README, drawn from what its commands print with ``--json``.

Needs the ``plots`` extra.  ``python docs/readme.py`` draws them and renews the blocks beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

HERE = Path(__file__).parent
Answer = Mapping[str, Any]
# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, PINK, SKY, RED, GREY = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999"),
)
PARTS = {
    "compute": GREEN,
    "tp": RED,
    "dp": BLUE,
    "cp": PINK,
    "pp": ORANGE,
    "bubble": GREY,
    "optimizer": SKY,
}
STAGES = ("#fdf1dc", "#f7deae", "#f2cb7f", "#ecb84d")
SETTING = {"svg.hashsalt": "p2smt", "font.size": 9, "axes.spines.top": False}
STEP = 0.95


def facts(name: str, answer: Answer) -> str:
    """The numbers that a picture shows; it says them in its description, and a test compares."""
    return FACTS[name](answer)


def draw(name: str, answer: Answer) -> None:
    """Write one picture beside this script."""
    mpl.rcParams.update(SETTING)
    figure = DRAWN[name](answer)
    told = {"Date": None, "Description": facts(name, answer)}
    figure.savefig(HERE / f"{name}.svg", metadata=told, bbox_inches="tight", pad_inches=0.05)
    plt.close(figure)


# The strategy to run: where its stages lie, its time by parts, and what is as good.


def _train(answer: Answer) -> Figure:
    figure, (cluster, times) = plt.subplots(
        1, 2, figsize=(8.2, 2.9), width_ratios=(1, 1.35), layout="constrained"
    )
    _cluster(cluster, answer["recommended"])
    _times(times, answer)
    return figure


def _cluster(axes: Axes, strategy: Answer) -> None:
    """A row a node, a square a GPU: the pipeline stage by colour and number."""
    degrees = strategy["degrees"]
    stages, copies = degrees["pp"], degrees["dp"]
    tensor = degrees["tp"]
    nodes = stages * copies
    gpus = degrees["cp"] * tensor
    for node in range(nodes):
        stage = node // copies
        for gpu in range(gpus):
            x, y = gpu + 0.25 * (gpu // tensor), nodes - node
            colour = STAGES[stage * (len(STAGES) - 1) // max(1, stages - 1)]
            axes.add_patch(Rectangle((x, y), 0.92, 0.8, fc=colour, ec="#777777", lw=0.4))
        axes.text(-0.3, nodes - node + 0.4, f"stage {stage}", ha="right", va="center")
    axes.set(xlim=(-2.4, gpus + 0.3), ylim=(0.8, nodes + 1))
    axes.set_title(f"{nodes} nodes of {gpus} GPUs: blocks of tp={tensor}", fontsize=9)
    axes.axis("off")


def _times(axes: Axes, answer: Answer) -> None:
    """Bars of the parts; below, every strategy within 5 %, and the range of the chosen one."""
    shown = (("chosen", answer["recommended"]), ("fastest", answer["best"]))
    for row, (_, one) in enumerate(shown):
        left = 0.0
        for part, colour in PARTS.items():
            width = one["parts"].get(part, 0.0)
            axes.barh(-row, width, left=left, height=0.6, color=colour)
            left += width
        axes.text(left + 0.03, -row, f"{one['iteration_s']:.2f} s", va="center")
    low, high = answer["recommended"]["range_s"]
    axes.axvspan(low, high, ymin=0, ymax=0.27, color="#dddddd")
    near = [one["iteration_s"] for one in answer["near_optimal_strategies"]]
    axes.plot(near, [-2.0] * len(near), "|", color="black", ms=12, mew=0.8)
    axes.set_yticks([0, -1, -2], [*(name for name, _ in shown), f"{len(near)} within 5 %"])
    axes.set(xlim=(12.9, max(high, max(near)) + 0.25), ylim=(-2.5, 0.6))
    axes.set_xlabel("seconds an iteration (axis from 12.9); grey: range of the chosen one")
    named = ("compute", "tp", "dp", "pp", "bubble")
    axes.legend(
        [Rectangle((0, 0), 1, 1, fc=PARTS[part]) for part in named],
        named,
        ncols=len(named),
        handlelength=1,
        frameon=False,
        loc="lower center",
        bbox_to_anchor=(0.45, 0.97),
    )
    axes.spines[["right"]].set_visible(False)


def _train_facts(answer: Answer) -> str:
    times = (answer[which]["iteration_s"] for which in ("recommended", "best"))
    low, high = answer["recommended"]["range_s"]
    near = answer["near_optimal"]
    chosen = answer["recommended"]["strategy"]
    return f"{chosen}: {' and '.join(f'{t:.2f} s' for t in times)}; {low:.1f} to {high:.1f}; {near}"


# The shortest interleaving that goes wrong.


def _collective(answer: Answer) -> Figure:
    race = answer["violations"][0]
    ran = race["interleaving"]
    lanes = sorted({(one["rank"], one["block"]) for one in ran} | {(0, 1)})
    clash = {(one["rank"], one["block"], one["step"]) for one in race["steps"]}
    figure, axes = plt.subplots(figsize=(8.2, 2.6), layout="constrained")
    for lane, (rank, block) in enumerate(lanes):
        axes.plot((0, len(ran) + 1), (-lane, -lane), color="#dddddd", lw=0.8, zorder=0)
        does = "sends" if block == 0 else "adds"
        axes.text(-0.2, -lane, f"rank {rank} {does}", ha="right", va="center")
    for turn, one in enumerate(ran):
        place = (one["rank"], one["block"], one["step"])
        _step(axes, turn, -lanes.index(place[:2]), one, place in clash)
    late = next(one for one in race["steps"] if one["block"] == 1)
    _step(axes, len(ran), -lanes.index((late["rank"], late["block"])), late, True)
    start = (ran.index(next(one for one in ran if _place(one) in clash)), -lanes.index((0, 0)))
    axes.annotate(
        "must wait for it, and does not",
        xy=(len(ran), -lanes.index((0, 1)) + 0.3),
        xytext=(start[0] + STEP + 0.1, start[1] + 0.02),
        color=RED,
        va="center",
        arrowprops={"arrowstyle": "<-", "color": RED, "ls": "--"},
    )
    axes.set(xlim=(-1.9, len(ran) + 1), ylim=(-len(lanes) + 0.4, 0.6))
    axes.set_title("a shortest run that goes wrong, step by step; numbers: lines", fontsize=9)
    axes.axis("off")
    return figure


def _place(step: Answer) -> tuple[int, int, int]:
    return step["rank"], step["block"], step["step"]


def _step(axes: Axes, turn: int, y: float, step: Answer, wrong: bool) -> None:
    """One step of a thread block, in its turn."""
    colour = "#fbe3d6" if wrong else "#e3eef6"
    edge = RED if wrong else BLUE
    axes.add_patch(Rectangle((turn, y - 0.32), STEP, 0.64, fc=colour, ec=edge, lw=1.2))
    axes.text(turn + STEP / 2, y, f"{step['kind']} {step['line']}", ha="center", va="center")


def _collective_facts(answer: Answer) -> str:
    race = answer["violations"][0]
    lines = (str(one["line"]) for one in race["interleaving"])
    clash = sorted(one["line"] for one in race["steps"])
    return f"lines {' '.join(lines)}; race of {clash[0]} and {clash[1]}"


# Time and memory of the plan beside those of other planners.


def _rows(answer: Answer) -> list[tuple[str, float, float]]:
    """Planner, milliseconds, MiB of the largest state; flattened meshes price the same here."""
    found = [("p2smt", answer["objective_s"] * 1e3, answer["peak_bytes"] / 2**20)]
    for one in answer["compared"][:2]:
        found.append((one["name"], one["seconds"] * 1e3, one["peak_bytes"] / 2**20))
    return [(name.replace("dtensor", "DTensor,"), *rest) for name, *rest in found]


def _reshard(answer: Answer) -> Figure:
    rows = _rows(answer)
    cap = answer["memory"]["limit_bytes"] / 2**20
    figure, (times, memory) = plt.subplots(
        1, 2, figsize=(8.2, 1.7), sharey=True, layout="constrained"
    )
    for y, (_, milliseconds, mebibytes) in enumerate(rows):
        times.barh(-y, milliseconds, color=BLUE if y == 0 else GREY, height=0.6)
        times.text(milliseconds, -y, f" {milliseconds:.1f} ms", va="center")
        memory.barh(-y, mebibytes, color=BLUE if y == 0 else GREY, height=0.6)
        memory.text(mebibytes, -y, f" {mebibytes:.0f} MiB", va="center")
    memory.axvline(cap, color=RED, ls="--", lw=1)
    memory.text(cap, 0.62, f" cap {cap:.0f} MiB", color=RED, ha="left")
    times.set_yticks([-y for y in range(len(rows))], [name for name, *_ in rows])
    times.set_title("predicted time", fontsize=9, loc="left", pad=12)
    memory.set_title("largest state of a device", fontsize=9, loc="left", pad=12)
    for axes in (times, memory):
        axes.set_xlim(0, axes.get_xlim()[1] * 1.2)
        axes.set_xticks([])
        axes.spines[["right", "bottom"]].set_visible(False)
    return figure


def _reshard_facts(answer: Answer) -> str:
    return "; ".join(f"{name} {ms:.2f} ms {mib:.0f} MiB" for name, ms, mib in _rows(answer))


DRAWN: Mapping[str, Callable[[Answer], Figure]] = {
    "train": _train,
    "collective": _collective,
    "reshard": _reshard,
}
FACTS: Mapping[str, Callable[[Answer], str]] = {
    "train": _train_facts,
    "collective": _collective_facts,
    "reshard": _reshard_facts,
}

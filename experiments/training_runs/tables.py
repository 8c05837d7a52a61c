"""Tables of the page, made of the results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]
WORST = 12


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; columns whose heading starts with ">" are right-aligned."""
    lines = [
        "| " + " | ".join(name.lstrip(">") for name in head) + " |",
        "|" + "|".join("--:" if name.startswith(">") else "---" for name in head) + "|",
    ]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def percent(value: float) -> str:
    """A part, such as an error."""
    return f"{100 * value:.1f} %"


def signed(value: float) -> str:
    """An error with its direction."""
    return f"{100 * value:+.1f} %"


def sets(data: Row) -> str:
    """The constants and their errors."""
    head = ["efficiency", ">of the peak", ">runs", ">groups", ">mean", ">median", ">largest"]
    rows = [
        [
            f"`{one['name']}`",
            f"{one['fraction']:.3f}",
            str(one["runs"]),
            str(one["groups"]),
            *(percent(one[key]) for key in ("mean", "median", "max", "plain_mean")),
        ]
        for one in data["sets"]
    ]
    return table([*head, ">6 operations"], rows)


def groups(data: Row) -> str:
    """Every group where it was left out."""
    head = ["group", "efficiency", ">runs", ">of the peak without it", ">mean", ">bias"]
    rows = [
        [
            one["group"],
            f"`{one['name']}`",
            str(one["runs"]),
            f"{one['fraction']:.3f}",
            percent(one["mean"]),
            signed(one["bias"]),
        ]
        for one in data["groups"]
    ]
    return table(head, rows)


def transfers(data: Row) -> str:
    """Runs on one device by the constant of another."""
    head = ["runs of", "by the constant of", ">mean", ">bias"]
    rows = [
        [f"`{one['runs']}`", f"`{one['by']}`", percent(one["mean"]), signed(one["bias"])]
        for one in data["transfers"]
    ]
    return table(head, rows)


def worst(data: Row) -> str:
    """The runs that are met worst, at most two of a group."""
    shown: list[Row] = []
    count: dict[str, int] = defaultdict(int)
    for one in sorted(data["each"], key=lambda row: -abs(row["error"])):
        count[one["group"]] += 1
        if count[one["group"]] <= 2:
            shown.append(one)
    head = ["run", "group", "efficiency", ">measured", ">predicted", ">error"]
    return table(head, [_run(one, one["left_out_s"]) for one in shown[:WORST]])


def uncounted(data: Row) -> str:
    """Runs that do not count."""
    head = ["run", "group", "efficiency", ">measured", ">predicted", ">error", "not published"]
    rows = [[*_run(one, one["predicted_s"]), one["assumed"]] for one in data["uncounted"]]
    return table(head, rows)


def _run(one: Row, predicted_s: float) -> list[str]:
    seconds = (f"{one['measured_s']:.3g} s", f"{predicted_s:.3g} s")
    return [one["run"], one["group"], f"`{one['name']}`", *seconds, signed(one["error"])]


def launches(data: Row) -> str:
    """Errors by the time of launches, each fourth."""
    head = [">launches of a layer", ">of the peak", ">Megatron", ">small models", ">the sweep"]
    best = min(data["launches"], key=lambda row: float(row["small"]))
    chosen = [one for i, one in enumerate(data["launches"]) if i % 4 == 0 or one is best]
    rows = [
        [
            f"{1e3 * one['layer_s']:.1f} ms",
            f"{one['fraction']:.3f}",
            *(percent(one[key]) for key in ("megatron", "small", "sweep")),
        ]
        for one in chosen
    ]
    return table(head, rows)


def ranking(data: Row) -> str:
    """How each way to choose does in the sweep."""
    head = ["chosen by", ">tau", ">regret", ">regret of the top 3", ">place of the best", ">mean"]
    rows = [
        [
            one["way"],
            f"{one['tau']:.2f}",
            percent(one["regret"]),
            percent(one["top_regret"]),
            f"{one['place']} of {one['runs']}",
            percent(one["mean"]) if "mean" in one else "-",
        ]
        for one in data["ranking"]
    ]
    return table(head, rows)


def sweep(data: Row) -> str:
    """Every run of the sweep."""
    head = ["strategy", ">measured", ">predicted", ">error", ">error with 4 ports"]
    rows = [
        [
            one["strategy"],
            f"{one['measured_s']:.3f} s",
            f"{one['predicted_s']:.3f} s",
            *(signed(one[key] / one["measured_s"] - 1) for key in ("predicted_s", "four_ports_s")),
        ]
        for one in data["sweep"]
    ]
    return table(head, rows)


def memory(data: Row) -> str:
    """Runs that are said not to fit, and the fullest that are said to."""
    shown = [one for one in data["memory"] if not one["fits"]]
    full = [one for one in data["memory"] if one["fits"]][:3]
    head = ["run", "group", ">needs", ">device has", "said to fit"]
    rows = [
        [
            one["run"],
            one["group"],
            f"{one['needed_gib']:.1f} GiB",
            f"{one['has_gib']:.1f} GiB",
            "yes" if one["fits"] else "**no**",
        ]
        for one in [*shown, *full]
    ]
    return table(head, rows)


def placements(data: Row) -> str:
    """By cluster: how often the default placement is optimal, and the largest gain."""
    found: dict[str, list[Row]] = defaultdict(list)
    for one in data["placements"]:
        found[one["cluster"]].append(one)
    head = ["cluster", ">strategies", ">default optimal", ">largest gain", "where"]
    rows = []
    for cluster, mine in found.items():
        most = max(mine, key=lambda one: float(one["gain"]))
        where = f"{most['group']}, {most['run']}: `{most['best']}`" if most["gain"] else "-"
        optimal = sum(one["gain"] == 0 for one in mine)
        rows.append([cluster, str(len(mine)), str(optimal), percent(most["gain"]), where])
    return table(head, rows)

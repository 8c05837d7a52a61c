"""Counts and tables of the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from experiments.gains.asking import Ask
from experiments.gains.clusters import LEAVES, NODES, every_cluster
from experiments.gains.groups import ask_of
from experiments.gains.layouts import layout_clusters, layouts
from experiments.gains.store import GAIN
from p2smt.units import format_bytes, format_time

Entry = dict[str, Any]
WORDS = {True: "yes", False: "no", None: "not known"}
MOST = 10
"""Rows of a table of the largest gains."""
AS_GOOD = 0.05
"""A named algorithm that takes at most this part longer than a program is as good."""


def gaining(entries: Iterable[Entry], key: str = "gain") -> list[Entry]:
    """Those that gain enough."""
    return [one for one in entries if one[key] > GAIN]


def over_cheapest(entry: Entry) -> float:
    """The gain over the single collective by the library's cheapest way."""
    return float(entry["cheapest_s"] / entry["best_s"] - 1)


def as_good(named_s: float, program_s: float) -> bool:
    """Whether naming an algorithm gives what a program gives."""
    return named_s <= program_s * (1 + AS_GOOD)


def by_choice(entries: Iterable[Entry]) -> list[Entry]:
    """Gains that naming an algorithm of the library gives as well."""
    return [one for one in entries if as_good(one["cheapest_s"], one["best_s"])]


def measurable(entries: Sequence[Entry], key: str = "measurable") -> str:
    """How many gains p2smt calls measurable, in words."""
    counts = Counter(one[key] for one in entries)
    unknown = "where nobody published a measurement"
    parts = [(True, "measurable"), (False, "too small to measure"), (None, unknown)]
    return ", ".join(f"{counts[key]} {text}" for key, text in parts if counts[key]) or "none"


def statuses(entries: Iterable[Entry]) -> str:
    """How many answers ended how, in words."""
    counts = Counter(one["status"] for one in entries)
    return ", ".join(f"{count} {status}" for status, count in counts.most_common())


def share(entries: Sequence[Entry], prefix: str = "") -> str:
    """``gaining (measurable) / all``, with the largest gain as a ratio."""
    found = gaining(entries, f"{prefix}gain")
    if not found:
        return f"0 / {len(entries)}"
    sure = sum(one[f"{prefix}measurable"] is True for one in found)
    most = 1 + max(one[f"{prefix}gain"] for one in found)
    return f"{len(found)} ({sure}) / {len(entries)}, {most:.2f}x"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def by_payload(entries: Sequence[Entry], where: Callable[[Entry], bool]) -> str:
    """Collective and group against payload."""
    chosen = [one for one in entries if where(one)]
    payloads = sorted({one["payload"] for one in chosen})
    kinds = list(dict.fromkeys((one["collective"], one["group"]) for one in chosen))
    rows = []
    for collective, group in kinds:
        same = [o for o in chosen if (o["collective"], o["group"]) == (collective, group)]
        cells = [[o for o in same if o["payload"] == payload] for payload in payloads]
        rows.append([f"{collective}, {group}", *(share(c) if c else "" for c in cells)])
    return table(["groups", *map(format_bytes, payloads)], rows)


def by_preset(entries: Sequence[Entry]) -> str:
    """Preset against size."""
    head = ["preset", *(f"{n} nodes" for n in NODES), *(f"{n} leaves" for n in LEAVES)]
    rows = []
    for preset in dict.fromkeys(one["preset"] for one in entries):
        mine = [one for one in entries if one["preset"] == preset]
        specs = dict.fromkeys(one["spec"] for one in mine)
        cells = [share([o for o in mine if o["spec"] == spec]) for spec in specs]
        rows.append([preset, *cells, *[""] * (len(head) - 1 - len(cells))])
    return table(head, rows)


def largest_groups(entries: Sequence[Entry]) -> str:
    """The largest gain of a program on each preset, the largest of all first."""
    rows = []
    for one in _leaders(gaining(entries), ""):
        ask = ask_of(one)
        gains = (f"{1 + one['gain']:.2f}x", f"{1 + max(0.0, over_cheapest(one)):.2f}x")
        command = f"`{ask.command(*ask.fixed())}`"
        rows.append([*gains, WORDS[one["measurable"]], one["program"], command])
    head = ["gain", "over the cheapest way", "measurable", "program", "command"]
    return table(head, rows)


def _leaders(entries: Sequence[Entry], prefix: str) -> list[Entry]:
    """The largest gain of each preset, but those that are too small to measure."""
    first: dict[str, Entry] = {}
    sure = [one for one in entries if one[f"{prefix}measurable"] is not False]
    for one in sorted(sure, key=lambda entry: -entry[f"{prefix}gain"]):
        first.setdefault(one["preset"], one)
    return list(first.values())[:MOST]


def optimal_default(entry: Entry) -> bool:
    """Whether no placement gains anything over the default layout."""
    return bool(entry["placement_gain"] == 0)


def by_layout(entries: Sequence[Entry]) -> str:
    """Layouts: where the default one is best, and where another gains."""
    rows = []
    for layout in dict.fromkeys(one["layout"] for one in entries):
        cells = []
        for leaves in (False, True):
            same = [o for o in entries if o["layout"] == layout and leafy(o) is leaves]
            best = sum(map(optimal_default, same))
            cells += [f"{best} / {len(same)}", share(same, "placement_"), share(same)]
        rows.append([layout, *cells])
    head = ["axes, outermost first"]
    for where in ("nodes", "leaves"):
        head += [f"{where}: default best", f"{where}: placement", f"{where}: with programs"]
    return table(head, rows)


def leafy(entry: Entry) -> bool:
    """Whether the nodes are under leaf switches."""
    return "-leaves" in entry["spec"]


def largest_layouts(entries: Sequence[Entry]) -> str:
    """The largest gain of a placement on each preset."""
    rows = []
    for one in _leaders(gaining(entries, "placement_gain"), "placement_"):
        command = f"`{layout_ask(one).command('--length', '1')}`"
        matrices = f"{one['default_matrix']} to {one['placement_matrix']}"
        sure = WORDS[one["placement_measurable"]]
        rows.append([f"{1 + one['placement_gain']:.2f}x", sure, matrices, command])
    return table(["gain", "measurable", "matrix", "command"], rows)


def layout_ask(entry: Entry) -> Ask:
    """The question that a committed row of layouts answers."""
    cluster = next(c for c in layout_clusters() if c.spec == entry["spec"])
    chosen = layouts(cluster, entry["gradients"])
    return next(one for one in chosen if one.name == entry["layout"]).ask(cluster)


def training(entries: Sequence[Entry]) -> str:
    """The published runs."""
    rows = []
    for one in entries:
        best = "yes" if optimal_default(one) else f"no, {1 + one['placement_gain']:.2f}x"
        programs_s = one["programs_s"] or one["default_s"]
        ratio = f"{one['default_s'] / programs_s:.3f}x"
        rows.append(
            [
                *(one["name"], one["source"], f"{one['spec']}, {one['axes']}"),
                *(format_time(one["default_s"]), best, ratio, f"{1 + one['gain']:.3f}x"),
                *(WORDS[one["measurable"]] if one["gain"] > GAIN else "", one["assumed"]),
            ]
        )
    head = ["run", "source", "cluster, axes", "communication", "default layout best"]
    return table([*head, "programs", "both", "measurable", "assumed"], rows)


def commands(entries: Sequence[Entry]) -> str:
    """The commands of the runs, one a line."""
    return "\n".join(f"    {one['command']}" for one in entries)


def sizes() -> str:
    """How many clusters were asked."""
    return str(sum(1 for _ in every_cluster()))

"""The part of the report on the test clusters: accuracy, speedups and ratios as measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from experiments.placement_448x.cases import Case
from experiments.placement_448x.report_text import Lines, matrix_text, percent, table, time_text
from experiments.placement_448x.store import HERE, read

Data = Mapping[str, Any]
ACCURACIES = {
    "all": "accuracy",
    "different": "accuracy_distinct_cases",
    "across nodes": "accuracy_across_nodes",
}


@cache
def measured() -> tuple[Data, ...]:
    """The results of every cluster that was measured, those with a calibrated model first."""
    found = [read(path) for path in HERE.glob("measured_*.json")]
    return tuple(sorted(found, key=lambda data: (not _modelled(data), cluster_name(data))))


def _modelled(data: Data) -> bool:
    return "accuracy" in data["summary"]


def with_model() -> list[Data]:
    """The results that judge a model, and not placements alone."""
    return [data for data in measured() if _modelled(data)]


def cluster_name(data: Data) -> str:
    """Racks, nodes in each and ranks in each node, as 2x8 or 2x2x4."""
    cluster = data["cluster"]
    counts = [cluster[name] for name in ("racks", "nodes_per_rack", "ranks_per_node")]
    return "x".join(map(str, counts[counts[0] == 1 :]))


def label(data: Data) -> str:
    """The cluster and the rate of a node's uplink, which is a rack's as well."""
    return f"{cluster_name(data)}, {data['cluster']['uplink_mbit_per_s']:g} Mbit/s"


def claim(name: str) -> str:
    """What the test clusters say on a claim of the paper."""
    found = [f"{label(data)}: {text}" for data in measured() if (text := _claim(data, name))]
    return "<br>".join(found) or "not measured yet"


def _claim(data: Data, name: str) -> str:
    summary = data["summary"]
    if name == "placement":
        return f"{summary['placement_ratio']:.0f}x"
    if not _modelled(data):
        return ""
    speedup = summary["speedup"]
    return {
        "share": percent(speedup["share_gaining"]),
        "mean": f"{speedup['mean']:.2f}x over all, {speedup['mean_of_gaining']:.2f}x",
        "largest": f"{speedup['max']:.2f}x",
        "accuracy": percent(summary["accuracy"]["top_10"]),
    }[name]


def accuracy_table() -> Lines:
    """How often the model's first choices hold the measured best, and what they lose."""
    rows = []
    for data in with_model():
        summary = data["summary"]
        for which, name in ACCURACIES.items():
            one = summary[name]
            tops = [percent(one[f"top_{k}"]) for k in (1, 5, 10)]
            regrets = [f"{100 * one[f'regret_{name}']:.1f} %" for name in ("mean", "max")]
            rows.append(
                (
                    label(data),
                    which,
                    one["cases"],
                    *tops,
                    one["worst_rank"],
                    *regrets,
                    percent(one["regret_within_2_percent"]),
                )
            )
    head = ("cluster", "cases", "number", "top 1", "top 5", "top 10", "worst place")
    yield from table((*head, "mean regret", "largest", "at most 2 %"), rows)


def size_table() -> Lines:
    """How much was measured, and how far predictions and repetitions are off."""
    rows = []
    for data in with_model():
        summary = data["summary"]
        timed = len({len(entry["times_s"]) for entry in data["entries"]}) > 1
        repeat = f"1 to {data['repeat']}" if timed else data["repeat"]
        programs = f"best {data['keep']}, 1 in 4 others" if data["keep"] else "all"
        spread = percent(summary["repetitions_apart_median"])
        errors = (percent(summary["error_median"]), percent(summary["error_max"]))
        counts = (summary["pairs"], summary["entries"])
        rows.append((label(data), programs, *counts, repeat, *errors, spread))
    head = ("cluster", "programs of a placement", "pairs", "measurements", "repeated")
    yield from table((*head, "median error", "largest", "repetitions differ by"), rows)


def speedup_table() -> Lines:
    """Measured speedups of the fastest program, and of the one that the model chooses."""
    rows = []
    for data in with_model():
        for which, name in (("all", "speedup"), ("different", "speedup_distinct_requests")):
            one = data["summary"][name]
            shares = (percent(one["share_gaining"]), percent(one["chosen_share_gaining"]))
            names = ("mean", "mean_of_gaining", "max", "chosen_mean", "chosen_max", "chosen_min")
            cells = [f"{one[name]:.2f}x" for name in names]
            best, chosen = cells[:3], cells[3:]
            rows.append((label(data), which, one["requests"], shares[0], *best, shares[1], *chosen))
    head = ("cluster", "requests", "number", "gain", "mean of all", "mean of gaining", "largest")
    last = ("model's choice gains", "mean of all", "largest", "least")
    yield from table((*head, *last), rows)


def ratio_table() -> Lines:
    """The case of each cluster whose placements differ most, by its single all-reduces."""
    rows = []
    for data in measured():
        case, entries = _widest(data), data["entries"]
        singles = sorted(_singles(case, entries))
        (best, good), (worst, bad) = singles[0], singles[-1]
        ratio = f"{data['summary']['placement_ratio']:.1f}x"
        name = str(Case(tuple(case["axes"]), tuple(case["reduced"])))
        cells = (matrix_text(bad), time_text(worst), matrix_text(good), time_text(best))
        rows.append((label(data), name, *cells, ratio))
    head = ("cluster", "case", "worst", "time", "best", "time", "worst / best")
    yield from table(head, rows)


def _widest(data: Data) -> Data:
    """The case that the summary names."""
    wanted = data["summary"]["placement_ratio_case"]
    found: Data = next(c for c in data["cases"] if all(c[k] == v for k, v in wanted.items()))
    return found


def _singles(case: Data, entries: Sequence[Data]) -> Iterator[tuple[float, list[list[int]]]]:
    """(median seconds, matrix) of every placement's single all-reduce."""
    for matrix, own in case["placements"]:
        one = next(entries[n] for n in own if entries[n]["single"])
        yield statistics.median(one["times_s"]), matrix


def large_table() -> Lines:
    """The single all-reduce and the model's choice with a larger payload."""
    rows = []
    for data in with_model():
        found = data["large"]
        for single, chosen in zip(found[::2], found[1::2], strict=True):
            times = [statistics.median(one["times_s"]) for one in (single, chosen)]
            members = " x ".join(map(str, chosen["factors"]))
            groups = f"{chosen['groups']} of {members}"
            cells = (chosen["program"], *map(time_text, times), f"{times[0] / times[1]:.2f}x")
            rows.append((label(data), data["large_payload_bytes"] // 2**20, groups, *cells))
    head = ("cluster", "MiB", "groups", "model's choice", "single", "choice", "speedup")
    yield from table(head, rows)

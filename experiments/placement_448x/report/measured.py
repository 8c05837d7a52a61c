"""The part of the report on the test clusters: accuracy, speedups and ratios as measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from experiments.placement_448x.cases import Case
from experiments.placement_448x.measure.accuracy import TOPS
from experiments.placement_448x.measure.summary import seconds_of
from experiments.placement_448x.report.text import Lines, matrix_text, percent, table, time_text
from experiments.placement_448x.store import HERE
from experiments.testbed.written.results import read

Data = Mapping[str, Any]
CLUSTERS = ("2x8", "4x4", "2x2x4", "ratio")
"""The results that count, by the ends of their names."""
ACCURACIES = {
    "more than 10 measurements": "accuracy",
    "the different ones of these": "accuracy_distinct_cases",
    "every case": "accuracy_any_case",
    "one placement, across nodes": "accuracy_one_placement",
}


@cache
def measured() -> tuple[Data, ...]:
    """The results of every cluster that was measured."""
    paths = [HERE / f"measured_{name}.json" for name in CLUSTERS]
    return tuple(read(path) for path in paths if path.exists())


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
        said = f"predicted {summary['placement_ratio_predicted']:.0f}x"
        return f"{summary['placement_ratio']:.0f}x, {said}"
    if not _modelled(data):
        return ""
    speedup, accuracy = summary["speedup"], summary["accuracy"]
    once = summary["speedup_distinct_requests"]
    return {
        "share": f"each different once {_shares(once)}; all {_shares(speedup)}",
        "mean": f"each different once {_means(once)}; all {_means(speedup)}",
        "largest": f"{speedup['chosen_max']:.2f}x ({speedup['max']:.2f}x), "
        f"predicted {speedup['predicted_max']:.2f}x",
        "accuracy": f"{percent(accuracy['top_10'])}; best first in {percent(accuracy['top_1'])}, "
        f"within its spread in {percent(accuracy['within_spread'])}, "
        f"mean regret {100 * accuracy['regret_mean']:.1f} %",
    }[name]


def _shares(speedup: Data) -> str:
    """How often the model's choice gains, how often the fastest, and how often is predicted."""
    found = f"{percent(speedup['chosen_share_gaining'])} ({percent(speedup['share_gaining'])})"
    return f"{found}, predicted {percent(speedup['predicted_share_gaining'])}"


def _means(speedup: Data) -> str:
    found = f"{speedup['chosen_mean']:.2f}x ({speedup['mean']:.2f}x)"
    return f"{found}, predicted {speedup['predicted_mean']:.2f}x"


def accuracy_table() -> Lines:
    """How often the model's first choices hold the measured best, and what they lose."""
    rows = []
    for data in with_model():
        for which, name in ACCURACIES.items():
            one = data["summary"][name]
            if not one["cases"]:
                continue
            tops = [_top(one, k) for k in TOPS]
            regrets = [f"{100 * one[f'regret_{name}']:.1f} %" for name in ("mean", "max")]
            cells = (one["cases"], f"{one['measurements_median']:g}", *tops, *regrets)
            last = (percent(one["within_spread"]), percent(one["regret_within_5_percent"]))
            rows.append((label(data), which, *cells, *last))
    head = ("cluster", "cases", "number", "measurements", "top 1", "top 5", "top 10")
    yield from table((*head, "mean regret", "largest", "within spread", "at most 5 %"), rows)


def _top(one: Data, k: int) -> str:
    """Shared places, ties in random order, and guessing; nothing where guessing is sure."""
    if one[f"chance_{k}"] == 1:
        return ""
    return ", ".join(percent(one[f"{name}_{k}"]) for name in ("top", "random_ties", "chance"))


def size_table() -> Lines:
    """How much was measured, and how far predictions and rounds are off."""
    rows = []
    for data in with_model():
        summary = data["summary"]
        counts = [sum(map(len, entry["times_s"])) for entry in data["entries"]]
        errors = [
            f"{percent(summary[f'error_{of}median'])}, {percent(summary[f'error_{of}max'])}"
            for of in ("across_", "")
        ]
        timings = f"{min(counts)} to {max(counts)}"
        size = data["payload_bytes"] // 2**20
        pairs = (summary["pairs"], summary["entries"])
        rows.append(
            (
                label(data),
                size,
                *pairs,
                data["repeat"],
                timings,
                *errors,
                percent(summary["rounds_differ"]),
            )
        )
    head = ("cluster", "MiB per rank", "pairs", "measurements", "rounds", "timings of each")
    last = ("error across nodes, median, largest", "all", "rounds differ by")
    yield from table((*head, *last), rows)


def speedup_table() -> Lines:
    """Measured speedups of the fastest program, and of the one that the model chooses."""
    rows = []
    for data in with_model():
        for which, name in (("all", "speedup"), ("different", "speedup_distinct_requests")):
            one = data["summary"][name]
            shares = (percent(one["share_gaining"]), percent(one["chosen_share_gaining"]))
            names = ("mean", "mean_of_gaining", "max", "chosen_mean", "chosen_max", "chosen_min")
            cells = [f"{one[name]:.2f}x" for name in (*names, "predicted_mean", "predicted_max")]
            best, chosen = cells[:3], (shares[1], *cells[3:6])
            said = (percent(one["predicted_share_gaining"]), *cells[6:])
            rows.append((label(data), which, one["requests"], shares[0], *best, *chosen, *said))
    head = ("cluster", "requests", "number", "gain", "mean of all", "mean of gaining", "largest")
    last = ("model's choice gains", "mean of all", "largest", "least")
    said = ("predicted to gain", "mean of all", "largest")
    yield from table((*head, *last, *said), rows)


def ratio_table() -> Lines:
    """The case of each cluster whose placements differ most, by its single all-reduces."""
    rows = []
    for data in measured():
        case, entries = _widest(data), data["entries"]
        singles = sorted(_singles(case, entries))
        (best, good), (worst, bad) = singles[0], singles[-1]
        summary = data["summary"]
        ratio = f"{summary['placement_ratio']:.1f}x"
        said = f"{summary['placement_ratio_predicted']:.1f}x"
        name = str(Case(tuple(case["axes"]), tuple(case["reduced"])))
        cells = (matrix_text(bad), time_text(worst), matrix_text(good), time_text(best))
        rows.append((label(data), name, *cells, ratio, said))
    head = ("cluster", "case", "worst", "time", "best", "time", "worst / best", "predicted")
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
        yield seconds_of(one), matrix


def inside_table(members: int = 4) -> Lines:
    """The programs of groups of so many ranks inside one node, on every cluster."""
    rows = []
    for data in with_model():
        for entry, placement in zip(data["entries"], _first_placements(data), strict=True):
            if math.prod(entry["factors"]) == entry["factors"][-1] == members:
                rounds = sorted(map(statistics.median, entry["times_s"]))
                spread = f"{time_text(rounds[0])} to {time_text(rounds[-1])}"
                times = (time_text(entry["predicted_s"]), time_text(seconds_of(entry)), spread)
                rows.append((label(data), placement, entry["program"], *times))
    head = (
        "cluster",
        "placement, such as",
        "program",
        "predicted",
        "measured",
        "medians of rounds",
    )
    yield from table(head, rows)


def _first_placements(data: Data) -> list[str]:
    """The first placement that has each entry, with the axes and those that are reduced."""
    found: dict[int, str] = {}
    for case in data["cases"]:
        name = Case(tuple(case["axes"]), tuple(case["reduced"]))
        for matrix, own in case["placements"]:
            for number in own:
                found.setdefault(number, f"{matrix_text(matrix)} of {name}")
    return [found[number] for number in range(len(data["entries"]))]


def large_table() -> Lines:
    """The single all-reduce and one program of each shape of group with a larger payload."""
    rows = []
    for data in with_model():
        for numbers in data["large_rows"]:
            single, chosen = (data["large"][number] for number in numbers)
            times = [seconds_of(one) for one in (single, chosen)]
            members = " x ".join(map(str, chosen["factors"]))
            groups = f"{chosen['groups']} of {members}"
            said = single["predicted_s"] / chosen["predicted_s"]
            speedup = (f"{times[0] / times[1]:.2f}x", f"{said:.2f}x")
            cells = (chosen["program"], *map(time_text, times), *speedup)
            rows.append((label(data), data["large_payload_bytes"] // 2**20, groups, *cells))
    head = ("cluster", "MiB", "groups", "program", "single", "program", "speedup", "predicted")
    yield from table(head, rows)

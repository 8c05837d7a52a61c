"""The single values that the report names, from the JSON files alone."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.placement_448x.model.distance import REASONS, distance, total
from experiments.placement_448x.model.solving import LIBRARY, RING, TREE
from experiments.placement_448x.model.summary import (
    Outcome,
    Results,
    by_name,
    crossing,
    gains,
    load,
    ratios,
)
from experiments.placement_448x.report import measured, speedups
from experiments.placement_448x.report.text import percent
from experiments.placement_448x.store import HERE
from experiments.testbed.written.results import read
from experiments.testbed.written.timings import measured_on

CHOICES = {"ring": (RING,), "tree": (TREE,), "library": (LIBRARY,), "both": (RING, TREE)}
EFFECTIVE = ("paper-gcp-a100-4", "paper-gcp-a100-2", "paper-gcp-v100-4", "paper-gcp-v100-2")


def all_values() -> dict[str, str]:
    """Every value of the report."""
    effective = [by_name(name) for name in EFFECTIVE]
    return {
        **header_values(effective[0]),
        **ratio_values(),
        **exact_values(),
        **gain_values(effective),
        **distance_values(effective, load()),
        **measured_values(),
        **other_values(effective),
    }


def other_values(paper: Sequence[Results]) -> dict[str, str]:
    """Largest gains outside the headline, and where choosing one after the other loses."""
    small = [one for r in paper for one in r.outcomes(min(r.payloads), RING)]
    together = read(HERE / "beyond.json")["together"]
    ways = {way: f"single_request_{way}" for way in ("plain", "pipelined")}
    lossy = {
        way: sum(one[name]["after_another"]["by_1_percent"] > 0 for one in together)
        for way, name in ways.items()
    }
    return {
        "max_small": f"{gains(small).largest:.2f}x",
        "max_mi300x": f"{gains(by_name('mi300x-4').outcomes()).largest:.2f}x",
        "systems": str(len(together)),
        **{f"lossy_{way}": str(count) for way, count in lossy.items()},
    }


def measured_values() -> dict[str, str]:
    """What the test clusters say on each claim."""
    claims = ("placement", "share", "mean", "largest", "accuracy")
    every = [data["summary"] for data in measured.with_model()]
    first, third = measured.with_model()[0], min(every, key=lambda s: s["accuracy"]["top_1"])
    across = [summary["error_across_median"] for summary in every]
    placement = [summary["accuracy_one_placement"]["regret_max"] for summary in every]
    return {
        **{f"measured_{claim}": measured.claim(claim) for claim in claims},
        "machine_measured": first["header"]["machine"].split(",")[0],
        "first_each": _by_cluster("top_1"),
        "spread_each": _by_cluster("within_spread"),
        "first_third": percent(third["accuracy"]["top_1"]),
        "spread_third": percent(third["accuracy"]["within_spread"]),
        "regret_third": f"{100 * third['accuracy']['regret_mean']:.1f} %",
        "worst_third": percent(third["accuracy"]["regret_max"]),
        "placement_most": percent(max(placement)),
        "across_least": percent(min(across)),
        "across_most": percent(max(across)),
        "short_most": f"{max(summary['short_most'] for summary in every):.1f}",
        "checked": f"{first['verified_with_bytes']:,}",
    }


def _by_cluster(key: str) -> str:
    """A share of the headline cases on each test cluster with a model."""
    found = ((measured.label(one).split(",")[0], one["summary"]) for one in measured.with_model())
    return ", ".join(f"{percent(one['accuracy'][key])} on {name}" for name, one in found)


def exact_values() -> dict[str, str]:
    """The bandwidths behind the ratio of 448.5."""
    data = read(HERE / "exact.json")
    ways = ("effective", "nominal")
    effective, nominal = (data[name] for name in ways)
    return {
        "limit_ratio": f"{data['bandwidth_ratio_in_the_limit']:.2f}",
        "ratio_needed": f"{effective['bandwidth_ratio_for_paper']:.2f}",
        "exact_effective": f"{effective['ratio']:.1f}",
        "exact_nominal": f"{nominal['ratio']:.1f}",
        "limit_effective": f"{effective['bandwidth_limit']:.0f}",
        "limit_nominal": f"{nominal['bandwidth_limit']:.0f}",
        **{f"inside_{k}": f"{data[k]['inside_bytes_per_s'] / 1e9:g}" for k in ways},
        **{f"card_now_{k}": f"{data[k]['card_bytes_per_s'] / 1e9:g}" for k in ways},
        "sharing": f"{data['paper'] / data['bandwidth_ratio_in_the_limit']:.0f}",
        "card_effective": f"{effective['card_for_paper_bytes_per_s'] / 1e9:.2f}",
        "card_nominal": f"{nominal['card_for_paper_bytes_per_s'] / 1e9:.2f}",
    }


def gain_values(paper: Sequence[Results]) -> dict[str, str]:
    """Gains over the paper's systems, effective: together, and the A100 system by nodes."""
    found: dict[str, str] = {}
    groups: dict[str, Sequence[Results]] = {
        "": paper,
        "_two": [by_name("paper-gcp-a100-2")],
        "_four": [by_name("paper-gcp-a100-4")],
    }
    for which, systems in groups.items():
        for name, algorithms in CHOICES.items():
            found |= _gains(f"{name}{which}", speedups.pooled(systems, algorithms))
    return found


def _gains(name: str, every: Sequence[Outcome]) -> dict[str, str]:
    all_, cross = gains(every), gains(crossing(every))
    once = gains(speedups.different_groups(every))
    pipelined = gains(every, lambda one: one.pipelined_speedup)
    return {
        f"share_{name}": percent(all_.share),
        f"cross_{name}": percent(cross.share),
        f"mean_{name}": f"{all_.mean:.2f}x",
        f"requests_{name}": str(all_.requests),
        f"requests_once_{name}": str(once.requests),
        f"share_once_{name}": percent(once.share),
        f"mean_once_{name}": f"{once.mean:.2f}x",
        f"up_{name}": f"{all_.mean_of_gaining:.2f}x",
        f"max_{name}": f"{all_.largest:.2f}x",
        f"pipe_{name}": f"{pipelined.largest:.2f}x",
    }


def distance_values(paper: Sequence[Results], every: Sequence[Results]) -> dict[str, str]:
    """How many requests are within 10 % of the bound."""
    found = {"reasons": "\n".join(f"* *{name}*: {text}." for name, text in REASONS.items())}
    switches = [r for r in every if _plain_switches(r)]
    for name, group in (("paper", paper), ("all", every), ("switch", switches)):
        part = total(map(distance, group))
        found[f"near_{name}"] = f"{100 * part.pipelined / part.requests:.1f} %"
        found[f"plain_{name}"] = f"{100 * part.plain / part.requests:.1f} %"
    return found


def _plain_switches(results: Results) -> bool:
    system = results.data["system"]
    return set(system["kinds"].values()) == {"switch"} and "in-switch" not in system["algorithms"]


def header_values(results: Results) -> dict[str, str]:
    """Versions and seed of the modelled results, and where they were timed."""
    data = results.data["header"]
    versions = ", ".join(f"{name} {number}" for name, number in data["versions"].items())
    return {"versions": versions, "seed": str(data["seed"]), "timed_on": measured_on(HERE)}


def ratio_values() -> dict[str, str]:
    """The largest ratios on the A100 system of four nodes."""
    names = {"effective": "paper-gcp-a100-4", "nominal": "gcp-a2-highgpu-16g-4"}
    every = {key: ratios(by_name(name).outcomes()) for key, name in names.items()}
    ways = {
        f"{prefix}_{way}": ratios(by_name(names[key]).outcomes(0, way))[0].ratio
        for prefix, key in (("ratio", "effective"), ("nominal", "nominal"))
        for way in (RING, LIBRARY)
    }
    plateau = [one for one in every["effective"] if one.ratio > every["effective"][0].ratio / 1.01]
    return {
        **{f"ratio_{key}": f"{found[0].ratio:.1f}x" for key, found in every.items()},
        **{key: f"{ratio:.1f}x" for key, ratio in ways.items()},
        "plateau": str(len(plateau)),
        "plateau_of": str(len(every["effective"])),
    }

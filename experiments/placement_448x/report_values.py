"""The single values that the report names, from the JSON files alone."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.placement_448x import report_measured as measured
from experiments.placement_448x import report_speedups as speedups
from experiments.placement_448x.distance import REASONS, distance, total
from experiments.placement_448x.report_text import percent
from experiments.placement_448x.store import HERE, read
from experiments.placement_448x.summary import Results, by_name, crossing, gains, load, ratios

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
        **published_values(),
    }


def measured_values() -> dict[str, str]:
    """What the test clusters say on each claim."""
    claims = ("placement", "share", "mean", "largest", "accuracy")
    first = measured.with_model()[0]
    return {
        **{f"measured_{claim}": measured.claim(claim) for claim in claims},
        "machine_measured": first["header"]["machine"].split(",")[0],
        "checked": f"{first['verified_with_bytes']:,}",
    }


def published_values() -> dict[str, str]:
    """The least and the largest median error on tables, and on sizes, that were not seen."""
    found: dict[str, list[float]] = {"unseen": [], "sizes": []}
    for one in read(HERE / "published.json")["experiments"]:
        kind = "sizes" if one["note"] == "other sizes" else "unseen"
        found[kind].append(one["fits"][one["chosen"]]["median"])
    ends = (("least", min), ("most", max))
    return {f"{kind}_{end}": percent(pick(v)) for kind, v in found.items() for end, pick in ends}


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
    """Gains over the paper's systems, effective."""
    found: dict[str, str] = {}
    for name, algorithms in (("ring", ("ring",)), ("tree", ("tree",)), ("both", ("ring", "tree"))):
        every = speedups.pooled(paper, algorithms)
        all_, cross = gains(every), gains(crossing(every))
        pipelined = gains(every, lambda one: one.pipelined_speedup)
        found |= {
            f"share_{name}": percent(all_.share),
            f"cross_{name}": percent(cross.share),
            f"mean_{name}": f"{all_.mean:.2f}x",
            f"up_{name}": f"{all_.mean_of_gaining:.2f}x",
            f"max_{name}": f"{all_.largest:.2f}x",
            f"pipe_{name}": f"{pipelined.largest:.2f}x",
        }
    return found


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
    """Versions, machine, seed, commit and date of the modelled results."""
    data = results.data["header"]
    versions = ", ".join(f"{name} {number}" for name, number in data["versions"].items())
    about = {name: str(data[name]) for name in ("machine", "seed", "commit", "date")}
    return {"versions": versions, **about}


def ratio_values() -> dict[str, str]:
    """The largest ratios on the A100 system of four nodes."""
    names = {"effective": "paper-gcp-a100-4", "nominal": "gcp-a2-highgpu-16g-4"}
    every = {key: ratios(by_name(name).outcomes()) for key, name in names.items()}
    plateau = [one for one in every["effective"] if one.ratio > every["effective"][0].ratio / 1.01]
    return {
        **{f"ratio_{key}": f"{found[0].ratio:.1f}x" for key, found in every.items()},
        "plateau": str(len(plateau)),
        "plateau_of": str(len(every["effective"])),
    }

"""Writes REPORT.md and CASES.md from the committed JSON files; computes nothing else.

python experiments/placement_448x/report.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from experiments.placement_448x import report_measured as measured
from experiments.placement_448x import report_modelled as modelled
from experiments.placement_448x import report_other as other
from experiments.placement_448x import report_speedups as speedups
from experiments.placement_448x.distance import REASONS, distance, total
from experiments.placement_448x.report_text import percent
from experiments.placement_448x.store import HERE, read
from experiments.placement_448x.summary import Results, by_name, crossing, gains, load, ratios

EFFECTIVE = ("paper-gcp-a100-4", "paper-gcp-a100-2", "paper-gcp-v100-4", "paper-gcp-v100-2")
Lines = Iterator[str]
OUT = HERE
"""Where the pages go."""


def template(text: str, tables: dict[str, Iterable[str]], values: dict[str, str]) -> str:
    """The text with ``{{name}}`` replaced by tables, and ``{name}`` by values."""
    for name, lines in tables.items():
        text = text.replace("{{" + name + "}}", "\n".join(lines))
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    if "{" in text:
        raise ValueError(f"nothing fills {text[text.index('{') :][:40]!r}")
    return text


def measured_values() -> dict[str, str]:
    """What the test clusters say on each claim."""
    claims = ("placement", "share", "mean", "largest", "accuracy")
    return {f"measured_{claim}": measured.claim(claim) for claim in claims}


def exact_values() -> dict[str, str]:
    """The bandwidths behind the ratio of 448.5."""
    data = read(HERE / "exact.json")
    effective, nominal = data["effective"], data["nominal"]
    return {
        "limit_ratio": f"{data['bandwidth_ratio_in_the_limit']:.2f}",
        "ratio_needed": f"{effective['bandwidth_ratio_for_paper']:.2f}",
        "exact_effective": f"{effective['ratio']:.1f}",
        "exact_nominal": f"{nominal['ratio']:.1f}",
        "limit_effective": f"{effective['bandwidth_limit']:.0f}",
        "limit_nominal": f"{nominal['bandwidth_limit']:.0f}",
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
    tops = {key: ratios(by_name(name).outcomes())[0] for key, name in names.items()}
    return {f"ratio_{key}": f"{top.ratio:.1f}x" for key, top in tops.items()}


def tables() -> dict[str, Iterable[str]]:
    """Every table of the report."""
    paper, effective = load("paper"), [by_name(name) for name in EFFECTIVE]
    presets, deep = load("preset"), load("deep")
    published, beyond = read(HERE / "published.json")["experiments"], read(HERE / "beyond.json")
    return {
        "ratios": modelled.ratio_table(paper),
        "other_ratios": modelled.ratio_table([*presets, *deep]),
        "pooled": speedups.pooled_table(effective),
        "gains": speedups.gain_table([*paper, *presets]),
        "deep_gains": speedups.gain_table(deep),
        "kinds_ring": speedups.kind_table(effective, "ring"),
        "kinds_tree": speedups.kind_table(effective, "tree"),
        "payloads": speedups.payload_table(effective, "automatic"),
        "shapes": speedups.shape_table(effective),
        "shapes_presets": speedups.shape_table(presets, least=5),
        "shapes_deep": speedups.shape_table(deep, least=20),
        "effort": modelled.effort_table(load()),
        "distances": modelled.distance_table(load()),
        "accuracy": measured.accuracy_table(),
        "sizes": measured.size_table(),
        "speedups": measured.speedup_table(),
        "measured_ratios": measured.ratio_table(),
        "large": measured.large_table(),
        "published": other.published_table(published),
        "choices": other.choice_table(published),
        "sources": other.source_table(read(HERE / "published_tables.json")["tables"]),
        "longer": other.longer_table(beyond),
        "axes": other.axes_table(beyond),
        "iterations": other.iteration_table(beyond),
        "together": other.together_table(beyond),
    }


def cases() -> Lines:
    """Every case of the paper's systems."""
    yield "# Every case of the paper's two systems"
    yield ""
    yield "Written by `report.py`. Effective bandwidths, the paper's payload, automatic algorithm."
    yield "A case is the axes, those that are reduced in parentheses. *worst / best* compares"
    yield "placements by their single all-reduce; *largest speedup* is a program's over it on one"
    yield "placement; *to bound* is the furthest pipelined program's time over the physical bound;"
    yield "*programs* counts those of up to five steps; *search* is the solver's CPU time for all"
    yield "different scenes of the case."
    for name in EFFECTIVE:
        results = by_name(name)
        yield f"\n## {results.label}\n"
        yield from modelled.case_table(results)


def main() -> None:
    """Write both pages."""
    effective = [by_name(name) for name in EFFECTIVE]
    values = {
        **header_values(effective[0]),
        **ratio_values(),
        **exact_values(),
        **gain_values(effective),
        **distance_values(effective, load()),
        **measured_values(),
    }
    text = (HERE / "REPORT.in.md").read_text(encoding="utf-8")
    (OUT / "REPORT.md").write_text(template(text, tables(), values), encoding="utf-8")
    (OUT / "CASES.md").write_text("\n".join(cases()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

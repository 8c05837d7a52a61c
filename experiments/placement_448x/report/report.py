"""Writes REPORT.md and CASES.md from the committed JSON files; computes nothing else.

python -m experiments.placement_448x.report.report
"""

from __future__ import annotations

from collections.abc import Iterable

from experiments.placement_448x.model.summary import by_name, load
from experiments.placement_448x.report import measured, modelled, other, speedups
from experiments.placement_448x.report.text import Lines
from experiments.placement_448x.report.values import EFFECTIVE, all_values
from experiments.placement_448x.store import HERE
from experiments.testbed.written.results import read

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


def tables() -> dict[str, Iterable[str]]:
    """Every table of the report."""
    paper, effective = load("paper"), [by_name(name) for name in EFFECTIVE]
    presets, deep = load("preset"), load("deep")
    beyond = read(HERE / "beyond.json")
    return {
        "ratios": modelled.ratio_table(paper),
        "other_ratios": modelled.ratio_table([*presets, *deep]),
        "pooled": speedups.pooled_table(effective),
        "counting": speedups.counting_table(effective),
        "rule": speedups.rule_table(load()),
        "gains": speedups.gain_table([*paper, *presets]),
        "deep_gains": speedups.gain_table(deep),
        "kinds_ring": speedups.kind_table(effective, "ring"),
        "kinds_library": speedups.kind_table(effective, "library"),
        "payloads_ring": speedups.payload_table(effective, "ring"),
        "payloads": speedups.payload_table(effective, "library"),
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
        "inside": measured.inside_table(),
        "longer": other.longer_table(beyond),
        "axes": other.axes_table(beyond),
        "iterations": other.iteration_table(beyond),
        "together": other.together_table(beyond),
    }


CASES = """\
# Every case of the paper's two systems

Written by `report.py`. Effective bandwidths, the paper's payload, the library's choice. A case is
the axes, those that are reduced in parentheses. *worst / best* compares placements by their single
all-reduce; *best program* is the fastest on any placement, *largest speedup* the most that a
program gains on one; *to bound* and *pipelined* are the times of the best program, and of the best
pipelined one, over the physical bound where they are furthest from it; *programs* counts those of
up to five steps; *search* is the solver's CPU time for all different scenes of the case. The cases
of other systems are in their files in `computed/`."""


def cases() -> Lines:
    """Every case of the paper's systems."""
    yield CASES
    for name in EFFECTIVE:
        results = by_name(name)
        yield f"\n## {results.label}\n"
        yield from modelled.case_table(results)


def main() -> None:
    """Write both pages."""
    text = (HERE / "REPORT.in.md").read_text(encoding="utf-8")
    (OUT / "REPORT.md").write_text(template(text, tables(), all_values()), encoding="utf-8")
    (OUT / "CASES.md").write_text("\n".join(cases()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Writes the page of the study from ``results.json`` and ``README.in.md``.

python -m experiments.gains.page
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from experiments.gains import summary
from experiments.gains.store import GAIN, HERE, entries, read
from experiments.testbed.script import ended

PAGE, TEMPLATE = HERE / "README.md", HERE / "README.in.md"


def page() -> str:
    """The page."""
    data = read()
    groups, layouts, runs = entries(data, "groups"), entries(data, "layouts"), data["training"]
    found, placed = summary.gaining(groups), summary.gaining(layouts, "placement_gain")
    return TEMPLATE.read_text(encoding="utf-8").format(
        clusters=len({one["spec"] for one in groups}),
        presets=len({one["preset"] for one in groups}),
        asked=len(groups),
        gaining=len(found),
        gaining_measurable=summary.measurable(found),
        chosen=sum(summary.over_cheapest(one) <= GAIN for one in found),
        statuses=summary.statuses(groups),
        plain=summary.by_payload(groups, lambda one: not summary.leafy(one)),
        leaves=summary.by_payload(groups, summary.leafy),
        by_preset=summary.by_preset(groups),
        most=summary.MOST,
        largest_groups=summary.largest_groups(groups),
        layouts=len(layouts),
        default_best=sum(map(summary.optimal_default, layouts)),
        placed=len(placed),
        placed_measurable=summary.measurable(summary.gaining(layouts)),
        joint=len(summary.gaining(layouts)),
        layout_statuses=summary.statuses(layouts),
        by_layout=summary.by_layout(layouts),
        largest_layouts=summary.largest_layouts(layouts),
        runs=len(runs),
        runs_best=sum(map(summary.optimal_default, runs)),
        runs_gaining=len(summary.gaining(runs)),
        runs_statuses=summary.statuses(runs),
        training=summary.training(runs),
        commands=summary.commands(runs),
    )


def main(arguments: Sequence[str]) -> None:
    """Write the page."""
    del arguments
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

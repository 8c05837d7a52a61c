"""Writes the page of the study from ``results.json`` and ``README.in.md``.

python -m experiments.gains.page
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from experiments.gains import summary
from experiments.gains.store import HERE, entries, read
from experiments.gains.summary import Entry
from experiments.testbed.script import ended
from experiments.testbed.written.marked import filled
from p2smt.errors import InputError

PAGE, TEMPLATE = HERE / "README.md", HERE / "README.in.md"
STUDIES = HERE.parents[1] / "docs" / "studies.md"


def page() -> str:
    """The page."""
    data = read()
    groups, layouts, runs = entries(data, "groups"), entries(data, "layouts"), data["training"]
    found, placed = summary.gaining(groups), summary.gaining(layouts, "placement_gain")
    chosen = summary.by_choice(found)
    return TEMPLATE.read_text(encoding="utf-8").format(
        clusters=len({one["spec"] for one in groups}),
        presets=len({one["preset"] for one in groups}),
        asked=len(groups),
        gaining=len(found),
        gaining_measurable=summary.measurable(found),
        chosen=len(chosen),
        chosen_measurable=summary.measurable(chosen),
        statuses=summary.statuses(groups),
        plain=summary.by_payload(groups, lambda one: not summary.leafy(one)),
        leaves=summary.by_payload(groups, summary.leafy),
        by_preset=summary.by_preset(groups),
        most=summary.MOST,
        largest_groups=summary.largest_groups(groups),
        layouts=len(layouts),
        default_best=sum(map(summary.optimal_default, layouts)),
        placed=len(placed),
        placed_measurable=summary.measurable(placed, "placement_measurable"),
        joint_measurable=summary.measurable(summary.gaining(layouts)),
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


def paragraph() -> str:
    """What the page of all studies says of the results."""
    data = read()
    groups, layouts, runs = entries(data, "groups"), entries(data, "layouts"), data["training"]
    rows = [
        _counted("a program against the library's single collective", groups, ""),
        _counted("a placement against the default layout", layouts, "placement_"),
        _counted("both, for ten published training runs", runs, ""),
    ]
    head = ["question, over every preset", "asked", "nothing to gain", "gain over 5 %"]
    last = ["measurable", "of these by naming an algorithm"]
    return summary.table([*head, *last], rows) + "\n"


def _counted(what: str, asked: Sequence[Entry], prefix: str) -> list[str]:
    """A row: how many gain nothing, how many enough, and of these how many measurably.

    Of programs also: how many of those gains naming an algorithm gives as well.
    """
    found = summary.gaining(asked, f"{prefix}gain")
    sure = [one for one in found if one[f"{prefix}measurable"] is True]
    none = sum(one[f"{prefix}gain"] == 0 for one in asked)
    named = str(len(summary.by_choice(sure))) if "cheapest_s" in asked[0] else ""
    return [what, *map(str, (len(asked), none, len(found), len(sure))), named]


def studies(text: str) -> str:
    """The page of all studies with the paragraph of these results."""
    return filled(text, "gains", paragraph())


def main(arguments: Sequence[str]) -> None:
    """Write the page, and the table in that of all studies.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    PAGE.write_text(page(), encoding="utf-8")
    STUDIES.write_text(studies(STUDIES.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))

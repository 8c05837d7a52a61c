"""How gains are counted: which a library's own algorithm gives, and what would be measured."""

from __future__ import annotations

import pytest

from experiments.gains import groups, page, summary
from experiments.gains.asking import Programs
from experiments.gains.clusters import clusters
from experiments.gains.summary import Entry


def entry(gain: float, cheapest: float, measurable: bool | None) -> Entry:
    """A program that takes 1 s, and the single collective by the cheapest way."""
    return {"gain": gain, "best_s": 1.0, "cheapest_s": cheapest, "measurable": measurable}


ENTRIES = [
    entry(0.0, 1.0, False),
    entry(0.5, 1.5, True),
    entry(0.5, 1.04, True),
    entry(0.5, 0.9, None),
    entry(0.2, 1.2, False),
]


def test_gains_that_naming_an_algorithm_gives() -> None:
    assert summary.by_choice(summary.gaining(ENTRIES)) == ENTRIES[2:4]


def test_as_good_is_within_five_per_cent() -> None:
    assert summary.AS_GOOD == 0.05
    assert summary.as_good(1.05, 1.0)
    assert not summary.as_good(1.06, 1.0)


def test_what_nobody_published_is_counted_apart() -> None:
    assert summary.measurable(ENTRIES[1:]) == (
        "2 measurable, 1 too small to measure, 1 where nobody published a measurement"
    )


def test_a_row_of_the_readme() -> None:
    assert page._counted("programs", ENTRIES, "") == ["programs", "5", "1", "4", "2", "1"]
    placed = [{"placement_gain": 0.5, "placement_measurable": None}]
    assert page._counted("placements", placed, "placement_") == [
        *("placements", "1", "0", "1", "0", "")
    ]


@pytest.mark.parametrize(("preset", "measured"), [("aws-p6-b200", False), ("dgx-a100", True)])
def test_rows_say_what_p2smt_says(preset: str, measured: bool) -> None:
    """The network of P6 is in no published table; A100 nodes and InfiniBand are, not together."""
    cluster = next(iter(clusters(preset)))
    programs = Programs()
    rows = [
        dict(zip(groups.COLUMNS, groups.row(cluster, group, ask, programs), strict=True))
        for group, ask in list(groups.asks(cluster))[:7]
    ]
    assert {row["group"] for row in rows} == {groups.WHOLE}
    for row in rows:
        assert (row["measurable"] is not None) is measured
        assert row["cheapest_s"] <= row["single_s"] * (1 + 1e-5)

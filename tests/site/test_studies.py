"""docs/studies.md: its tables and sentences are those of the committed results."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from experiments.placement_448x.report.readme import claims_table
from experiments.placement_448x.report.values import all_values
from tests.interpreter import python

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")


def printed_by(module: str) -> str:
    """What a script of the studies prints, started as the page says."""
    return python("-m", module)


def test_the_benchmark_table_is_that_of_the_committed_results() -> None:
    assert printed_by("experiments.benchmarks.table").strip() in PAGE


def test_the_test_cluster_tables_are_those_of_the_committed_results() -> None:
    printed = printed_by("experiments.programs_on_testbed.table")
    overview, *details = printed.strip().split("\n\n", 1)
    assert overview in PAGE
    study = (ROOT / "experiments/programs_on_testbed/README.md").read_text(encoding="utf-8")
    assert all(text.strip() in study for text in details)


def test_the_claims_are_those_of_the_committed_results() -> None:
    assert "\n".join(claims_table()) in PAGE
    exact = json.loads((ROOT / "experiments/placement_448x/exact.json").read_text(encoding="utf-8"))
    ratios = [
        exact[name]["inside_bytes_per_s"] / exact[name]["card_bytes_per_s"]
        for name in ("effective", "nominal")
    ]
    limit = exact["bandwidth_ratio_in_the_limit"]
    text = " ".join(PAGE.split())
    assert "is {:g}, the groups that share".format(exact["paper"] / limit) in text
    assert "{:g} with effective and {:g} with nominal".format(*ratios) in text
    assert f"448.5x needs {limit:.0f}" in text


@pytest.mark.exhaustive
def test_claims_count_groups_once_first_and_predict_beside_what_is_measured() -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in claims_table()][2:]
    for claim in ("requests that gain from a program", "mean speedup"):
        ways = [row[0] for row in rows if row[0].startswith(claim)]
        assert ways == [f"{claim} (each different group once)", f"{claim} (all requests)"]
    assert all(cell for row in rows for cell in row[2:])
    predicted = [row[4] for row in rows[:-1]]
    assert all(re.match(r"\d", cell) for cell in predicted)


def test_the_page_says_what_a_library_s_choice_leaves_to_gain() -> None:
    value, text = all_values(), " ".join(PAGE.split())
    assert f"gains {value['max_library_two']} at most on two A100 nodes" in text
    four = f"{value['share_library_four']} of the requests on four gain"
    assert f"{four}, {value['mean_library_four']} in the mean" in text


def test_every_study_is_listed() -> None:
    listed = (ROOT / "experiments" / "README.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in ROOT.glob("experiments/*/README.md")}
    assert {name for name in folders if f"| [{name}]({name})" not in listed} == set()

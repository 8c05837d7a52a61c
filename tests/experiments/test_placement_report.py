"""The placement study's report: what its sentences say must follow from the committed results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.placement_448x.measure.accuracy import MORE_THAN, different, regret
from experiments.placement_448x.measure.summary import case_pairs, leaves_nodes
from experiments.placement_448x.model.iterations import choose
from experiments.placement_448x.model.solving import LIBRARY, RING
from experiments.placement_448x.model.summary import by_name, gains, load, ratios
from experiments.placement_448x.model.systems import SYSTEMS
from experiments.placement_448x.report import draw_figures, report, speedups
from experiments.placement_448x.report.measured import label, with_model
from experiments.placement_448x.report.values import EFFECTIVE
from experiments.placement_448x.store import HERE
from experiments.testbed.calibration import cluster_topology
from experiments.testbed.written.results import read
from p2smt.cluster.file import parse_topology


@pytest.fixture(scope="module")
def beyond() -> dict[str, Any]:
    return read(HERE / "beyond.json")


@pytest.mark.exhaustive
def test_the_pages_are_those_of_the_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pages = {name: (HERE / name).read_text() for name in ("REPORT.md", "CASES.md")}
    monkeypatch.setattr(report, "OUT", tmp_path)
    report.main()
    assert {name: (tmp_path / name).read_text() for name in pages} == pages


def test_a_template_must_be_filled() -> None:
    assert report.template("{a} {{b}}", {"b": ["1", "2"]}, {"a": "x"}) == "x 1\n2"
    with pytest.raises(ValueError, match="nothing fills"):
        report.template("{c}", {}, {})


@pytest.mark.exhaustive
def test_every_figure_can_be_drawn(tmp_path: Path) -> None:
    draw_figures.main([str(tmp_path)])
    drawn = {path.stem for path in tmp_path.iterdir()}
    assert drawn == {path.stem for path in (HERE / "figures").iterdir()}
    text = (HERE / "REPORT.in.md").read_text(encoding="utf-8")
    assert all(f"figures/{name}.svg" in text for name in drawn)


def test_inside_one_node_or_one_in_each_nothing_gains_over_a_ring() -> None:
    for name in EFFECTIVE:
        outcomes = by_name(name).outcomes(0, "ring")
        assert not any(one.gains for one in outcomes if one.kind != "mixed")
        assert gains(outcomes, lambda one: one.pipelined_speedup).largest < 2


def test_the_library_s_choice_leaves_less_to_gain_than_rings() -> None:
    for name in EFFECTIVE:
        results = by_name(name)
        rings, library = (gains(results.outcomes(0, way)) for way in (RING, LIBRARY))
        assert library.share < rings.share
        assert library.largest < rings.largest


def test_each_different_group_comes_first() -> None:
    head, _, *rows = speedups.counting_table([by_name(name) for name in EFFECTIVE])
    assert head.startswith("| algorithms | counted")
    counted = [row.strip("| ").split(" | ")[1] for row in rows]
    assert counted[0] == "different groups"
    assert counted[1] == "all requests"


@pytest.mark.exhaustive
def test_the_rule_says_rightly_which_requests_gain() -> None:
    rows = [row.strip("| ").split(" | ") for row in speedups.rule_table(load())][2:]
    assert len(rows) >= 8
    for _, _, requests, gaining, said, right in rows:
        assert right == requests
        assert gaining == said


def test_longer_programs_gain_pipelined_only(beyond: dict[str, Any]) -> None:
    longer = beyond["longer"]
    assert not any(one["faster"] for one in longer if not one["pipelined"])
    assert any(one["faster"] for one in longer if one["pipelined"])


def test_for_one_request_the_order_of_choice_rarely_matters(beyond: dict[str, Any]) -> None:
    lossless = [
        one["single_request_plain"]["after_another"]["by_1_percent"] == 0
        for one in beyond["together"]
    ]
    assert sum(lossless) >= len(SYSTEMS) - 2


def test_of_tied_placements_the_luckiest_and_the_worst() -> None:
    found = choose([(2.0, 1.5), (2.0, 1.2), (3.0, 1.0)])
    assert (found.best_single_s, found.worst_single_s) == (2.0, 3.0)
    assert (found.after_another_s, found.unlucky_s, found.together_s) == (1.2, 1.5, 1.0)


def test_many_cases_share_the_largest_ratio() -> None:
    found = ratios(by_name("paper-gcp-a100-4").outcomes())
    plateau = [one for one in found if one.ratio > found[0].ratio / 1.01]
    assert len(plateau) > 10
    assert all(one.worst.factors[0] in (2, 4) for one in plateau)


def test_the_first_choice_is_the_fastest_or_within_its_spread() -> None:
    """On 2x8 two programs inside a node are a few per cent apart, which is within their spread."""
    found = {label(data): data["summary"]["accuracy"] for data in with_model()}
    assert found["2x8, 50 Mbit/s"]["top_1"] > 0.6
    assert found["2x8, 50 Mbit/s"]["within_spread"] == 1
    assert found["4x4, 50 Mbit/s"]["top_1"] == 1
    assert found["2x2x4, 50 Mbit/s"]["within_spread"] >= 0.6


def test_regrets_of_more_than_5_percent_are_of_cases_with_a_placement_inside_nodes() -> None:
    for data in with_model():
        entries = data["entries"]
        for case in data["cases"]:
            pairs = different(case_pairs(case, entries))
            if len(pairs) > MORE_THAN and regret(pairs) > 0.05:
                assert not all(leaves_nodes(entries[own[0]]) for _, own in case["placements"])
        assert data["summary"]["accuracy_one_placement"]["regret_max"] < 0.15


def test_across_nodes_the_first_choice_is_nearly_as_fast_as_the_fastest() -> None:
    for data in with_model():
        assert data["summary"]["accuracy_one_placement"]["regret_mean"] < 0.05
        assert data["summary"]["accuracy"]["top_5"] == 1
        assert data["summary"]["placement_ratio_predicted"] > data["summary"]["placement_ratio"]


def test_the_fit_finds_the_rates_that_the_uplinks_are_shaped_to() -> None:
    """Gloo's own messages explain every collective; the sentence of the report has these ends."""
    for data in with_model():
        fitted = parse_topology("\n".join(data["topology"]), "a fit")
        nominal = cluster_topology(data["cluster"])
        for level, shaped in zip(fitted.levels[:-1], nominal.levels[:-1], strict=True):
            rate = level.link.bandwidth_bytes_per_s / shaped.link.bandwidth_bytes_per_s
            for name, part in level.link.efficiency:
                assert name == "any" or 0.85 < rate * part < 1.12

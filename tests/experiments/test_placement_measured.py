"""The measured placement study: its figures on data made by hand, what it times, a tiny run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from experiments.placement_448x.measure import predict, study
from experiments.placement_448x.measure.accuracy import (
    Pair,
    Place,
    accuracy,
    different,
    first_choices,
    place_of_best,
    regret,
    within_spread,
)
from experiments.placement_448x.measure.pairs import (
    CLOSE,
    OFTEN,
    SHORT_S,
    Pairs,
    is_single,
    key,
    pairs_of,
    predicted_s,
)
from experiments.placement_448x.measure.run import large_pairs
from experiments.placement_448x.measure.summary import (
    case_pairs,
    distinct,
    placement_ratio,
    speedups,
    summary,
)
from experiments.placement_448x.report import measured
from experiments.placement_448x.store import HERE
from experiments.testbed.calibration import restored, rows_of, samples_of
from experiments.testbed.model import topology
from experiments.testbed.network import why_not
from experiments.testbed.spec import regular
from p2smt.cluster.topology import Topology
from p2smt.runtime.programs.regions import count, moves_of

COMMITTED = sorted(HERE.glob("measured_*.json"))
PAYLOAD = 2**20


def pair(
    predicted: float, seconds: float, placement: int = 0, single: bool = False, entry: int = -1
) -> Pair:
    """Pairs are of one entry if a test says so, or if all else is equal."""
    number = hash((predicted, seconds, placement)) if entry < 0 else entry
    return Pair(placement, number, predicted, seconds, single)


def case_of(*measured_s: float) -> list[Pair]:
    """Pairs predicted to take 1, 2, 3 .. seconds."""
    return [pair(n + 1.0, seconds) for n, seconds in enumerate(measured_s)]


def small() -> Topology:
    return topology(regular(2, 50e6 / 8), 2)


@pytest.fixture(scope="module")
def found() -> Pairs:
    return pairs_of(small(), PAYLOAD)


def test_the_place_counts_the_pairs_predicted_to_be_faster() -> None:
    assert place_of_best(case_of(1.0, 2.0, 3.0)) == Place(0, 1)
    assert place_of_best(case_of(3.0, 2.0, 1.0)) == Place(2, 1)


def test_equal_predictions_share_a_place_or_come_in_random_order() -> None:
    tied = [pair(1.0, 5.0), pair(1.0, 4.0), pair(1.0, 7.0), pair(2.0, 6.0)]
    first, last = place_of_best(tied), place_of_best([*tied, pair(3.0, 1.0)])
    assert (first, last) == (Place(0, 3), Place(4, 1))
    assert (first.within(1), first.chance_within(1), first.chance_within(2)) == (True, 1 / 3, 2 / 3)
    assert (last.within(4), last.chance_within(4), last.within(5)) == (False, 0.0, True)
    assert first.chance_within(3) == last.chance_within(5) == 1.0


def test_a_model_that_says_nothing_is_as_good_as_chance() -> None:
    got = accuracy([[pair(1.0, n + 1.0) for n in range(20)]])
    for k in (1, 5, 10):
        assert got[f"random_ties_{k}"] == pytest.approx(k / 20)
        assert got[f"chance_{k}"] == pytest.approx(k / 20)


def test_pairs_of_one_entry_count_once() -> None:
    twice = [pair(1.0, 5.0, entry=3), pair(1.0, 5.0, 1, entry=3), pair(2.0, 4.0, 1, entry=4)]
    assert different(twice) == [twice[0], twice[2]]


def test_the_first_choice_of_equal_predictions_is_their_mean() -> None:
    tied = [pair(1.0, 5.0), pair(1.0, 4.0), pair(2.0, 4.5)]
    assert first_choices(tied) == tied[:2]
    assert regret(tied) == 4.5 / 4.0 - 1


def test_regret_is_zero_where_the_first_choice_is_best() -> None:
    assert regret(case_of(1.0, 2.0)) == 0
    assert regret(case_of(3.0, 2.0)) == 0.5


def test_accuracy_leaves_out_cases_of_ten_pairs() -> None:
    eleven = [2.0] * 11
    best_first, best_fifth, best_last = ([*eleven] for _ in range(3))
    best_first[0] = best_fifth[4] = best_last[10] = 1.0
    cases = [case_of(*times) for times in (best_first, best_fifth, best_last, eleven[:10])]
    got = accuracy(cases)
    assert (got["cases"], got["worst_place"]) == (3, 11)
    assert got["chance_10"] == pytest.approx(10 / 11)
    assert [got[f"top_{k}"] for k in (1, 5, 10)] == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert (got["regret_mean"], got["regret_max"]) == (pytest.approx(2 / 3), 1.0)
    assert accuracy(cases[3:]) == {"cases": 0}
    assert accuracy(cases, 1)["cases"] == 4


def test_ratio_and_speedups_are_per_placement() -> None:
    pairs = [
        pair(4.0, 4.0, 0, single=True),
        pair(2.0, 2.5, 0),
        pair(3.0, 2.0, 0),
        pair(1.0, 0.5, 1, single=True),
        pair(2.0, 1.0, 1),
    ]
    assert placement_ratio(pairs) == 8
    found = [(s.best, s.chosen, s.predicted) for s in speedups(pairs)]
    assert found == [(2.0, 1.6, 2.0), (1.0, 1.0, 1.0)]


def test_a_choice_is_within_the_spread_of_the_best_up_to_its_slowest_round() -> None:
    best = Pair(0, 1, 2.0, 4.0, False, 5.0)
    assert within_spread([best, Pair(0, 2, 1.0, 5.0, False, 9.0)])
    assert not within_spread([best, Pair(0, 2, 1.0, 5.1, False, 9.0)])
    assert within_spread([best])


def test_a_calibration_is_kept_as_rows() -> None:
    rows = [["broadcast", 0, 1, True, 4096, 0.25], ["all-reduce", 0, 2, False, 2**20, 1.5]]
    assert rows_of(samples_of(rows)) == rows


def test_times_are_restored_from_a_fit_without_a_library() -> None:
    """Two nodes of two over 1 MB/s with 10 ms a hop: a ring over both sends 3/2 of the payload."""
    link = {"kind": "switch", "bandwidth": "1 MB/s", "latency": "10 ms"}
    levels = [{"name": name, "size": 2, "link": link} for name in ("node", "gpu")]
    text = json.dumps({"name": "t", "algorithms": ["ring"], "library": "none", "levels": levels})
    found = {tuple(row[:5]): row[5] for row in restored(text, [10**6])}
    assert found["all-reduce", 0, 2, False, 10**6] == pytest.approx(1.5 + 6 * 0.01)


def test_a_prediction_leaves_measured_times_alone() -> None:
    pairs = pairs_of(small(), PAYLOAD)
    entries = [
        {"program": e.name, "factors": f, "predicted_s": 9.0, "times_s": [[1.0]], "single": True}
        for e, f in zip(pairs.entries, pairs.factors, strict=True)
    ]
    data = {"entries": entries, "cases": pairs.as_data(), "large": [], "payload_bytes": PAYLOAD}
    again = predict.predicted(data, small())
    assert all(entry["predicted_s"] == 9.0 for entry in entries)
    for entry, request in zip(again["entries"], pairs.entries, strict=True):
        assert entry["times_s"] == [[1.0]]
        assert entry["predicted_s"] == pytest.approx(predicted_s(request), rel=1e-5)


@pytest.mark.exhaustive
def test_the_committed_predictions_follow_from_the_calibration() -> None:
    """To a hundredth: the fit is a numerical optimum."""
    data = json.loads((HERE / "measured_2x8.json").read_text(encoding="utf-8"))
    again = predict.calibrated(data)
    for entry, now in zip(data["entries"], again["entries"], strict=True):
        assert now["predicted_s"] == pytest.approx(entry["predicted_s"], rel=0.01)


def test_distinct_cases_have_different_entries() -> None:
    assert len(distinct([case_of(1.0, 2.0), case_of(1.0, 2.0), case_of(1.0, 2.0, 3.0)])) == 2


def test_case_pairs_take_the_median_over_all_rounds() -> None:
    entry = {"predicted_s": 1.0, "times_s": [[5.0, 1.0], [2.0]], "single": True}
    assert case_pairs({"placements": [[[[4]], [0]]]}, [entry]) == [Pair(0, 0, 1.0, 2.0, True, 3.0)]


def test_equal_groups_are_one_entry(found: Pairs) -> None:
    assert len({key(entry) for entry in found.entries}) == len(found.entries) < found.count
    assert all(
        any(is_single(found.entries[n]) for n in own) for _, r in found.cases for _, own in r
    )


def test_every_entry_is_timed_and_close_ones_in_every_round(found: Pairs) -> None:
    turns = Counter(n for turn in found.rounds(3, seed=1) for n in turn)
    assert found.rounds(3, seed=1) == found.rounds(3, seed=1) != found.rounds(3, seed=2)
    assert set(turns) == set(range(len(found.entries)))
    for n, times in turns.items():
        short = predicted_s(found.entries[n]) < SHORT_S
        assert times == (3 * OFTEN if short else 3 if n in found.close else 1)
    assert CLOSE > 1


def test_singles_alone() -> None:
    alone = pairs_of(small(), PAYLOAD, singles_only=True)
    assert alone.entries
    assert all(map(is_single, alone.entries))


def test_larger_payloads_have_rows_of_single_and_choice() -> None:
    large = large_pairs(small(), PAYLOAD)
    assert large.rows
    for single, chosen in large.rows:
        assert is_single(large.pairs.entries[single])
        assert predicted_s(large.pairs.entries[chosen]) <= predicted_s(large.pairs.entries[single])


@pytest.mark.exhaustive
@pytest.mark.parametrize("levels", [(1, 2, 8), (1, 4, 4), (2, 2, 4)])
def test_no_step_has_a_payload_of_the_calibration(levels: tuple[int, int, int]) -> None:
    racks, nodes, ranks = levels
    rack = 5e6 if racks > 1 else None
    pairs = pairs_of(topology(regular(nodes, 5e6, racks, rack), ranks), PAYLOAD)
    assert pairs.count >= 200
    sizes = set(study.calibration_bytes(PAYLOAD))
    for entry in pairs.entries:
        for moves in moves_of(entry, entry.steps, racks * nodes * ranks).steps:
            assert all(PAYLOAD * count(m.region) / entry.size not in sizes for m in moves)


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_figures_follow_from_the_committed_times(path: Path) -> None:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    again = summary(data["entries"], data["cases"], any(data["topology"]))
    assert data["verified"]
    assert json.loads(json.dumps(again)) == data["summary"]
    assert data["summary"]["pairs"] >= 200 or not any(data["topology"])


def test_the_report_names_clusters_by_levels_and_rate() -> None:
    racks = {"racks": 2, "nodes_per_rack": 2, "ranks_per_node": 4, "uplink_mbit_per_s": 50.0}
    assert measured.label({"cluster": racks}) == "2x2x4, 50 Mbit/s"
    flat = {"racks": 1, "nodes_per_rack": 4, "ranks_per_node": 8, "uplink_mbit_per_s": 2.5}
    assert measured.label({"cluster": flat}) == "4x8, 2.5 Mbit/s"


def test_claims_have_a_line_per_cluster_that_was_asked() -> None:
    names = {measured.label(data) for data in measured.measured()}
    lines = measured.claim("placement").split("<br>")
    assert {line.split(":")[0] for line in lines} == names
    for line in lines:
        found, said = line.split(": ")[1].split(", predicted ")
        assert float(found.removesuffix("x")) > 1
        assert float(said.removesuffix("x")) > 1
    with_model = measured.with_model()
    assert len(measured.claim("accuracy").split("<br>")) == len(with_model) < len(lines)


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_tiny_run(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    out = tmp_path / "found.json"
    options = "--cluster 2x2 --payload 64KiB --repeat 1 --calibration-repeat 1 --large 128KiB"
    study.main([*options.split(), "--out", str(out)])
    data = json.loads(out.read_text(encoding="utf-8"))
    assert data["verified"]
    assert data["summary"]["pairs"] == 84
    for entry in data["entries"] + data["large"]:
        assert [len(samples) in (1, OFTEN) for samples in entry["times_s"]] == [True]
    study.main([*options.split(), "--placements-only", "--out", str(out)])
    alone = json.loads(out.read_text(encoding="utf-8"))
    assert all(entry["single"] for entry in alone["entries"])
    assert "accuracy" not in alone["summary"]

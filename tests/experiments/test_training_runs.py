"""The study of training runs: its page, the shipped efficiencies and its rows are up to date."""

from __future__ import annotations

import json

import pytest

from experiments.training_runs import launches, placements, ranking, study
from experiments.training_runs.page import PAGE, page
from experiments.training_runs.shipped import shipped
from experiments.training_runs.store import read, runs
from p2smt.training.efficiencies.efficiency_files import read_efficiency
from p2smt.training.efficiencies.frameworks import layer_seconds


def test_the_page_says_what_the_results_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read())


def test_the_shipped_efficiencies_are_those_of_the_results() -> None:
    for path, text in shipped(read()).items():
        assert path.read_text(encoding="utf-8") == text


def test_launches_take_what_small_models_say() -> None:
    found = launches.best(read()["launches"])["layer_s"]
    assert layer_seconds("megatron") == layer_seconds("fsdp") == pytest.approx(found)


def test_every_run_is_in_the_results() -> None:
    data, found = read(), runs()
    assert {row["run"] for row in data["each"]} == {run.name for run in found.counted}
    assert {row["run"] for row in data["memory"]} == {run.name for run in found.runs}
    named = {row["run"] for row in data["each"] + data["uncounted"]}
    assert named == {run.name for run in found.runs}


def test_the_sweep_is_ranked_again() -> None:
    efficiency = read_efficiency("megatron-a100")
    rows, chance = ranking.ranking_rows(runs().counted, efficiency)
    assert json.loads(json.dumps(rows)) == read()["ranking"]
    assert chance == read()["chance"]
    assert abs(chance[0]["mean"]) < 0.02
    assert chance[0]["as_good"] == 0


def test_ties_are_taken_at_their_worst() -> None:
    measured = [3.0, 1.0, 2.0]
    found = ranking._row("s", "w", measured, [1.0, 1.0, 1.0])
    assert (found["place"], found["regret"], found["tau"]) == (3, 2.0, 0)
    assert ranking._row("s", "w", measured, [2.0, 1.0, 5.0])["regret"] == 0


def test_placements_of_a_run_are_placed_again() -> None:
    committed = [row for row in read()["placements"] if row["cluster"] == "gcp-a2-highgpu-16g"]
    efficiencies = {("megatron", "a100"): read_efficiency("megatron-a100")}
    chosen = [run for run in runs().counted if run.name == committed[0]["run"]]
    found = placements.placement_rows(chosen, efficiencies)
    (again,) = (row for row in found if row["cluster"] == "gcp-a2-highgpu-16g")
    assert again == committed[0]
    assert all(row["best_s"] <= row["default_s"] for row in read()["placements"])


@pytest.mark.exhaustive
def test_the_whole_study_gives_the_committed_results() -> None:
    assert json.loads(json.dumps(study.study())) == read()

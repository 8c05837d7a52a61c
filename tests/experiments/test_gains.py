"""Where the gains are: committed rows are computed again, and by the commands that are printed."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.gains import draw_figures, groups, layouts, page, summary
from experiments.gains.asking import Ask, Programs
from experiments.gains.clusters import FOLDER, clusters, derived, leafy, main, named
from experiments.gains.store import HERE, entries, read
from experiments.gains.study import training_entry
from experiments.gains.training import RUNS
from p2smt.cluster.file import load_topology, preset_names
from p2smt.collectives.names import RequestKind
from tests.cli.tools import cli

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def programs() -> Programs:
    return Programs()


def as_json(value: Any) -> Any:
    """What becomes of a value that is written and read."""
    return json.loads(json.dumps(value))


def answered(command: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict[str, Any]:
    """What a printed command answers, in a folder with the derived clusters."""
    monkeypatch.chdir(folder)
    main([])
    outcome = cli(*shlex.split(command)[1:], "--top", "1", "--json")
    assert outcome.code == 0
    found: dict[str, Any] = json.loads(outcome.out)
    return found


@pytest.mark.parametrize("preset", ["dgx-h100", "mi300x"])
def test_committed_programs_hold(preset: str, programs: Programs) -> None:
    committed = [row for row in read()["groups"] if row[0] == preset]
    found = [row for one in clusters(preset) for row in groups.rows(one, programs)]
    assert as_json(found) == committed


def test_committed_placements_hold(programs: Programs) -> None:
    committed = [one for one in entries(read(), "layouts") if one["preset"] == "dgx-a100"]
    assert len(committed) == 32
    for one in committed[::5]:
        found = as_json(layouts.answer(summary.layout_ask(one), programs))
        assert {key: one[key] for key in found} == found


@pytest.mark.parametrize("number", [0, 5, 8])
def test_committed_runs_hold(number: int, programs: Programs) -> None:
    assert as_json(training_entry(RUNS[number], programs)) == read()["training"][number]


def test_everything_was_asked_and_proved() -> None:
    data = read()
    found, placed = entries(data, "groups"), entries(data, "layouts")
    assert {one["preset"] for one in found} == {one["preset"] for one in placed}
    assert {one["preset"] for one in found} == set(preset_names())
    assert [run["name"] for run in data["training"]] == [run.name for run in RUNS]
    assert {one["status"] for one in (*found, *placed, *data["training"])} == {"optimal"}


def test_no_program_is_slower_than_the_single_collective_or_faster_than_the_links() -> None:
    for one in entries(read(), "groups"):
        assert one["links_s"] <= one["best_s"] * (1 + 1e-5) <= one["single_s"] * (1 + 2e-5)
        assert one["cheapest_s"] <= one["single_s"] * (1 + 1e-5)


def test_placements_and_programs_together_are_no_slower_than_either() -> None:
    for one in entries(read(), "layouts"):
        alone = [one["placement_s"], one["programs_s"] or one["default_s"]]
        assert one["best_s"] <= min(alone) * (1 + 1e-5)
        assert max(alone) <= one["default_s"] * (1 + 1e-5)


@pytest.mark.parametrize("leaves", [False, True])
def test_printed_commands_find_the_gain_of_a_program(
    leaves: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = [one for one in entries(read(), "groups") if summary.leafy(one) is leaves]
    largest = max(found, key=lambda one: one["gain"])
    ask = groups.ask_of(largest)
    data = answered(ask.command(*ask.fixed()), monkeypatch, tmp_path)
    assert data["gain"] == pytest.approx(largest["gain"], rel=1e-5)
    assert data["alternatives"][0]["programs"] == [largest["program"]]
    assert data["gain_measurable"] == largest["measurable"]


@pytest.mark.parametrize("leaves", [False, True])
def test_printed_commands_find_the_gain_of_a_placement(
    leaves: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = [one for one in entries(read(), "layouts") if summary.leafy(one) is leaves]
    largest = max(found, key=lambda one: one["placement_gain"])
    ask = summary.layout_ask(largest)
    data = answered(ask.command("--length", "1"), monkeypatch, tmp_path)
    assert data["gain"] == pytest.approx(largest["placement_gain"], rel=1e-5)


def test_the_command_of_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bloom = read()["training"][5]
    data = answered(bloom["command"], monkeypatch, tmp_path)
    assert data["objective_s"] == pytest.approx(bloom["best_s"], rel=1e-5)


def test_derived_clusters_are_what_their_files_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    main([])
    for name in ("dgx-h100-leaves", "jean-zay", "llama3-pods"):
        assert load_topology(f"{FOLDER}/{name}.yaml") == derived(name)
    assert named(f"{FOLDER}/llama3-pods.yaml:8").devices == 16384
    assert named(f"{FOLDER}/jean-zay.yaml").devices == 384


def test_the_uplinks_of_a_leaf_are_a_quarter_of_its_nodes() -> None:
    for preset in set(preset_names()) - {"dgx1-v100"}:
        outer, node = leafy(preset, 4).topology.levels[:2]
        assert outer.link.ports * 4 == node.link.ports * node.size
        assert outer.link.pieces == node.link.pieces


def test_an_all_gather_costs_as_much_as_a_reduce_scatter(programs: Programs) -> None:
    cluster = next(iter(clusters("dgx-h100")))
    scatters = [
        (one, ask)
        for one, ask in groups.asks(cluster)
        if ask.requests[0].kind is RequestKind.REDUCE_SCATTER
    ]
    assert len(scatters) == 9
    for one, ask in scatters:
        gather = Ask(ask.spec, ask.axes, (replace(ask.requests[0], kind=RequestKind.ALL_GATHER),))
        place = groups.COLUMNS.index("best_s")
        pair = [groups.row(cluster, one, each, programs)[place] for each in (ask, gather)]
        assert pair[0] == pytest.approx(pair[1], rel=1e-5)


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("Megatron-LM 8.3B", 8.3),
        ("Megatron-LM 7.5B", 7.5),
        ("GPT-3 175B, Megatron-LM", 174.6),
        ("Turing-NLG 530B", 529.6),
        ("OPT-175B", 175),
        ("BLOOM 176B", 176.2),
        ("GLM-130B", 130),
        ("Falcon-180B", 180),
        ("Llama 3 405B, 8 Ki tokens", 405),
    ],
)
def test_models_have_the_published_number_of_parameters(name: str, billions: float) -> None:
    (run,) = (one for one in RUNS if one.name == name)
    assert run.model.parameters / 1e9 == pytest.approx(billions, rel=0.011)


def test_runs_fill_their_clusters() -> None:
    for run in RUNS:
        problem = run.ask().problem()
        total = 1
        for size in problem.axis_sizes:
            total *= size
        assert total == problem.topology.devices
        assert run.microbatches * run.sizes["dp"] * run.micro == run.batch


def test_the_page_is_that_of_the_results() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page()
    text = page.STUDIES.read_text(encoding="utf-8")
    assert page.studies(text) == text


def test_every_figure_can_be_drawn(tmp_path: Path) -> None:
    draw_figures.main([str(tmp_path)])
    drawn = {path.stem for path in tmp_path.iterdir()}
    assert drawn == {path.stem for path in (HERE / "figures").iterdir()}
    text = page.TEMPLATE.read_text(encoding="utf-8")
    assert all(f"figures/{name}.svg" in text for name in drawn)

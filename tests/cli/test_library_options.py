"""--library, --nominal and --algorithm best; and what a file without a library is taken for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import p2smt
from p2smt.cluster.file import dump_topology, load_noting, load_topology
from p2smt.cluster.library.file import packaged_text
from tests.cli.tools import TINY, assert_one_error, cli

SCENE = ("--axes", "dp=2,tp=4", "--placement", "[[2,1],[1,4]]", "--reduce", "tp=64KiB")
BARE = TINY.replace("library: none\nalgorithms: [ring]\n", "")
OLD = TINY.replace("library: none\n", "")


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "tiny.yaml"
    path.write_text(text)
    return str(path)


def step(topology: str, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = cli("cost", "-t", topology, *SCENE, *more, "--json").json()["steps"][0]
    return found


@pytest.mark.parametrize(
    ("fabrics", "library"),
    [
        (("infiniband", "nvlink4"), "nccl-2.20"),
        (("infiniband", "xgmi"), "rccl"),
        (("ethernet", "ethernet"), "gloo"),
        (("dcn", "ici"), ""),
        (("infiniband", "pcie"), "nccl-2.20"),
    ],
)
def test_a_file_without_a_library_has_that_of_its_fabrics(
    tmp_path: Path, fabrics: tuple[str, str], library: str
) -> None:
    text = BARE
    for fabric, rate in zip(fabrics, ("10 GB/s", "100 GB/s"), strict=True):
        text = text.replace(f"bandwidth: {rate}", f"fabric: {fabric}, bandwidth: {rate}")
    found, note = load_noting(written(tmp_path, text))
    assert found.library_name == library
    assert "names no library" in note
    assert (library or "no library") in note


@pytest.mark.parametrize(
    ("words", "library"), [("8 x AMD MI300X", "rccl"), ("TPU v5p", ""), ("8 GPUs", "nccl-2.20")]
)
def test_or_that_of_its_description(tmp_path: Path, words: str, library: str) -> None:
    path = written(tmp_path, BARE.replace("name: tiny", f"name: tiny\ndescription: {words}"))
    assert load_topology(path).library_name == library


def test_links_that_were_fitted_without_a_library_stay_so(tmp_path: Path) -> None:
    measured = "measured: {reduce: [{name: large, latency: 1 us, bandwidth: 1 GB/s}]}, "
    path = written(tmp_path, BARE.replace("bandwidth: 10", measured + "bandwidth: 10"))
    found, note = load_noting(path)
    assert found.library_name == ""
    assert "fitted without a library" in note


def test_a_file_of_before_is_restricted_to_what_it_lists(tmp_path: Path) -> None:
    found = load_topology(written(tmp_path, OLD))
    assert (found.library_name, found.restricted) == ("nccl-2.20", True)
    assert not load_topology(written(tmp_path, BARE)).restricted


def test_an_assumed_library_is_said_on_stderr_alone(tmp_path: Path) -> None:
    path = written(tmp_path, BARE)
    for asked in (("topology", "show", path), ("cost", "-t", path, *SCENE)):
        outcome = cli(*asked)
        assert outcome.code == 0
        assert outcome.err.startswith("note: ")
        assert "library nccl-2.20 is assumed" in outcome.err
        assert outcome.err.count("\n") == 1
        assert "note" not in outcome.out
    assert cli("cost", "-t", path, *SCENE, "--json").json()["steps"]
    assert cli("cost", "-t", path, *SCENE, "--library", "none").err == ""


def test_another_library_and_none(tmp_path: Path) -> None:
    path = written(tmp_path, TINY)
    assert step(path)["protocol"] == "simple"
    assert step(path, "--library", "nccl-2.20")["protocol"] == "ll"


def test_a_library_in_a_file(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(packaged_text("gloo").replace("name: gloo", "name: own-gloo"))
    path = written(tmp_path, TINY)
    assert step(path, "--library", str(own)) == step(path, "--library", "gloo")


def test_nominal_is_without_a_library(tmp_path: Path) -> None:
    bare, none = written(tmp_path, BARE.replace("name: tiny", "name: tiny")), tmp_path / "n.yaml"
    none.write_text(BARE + "library: none\n")
    assert step(bare, "--nominal") == step(str(none))
    assert cli("cost", "-t", bare, *SCENE, "--nominal").err == ""


def test_the_cheapest_way_is_never_slower_than_the_choice(tmp_path: Path) -> None:
    path = written(tmp_path, BARE)
    for size in ("1KiB", "64KiB", "8MiB", "1GiB"):
        more = (*SCENE[:4], "--reduce", f"tp={size}", "--json")
        best = cli("cost", "-t", path, *more, "--algorithm", "best").json()["steps"][0]
        chosen = cli("cost", "-t", path, *more).json()["steps"][0]
        assert best["seconds"] <= chosen["seconds"]


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (("--library", "nccl"), "library 'nccl'"),
        (("--library", "NCCL 2"), "is no name of a library"),
        (("--library", "absent/own.yaml"), "absent"),
        (("--library", "gloo", "--nominal"), "--nominal beside --library"),
        (("--algorithm", "fastest"), "must be best or some of"),
    ],
)
def test_bad_options(tmp_path: Path, more: tuple[str, ...], word: str) -> None:
    outcome = cli("cost", "-t", written(tmp_path, TINY), *SCENE, *more)
    assert_one_error(outcome)
    assert word in outcome.err


def test_nominal_and_a_calibrated_file_exclude_each_other(tmp_path: Path) -> None:
    for text in ("calibrated: true\n", "library: nccl-2.20\ncalls: {send: 3 us}\n"):
        outcome = cli("cost", "-t", written(tmp_path, BARE + text), *SCENE, "--nominal")
        assert_one_error(outcome)
        assert "was calibrated" in outcome.err


def test_a_plan_stands_alone(tmp_path: Path) -> None:
    plan, path = str(tmp_path / "plan.json"), written(tmp_path, BARE)
    solved = cli("solve", "-t", path, *SCENE[:2], *SCENE[4:], "-o", plan)
    assert solved.code == 0
    for more in (("--library", "gloo"), ("--nominal",)):
        assert_one_error(cli("cost", plan, *more))


def test_show_names_library_fabrics_and_efficiencies(tmp_path: Path) -> None:
    text = BARE.replace(
        "bandwidth: 10 GB", "fabric: efa, efficiency: {any: 0.8, ring: 0.9}, bandwidth: 10 GB"
    )
    out = cli("topology", "show", written(tmp_path, text + "library: nccl-2.20\n")).out
    assert "runs: as chosen by library nccl-2.20" in out
    assert "node: efa; reached of its bandwidth: 0.8, ring 0.9" in out
    assert "gpu: fabric not said" in out


SIXTEEN = ("--axes", "dp=16", "--placement", "[[2,8]]", "--reduce", "dp=1MiB")
FOREIGN = "note: {} is made for devices of {}, and {} has {} ({}): "


@pytest.mark.parametrize(
    ("preset", "library", "words"),
    [
        ("dgx-h100", "rccl", ("rccl", "AMD", "dgx-h100", "nvlink4", "NVIDIA")),
        ("mi300x", "nccl-2.20", ("nccl-2.20", "NVIDIA", "mi300x", "xgmi", "AMD")),
        ("mi300x", "rccl", ()),
        ("mi300x", "gloo", ()),
        ("mi300x", "none", ()),
    ],
)
def test_a_library_for_other_devices_is_said(
    preset: str, library: str, words: tuple[str, ...]
) -> None:
    scene = ("-t", preset, "--library", library, *SIXTEEN)
    err = cli("cost", *scene).err
    assert err.count("\n") == (1 if words else 0)
    assert err.startswith(FOREIGN.format(*words) if words else "")
    solved = cli("solve", *scene[:6], *scene[8:], "--json")
    assert solved.err == err
    assert [f"note: {note}\n" for note in solved.json()["notes"]] == ([err] if words else [])


def test_a_file_that_names_a_library_for_other_devices_is_told(tmp_path: Path) -> None:
    text = BARE.replace(
        "{kind: switch, bandwidth: 100", "{kind: switch, fabric: xgmi, bandwidth: 100"
    )
    path = written(tmp_path, text.replace("10 us", "0 us").replace("2 us", "0 us"))
    assert "xgmi (AMD)" not in cli("topology", "check", path).err
    with Path(path).open("a") as file:
        file.write("library: nccl-2.20\n")
    err = cli("topology", "check", path).err
    assert err.startswith(FOREIGN.format("nccl-2.20", "NVIDIA", "tiny", "xgmi", "AMD"))


def test_constants_that_were_fitted_for_a_library_are_not_dropped_silently(tmp_path: Path) -> None:
    hops = BARE.replace(
        "kind: switch, bandwidth: 10 GB/s", "kind: switch, hops: 9 us, bandwidth: 10 GB/s"
    )
    path = written(tmp_path, hops + "library: nccl-2.20\ncalibrated: true\ncalls: {send: 3 us}\n")
    assert cli("cost", "-t", path, *SCENE).err == ""
    for more in (("cost", *SCENE), ("solve", *SCENE[:2], *SCENE[4:], "--json")):
        outcome = cli(*more, "-t", path, "--library", "none")
        assert outcome.err.startswith(
            "note: tiny has fitted calls, hops, which count under a library"
        )
        assert outcome.err.count("\n") == 1
    assert cli("cost", "-t", "dgx-h100:2", *SIXTEEN, "--library", "none").err == ""


def test_links_that_were_fitted_without_a_library_do_not_run_under_one(tmp_path: Path) -> None:
    measured = "measured: {reduce: [{name: large, latency: 1 us, bandwidth: 1 GB/s}]}, "
    text = BARE.replace("bandwidth: 10", measured + "bandwidth: 10")
    for more in ("library: nccl-2.20\n", "library: none\n"):
        path = written(tmp_path, text + more)
        outcome = cli("cost", "-t", path, *SCENE, "--library", "nccl-2.20")
        assert_one_error(outcome)
        assert "level node: measured: was fitted without a library" in outcome.err
    assert cli("cost", "-t", path, *SCENE).code == 0
    assert_one_error(cli("topology", "check", written(tmp_path, text + "library: rccl\n")))


def test_latencies_that_no_library_counts_with_are_said(tmp_path: Path) -> None:
    named = BARE + "library: nccl-2.20\n"
    path = written(tmp_path, named)
    err = "note: {}: latency of node, gpu: does not count under a library; nccl-2.20 says"
    assert cli("cost", "-t", path, *SCENE).err.startswith(err.format(path))
    assert cli("cost", "-t", path, *SCENE, "--library", "none").err == ""
    hops = named.replace("latency", "hops: 9 us, latency")
    for text in (
        hops,
        named + "calibrated: true\n",
        named.replace("10 us", "0 us").replace("2 us", "0 us"),
    ):
        assert cli("cost", "-t", written(tmp_path, text), *SCENE).err == ""


def test_a_copy_of_a_preset_is_as_silent_as_the_preset(tmp_path: Path) -> None:
    """A latency that was changed in it would be thought to count, so that is said."""
    ask = ("cost", "--axes", "dp=16", "--placement", "[[2,8]]", "--reduce", "dp=1GiB", "-t")
    data = dump_topology(load_topology("dgx-h100:2"))
    path = tmp_path / "copy.json"
    path.write_text(json.dumps(data))
    assert cli(*ask, str(path)).err == ""
    path.write_text(json.dumps(data).replace("14 us", "15 us"))
    assert "latency and protocols of node: do not count under a library" in cli(*ask, str(path)).err
    path.write_text(json.dumps(data | {"name": "mine"}))
    assert "of node, gpu: do not count" in cli(*ask, str(path)).err


@pytest.mark.parametrize("ending", [".yaml", ".yml", ".xml", ".XML"])
def test_a_plan_is_not_named_as_a_schedule(tmp_path: Path, ending: str) -> None:
    path, plan = written(tmp_path, TINY), tmp_path / f"plan{ending}"
    outcome = cli("solve", "-t", path, *SCENE[:2], *SCENE[4:], "-o", str(plan))
    assert_one_error(outcome)
    assert "name it .json" in outcome.err
    assert not plan.exists()
    problem = p2smt.Problem(
        p2smt.load_topology(path), p2smt.parse_axes("dp=2,tp=4"), (p2smt.reduce("dp=1MiB"),)
    )
    with pytest.raises(p2smt.InputError, match="plans are JSON"):
        p2smt.write_plan(p2smt.solve(problem), plan)
    assert not plan.exists()


def test_what_runs_is_what_is_checked() -> None:
    """A library that the algorithms exclude is refused before anything is searched or priced."""
    h100 = p2smt.load_topology("dgx-h100:2")
    axes, requests = p2smt.parse_axes("dp=16"), (p2smt.reduce("dp=1MiB"),)
    for topology, algorithm in (
        (h100.under("gloo"), p2smt.Algorithm.TREE),
        (h100.under("nccl-2.12"), p2smt.Algorithm.NVLS),
        (p2smt.load_topology("dgx2:1").under("nccl-2.20"), p2smt.Algorithm.NVLS),
    ):
        problem = p2smt.Problem(topology, axes, requests, algorithms=(algorithm,))
        with pytest.raises(p2smt.InputError):
            p2smt.solve(problem)
        with pytest.raises(p2smt.InputError):
            p2smt.cost_of(problem, p2smt.Placement((topology.sizes,)))

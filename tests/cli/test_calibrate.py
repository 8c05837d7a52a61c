"""`p2smt calibrate` on files of nccl-tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2smt.cluster.file import dump_topology, load_topology, topology_from_data
from tests.calibration.fixtures import ALL, INSIDE, START, TRUTH, as_json, made_samples, printed
from tests.calibration.fixtures import report as json_report
from tests.cli.tools import assert_one_error, cli

SIZES = tuple(2**i for i in range(12, 33, 2))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = made_samples(TRUTH, INSIDE, sizes=SIZES)
    bad = printed(inside, 8, 1).replace("      0\n", "      5\n", 1)
    (tmp_path / "inside.txt").write_text(printed(inside, 8, 1))
    (tmp_path / "wrong.txt").write_text(bad)
    (tmp_path / "across.json").write_text(
        as_json(json_report(made_samples(TRUTH, ALL, sizes=SIZES), 32, 4))
    )
    (tmp_path / "start.yaml").write_text(as_json(dump_topology(START)))
    return tmp_path


def test_files_of_one_and_several_nodes_give_a_topology(folder: Path) -> None:
    out = folder / "out.yaml"
    files = (str(folder / "inside.txt"), str(folder / "across.json"))
    done = cli("calibrate", "--from-nccl-tests", *files, "-o", str(out))
    assert done.code == 0, done.err
    assert "pieces\n" in done.out
    assert f"topology written to {out}" in done.out
    found = load_topology(str(out))
    assert found.sizes == (4, 8)
    assert "# level node, all-reduce by the link's pieces: median" in out.read_text()
    assert cli("topology", "check", str(out)).code == 0


def test_json_holds_topology_and_report(folder: Path) -> None:
    done = cli(
        *("calibrate", "--from-nccl-tests", str(folder / "wrong.txt"), "--json"),
        *("--topology", str(folder / "start.yaml")),
    )
    data = done.json()
    assert topology_from_data(data["topology"], "made").levels[0] == START.levels[0]
    node, gpu = data["levels"]
    assert (node["measured"], gpu["measured"]) == (False, True)
    assert gpu["collectives"][0]["median_error"] < 0.02
    assert len(data["wrong_results"]) == 1
    assert data["wrong_results"][0].startswith("wrong.txt:")


def test_algorithms_of_the_fit_can_be_named(folder: Path) -> None:
    done = cli(
        *("calibrate", "--from-nccl-tests", str(folder / "inside.txt"), "--json"),
        *("--algorithm", "ring,tree"),
    )
    assert done.json()["topology"]["algorithms"] == ["ring", "tree"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --from-nccl-tests"),
        (("inside.txt",), "give --from-nccl-tests"),
        (("--from-nccl-tests",), "give 1 to 100 files"),
        (("--from-nccl-tests", "inside.txt", "inside.txt"), "names a file twice"),
        (("--from-nccl-tests", "missing.txt"), "is not a regular file"),
        (("--from-nccl-tests", "across.json"), "inside a node were not measured"),
        (("--from-nccl-tests", "inside.txt", "--collective", "x"), "must be one of all-reduce"),
        (("--from-nccl-tests", "inside.txt", "--ranks", "0"), "whole number"),
        (("--from-nccl-tests", "inside.txt", "--ranks", "5"), "are those of 8 ranks"),
        (("--from-nccl-tests", "inside.txt", "--ranks", "8,8"), "2 numbers of ranks for 1 files"),
        (("--from-nccl-tests", "across.json", "--topology", "dgx-h100:2"), "such as dgx-h100:4"),
        (("--from-nccl-tests", "inside.txt", "--topology", "nope"), "neither a preset"),
        (("--from-nccl-tests", "inside.txt", "--topology", "tpu-v5p"), "whole nodes"),
        (("--from-nccl-tests", "inside.txt", "--algorithm", "x"), "must be best or some of"),
        (("--from-nccl-tests", "inside.txt", "-o", "no/such/folder"), "existing folder"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(folder)
    done = cli("calibrate", *arguments)
    assert_one_error(done)
    assert message in done.err

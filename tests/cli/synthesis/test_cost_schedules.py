"""`p2smt cost a.xml b.xml`: schedules over payloads, side by side and beside the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import assert_one_error, cli

ON = ("-t", "dgx-a100:1")
SIZES = (*ON, "--sizes", "1KiB..1GiB*32")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, ranks, path in (
        ("ring-all-reduce", "8", "ring.xml"),
        ("halving-doubling-all-reduce", "8", "doubling.yaml"),
        ("ring-all-gather", "8", "gather.xml"),
        ("ring-all-reduce", "4", "small.xml"),
    ):
        assert cli("classics", name, "--ranks", ranks, "-o", path).code == 0


@pytest.mark.usefixtures("files")
def test_who_is_faster_where_is_that_of_the_times() -> None:
    """Few steps for small payloads, the library for large ones: the table and the first line."""
    data = cli("cost", "ring.xml", "doubling.yaml", *SIZES, "--json").json()
    names = {"ring.xml", "doubling.yaml", "nccl-2.30"}
    for row in data["sizes"]:
        at = {
            one["name"]: one["seconds"]
            for one in data["sizes"]
            if one["size_bytes"] == row["size_bytes"]
        }
        assert set(at) == names
        runs = [one["name"] for one in data["faster"] if one["from_bytes"] <= row["size_bytes"]]
        assert at[runs[-1]] == min(at.values())
    shown = cli("cost", "ring.xml", "doubling.yaml", *SIZES).out
    assert shown.startswith(f"by prices: {data['faster'][0]['name']} ")
    assert "no gain over a library is claimed" in shown.replace("\n", " ")


@pytest.mark.usefixtures("files")
def test_without_a_library_files_stand_alone() -> None:
    asked = (*ON, "--sizes", "1MiB", "--json")
    bare = cli("cost", "ring.xml", *asked, "--library", "none").json()
    assert (bare["library"], [one["name"] for one in bare["sizes"]]) == (None, ["ring.xml"])
    newest = cli("cost", "ring.xml", *asked).json()
    assert (newest["library"], len(newest["sizes"])) == ("nccl-2.30", 2)


@pytest.mark.usefixtures("files")
def test_a_picture_has_a_line_a_file() -> None:
    pytest.importorskip("matplotlib")
    done = cli("cost", "ring.xml", "doubling.yaml", *SIZES, "--plot", "times.svg")
    assert done.code == 0
    assert Path("times.svg").read_text().startswith("<?xml")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ring.xml", "doubling.yaml"), "with --topology and --sizes"),
        (("ring.xml", "--sizes", "1MiB"), "topology: is missing"),
        (("ring.xml", "gather.xml", *SIZES), "is a schedule of allgather, and ring.xml one of"),
        (("ring.xml", "ring.xml", *SIZES), "is named twice"),
        (("ring.xml", "small.xml", *SIZES), "must have as many as dgx-a100 has devices"),
        (("ring.xml", "none.xml", *SIZES), "none.xml"),
        (("ring.xml", *SIZES, "--algorithm", "ring"), "does not go with schedules"),
        (("ring.xml", *SIZES, "--reduce", "r=1MiB"), "does not go with schedules"),
        (("ring.xml", *ON, "--sizes", "1GiB..1KiB"), "must have two ends and grow"),
        (("ring.xml", *SIZES, "--plot", "times.txt"), "must be named"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], words: str) -> None:
    done = cli("cost", *arguments)
    assert_one_error(done)
    assert words in done.err

"""`p2smt crossings` without --sufficient: tables, figures, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import TINY, cli
from tests.tiers import but_the_first

ASKED = ("crossings", "--factors", "4,8")


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return str(path)


def test_the_table_has_exact_bounds() -> None:
    done = cli(*ASKED, "--ports", "8,1", "--latency-ratio", "4", "--bandwidth-ratio", "12")
    assert done.code == 0
    assert "12  B up to 192/5, then A" in done.out


def test_a_range_is_doubled_and_has_the_cells_of_large_payloads() -> None:
    data = cli(*ASKED, "--bandwidth-ratio", "1/8..6", "--json").json()
    shown = [row["bandwidth_ratios"][0] for row in data["rows"]]
    assert shown == ["1/8", "1/4", "1/2", "1", "2", "4", "6"]
    assert [cell["high"] for cell in data["large_payloads"]] == ["4", "6"]


def test_three_levels_take_a_ratio_for_each_but_the_innermost() -> None:
    done = cli(
        *("crossings", "--factors", "2,2,2", "--length", "3", "--bandwidth-ratio", "1..4,2"),
        *("--latency-ratio", "2,2", "--json"),
    )
    assert done.json()["rows"][0]["bandwidth_ratios"] == ["1", "2", "1"]


@pytest.mark.parametrize("suffix", but_the_first("png", "svg", "pdf"))
def test_a_figure_is_written(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"regions.{suffix}"
    done = cli("crossings", "--factors", "2,2", "--bandwidth-ratio", "1..4", "--plot", str(path))
    assert done.code == 0
    assert path.stat().st_size > 1000


def test_a_request_on_a_topology_has_its_bytes(cluster: str) -> None:
    placed = ("--axes", "dp=8", "--placement", "[[2,4]]", "--reduce", "dp")
    data = cli("crossings", "-t", cluster, *placed, "--json").json()
    assert data["status"] == "complete"
    assert data["cells"][-1]["high"] is None
    assert "payload" in cli("crossings", "-t", cluster, *placed).out


def test_two_requests_without_a_placement_have_cells_of_their_ratio(cluster: str) -> None:
    asked = ("crossings", "-t", cluster, "--axes", "dp=2,tp=4", "--reduce", "dp", "--reduce", "tp")
    data = cli(*asked, "--json").json()
    assert [cell["placement"] for cell in data["cells"]] == [[[2, 1], [1, 4]], [[1, 2], [2, 2]]]
    assert "best of 2" in cli(*asked).out
    assert cli(*asked, "--time-limit", "0.0001").code == 3
    assert cli(*asked[:-2]).code == 2


def test_no_time_leaves_every_cell_open(cluster: str) -> None:
    placed = ("-t", cluster, "--axes", "dp=8", "--placement", "[[2,4]]", "--reduce", "dp")
    for asked in (ASKED, ("crossings", *placed)):
        done = cli(*asked, "--time-limit", "0.0001")
        assert done.code == 3
        assert "every cell is open" in done.err


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (("--factors", "1,8"), "at least 2"),
        (("--factors", "8"), "no ratios to an inner one"),
        (("--factors", "4,8", "-t", "dgx-a100"), "take either"),
        (("--factors", "4,8", "--bandwidth-ratio", "0"), "must be positive"),
        (("--factors", "4,8", "--bandwidth-ratio", "1/0"), "must be positive"),
        (("--factors", "4,8", "--bandwidth-ratio", "4..1"), "to a larger one"),
        (("--factors", "4,8", "--bandwidth-ratio", "1,2"), "has 2 numbers"),
        (("--factors", "4,8", "--latency-ratio", "-1"), "must be positive"),
        (("--factors", "4,8", "--cost-per-call", "x"), "must be positive"),
        (("--factors", "4,8", "--plot", "regions.txt"), "must be named"),
        (("--factors", "4,8", "--plot", "r.png", "--bandwidth-ratio", "2"), "draws a range"),
        (("--factors", "4,8", "--latex"), "goes with --sufficient"),
        (("--factors", "4,8", "--axes", "dp=4"), "goes with --topology"),
        (("--factors", "4,8", "--nominal"), "goes with --topology"),
        (("--factors", "4,8", "--sufficient", "--latency-ratio", "2"), "has no use here"),
    ],
)
def test_bad_input_is_one_line(
    options: tuple[str, ...], rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = cli("crossings", *options)
    assert (done.code, done.out if "--plot" not in options else "") == (2, "")
    assert rule in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (("--sufficient",), "goes with --factors"),
        (("--ports", "1,1"), "goes with --factors"),
        (("--library", "nccl-2.20"), "No such option"),
        (("--reduce", "dp"), "one request"),
        (("--algorithm", "tree"), "square root"),
    ],
)
def test_of_a_topology_too(cluster: str, options: tuple[str, ...], rule: str) -> None:
    placed = ("--axes", "dp=8", "--placement", "[[2,4]]", "--reduce", "dp")
    done = cli("crossings", "-t", cluster, *placed, *options)
    assert done.code == 2
    assert rule in done.err

"""`p2smt crossings` without --sufficient: tables, figures, and what is refused."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from p2smt.plans.crossings.least_set import SymbolicSetting
from p2smt.report.crossings.region_plot import title_lines
from p2smt.search.crossings.least import LevelRatios
from p2smt.units import format_bytes
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
    shown = dict.fromkeys(cell["bandwidth_ratio"]["from"] for cell in data["cells"])
    assert list(shown) == ["1/8", "1/4", "1/2", "1", "2", "4", "6"]
    ends = [cell["bandwidth_ratio"] for cell in data["large_payloads"]]
    assert ends == [{"from": "1/8", "to": "4"}, {"from": "4", "to": "6"}]
    assert data["large_payloads"][0]["program"] == "all-reduce inside root"


def test_three_levels_take_a_ratio_for_each_but_the_innermost() -> None:
    done = cli(
        *("crossings", "--factors", "2,2,2", "--length", "3", "--bandwidth-ratio", "1..4,2"),
        *("--latency-ratio", "2,2", "--json"),
    )
    first = done.json()["cells"][0]
    assert (first["inner_bandwidth_ratios"], first["inner_latency_ratios"]) == (["2"], ["2"])


@pytest.mark.parametrize("suffix", but_the_first("png", "svg", "pdf"))
def test_a_figure_is_written(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"regions.{suffix}"
    done = cli("crossings", "--factors", "2,2", "--bandwidth-ratio", "1..4", "--plot", str(path))
    assert done.code == 0
    assert path.stat().st_size > 1000


def test_a_figure_names_every_number_that_it_is_drawn_for() -> None:
    setting = SymbolicSetting((2, 2, 2), (2, 1, 1), max_length=3)
    ratios = LevelRatios((4, 3, 1), (1, 5, 1), Fraction(1, 2))  # type: ignore[arg-type]
    first, second = title_lines(setting, ratios)
    assert first.startswith("all-reduce over 2 x 2 x 2, ports 2,1,1")
    assert "at most 3 instructions" in first
    assert second.startswith("latency ratios 4, 3, inner bandwidth ratios 5, cost per call 1/2")


def test_a_request_on_a_topology_has_its_bytes(cluster: str) -> None:
    placed = ("--axes", "dp=8", "--placement", "[[2,4]]", "--reduce", "dp")
    data = cli("crossings", "-t", cluster, *placed, "--json").json()
    assert data["status"] == "complete"
    assert data["cells"][-1]["payload"]["to"] is None
    assert not {"low", "high"} & set(data["cells"][-1])
    assert "payload" in cli("crossings", "-t", cluster, *placed).out


def test_two_requests_without_a_placement_have_cells_of_their_ratio(cluster: str) -> None:
    asked = ("crossings", "-t", cluster, "--axes", "dp=2,tp=4", "--reduce", "dp", "--reduce", "tp")
    data = cli(*asked, "--json").json()
    assert [cell["placement"] for cell in data["cells"]] == [[[2, 1], [1, 4]], [[1, 2], [2, 2]]]
    assert "best of 2" in cli(*asked).out
    assert cli(*asked, "--time-limit", "0.0001").code == 3


def test_a_third_request_keeps_its_share(cluster: str) -> None:
    asked = ("crossings", "-t", cluster, "--axes", "dp=2,tp=2,cp=2", "--reduce", "dp")
    done = cli(*asked, "--reduce", "tp=1MiB", "--reduce", "cp=3MiB")
    assert "that of all-reduce cp is 3 of the second" in " ".join(done.out.split())
    mixed = cli(*asked, "--reduce", "tp", "--reduce", "cp=3MiB")
    assert mixed.code == 2
    assert "has no size" in mixed.err


def test_a_library_has_cells_of_its_own_bounds() -> None:
    asked = ("crossings", "-t", "dgx-a100", "--axes", "dp=16", "--reduce", "dp", "--length", "3")
    data = cli(*asked, "--json").json()
    assert (data["library"], data["open_from"]) == ("nccl-2.20", None)
    assert data["cells"][0]["payload"] == {"from": "0", "to": "16776000/113"}
    assert data["cells"][0]["program"] == "all-reduce inside root"
    shown = cli(*asked).out
    assert "under nccl-2.20" in shown
    assert "145 KiB (16776000/113 B)" in shown


def test_a_root_lies_where_its_two_programs_change_places() -> None:
    """The numeric model prices both at the last byte before the root and the first behind it."""
    where = ("-t", "dgx-a100", "--axes", "dp=16", "--reduce", "dp")
    rows = cli("crossings", *where, "--length", "3").out.splitlines()
    named = {row[0]: row for row in rows if "  all-reduce inside " in row}
    bound = re.compile(r"([\d.]+ \w+) \(root in (\d+)\.\.(\d+) B\)  ([A-Z])$")
    (before,) = (found for row in rows if (found := bound.search(row)))
    after = next(row for row in rows if row.startswith(before[0].split("  ")[0]))
    programs = [re.split(r" {2,}", named[one])[1] for one in (before[4], after.rstrip()[-1])]
    for size, first_is_best in ((int(before[2]), True), (int(before[3]), False)):
        times = [
            cli("cost", *where, "--placement", "[[2,8]]", "--program", one, *sized(size)).json()
            for one in programs
        ]
        first, second = (found["sizes"][0]["seconds"] for found in times)
        assert (first < second) is first_is_best
    assert format_bytes(int(before[2])) == before[1]


def sized(size: int) -> tuple[str, ...]:
    return ("--sizes", f"{size}B", "--json")


def test_without_a_placement_every_matrix_counts(cluster: str) -> None:
    data = cli("crossings", "-t", cluster, "--axes", "dp=2,tp=4", "--reduce", "dp", "--json").json()
    assert data["placements"] == 2
    assert [one["placement"] for one in data["programs"]] == [[[1, 2], [2, 2]]]


def test_every_cell_says_from_where_to_where_each_number_goes() -> None:
    data = cli(*ASKED, "--ports", "8,1", "--latency-ratio", "4", "--json").json()
    at = next(one for one in data["cells"] if one["bandwidth_ratio"] == {"from": "16", "to": "16"})
    assert at["payload"] == {"from": "0", "to": "48"}
    assert at["program"].startswith("reduce-scatter inside l1; ")
    assert at["latency_ratio"]["from"] == "4"


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
        (("--factors", "4,8", "--sufficient", "--latency-ratio", "2"), "alone; drop it"),
        (("--factors", "4,8", "--sufficient", "--plot", "r.png"), "alone; drop it"),
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
        (("--plot", "regions.png"), "goes with --factors"),
        (("--bandwidth-ratio", "2"), "goes with --factors"),
        (("--library", "nccl-2.20"), "No such option"),
        (("--reduce", "dp"), "of one request"),
        (("--algorithm", "nvls"), "known to libraries only"),
    ],
)
def test_of_a_topology_too(cluster: str, options: tuple[str, ...], rule: str) -> None:
    placed = ("--axes", "dp=8", "--placement", "[[2,4]]", "--reduce", "dp")
    done = cli("crossings", "-t", cluster, *placed, *options)
    assert done.code == 2
    assert rule in done.err

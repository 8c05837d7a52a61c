"""`p2smt calibrate` on files of nccl-tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from p2smt.cluster.file import dump_topology, load_topology, topology_from_data
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Collective
from tests.calibration.fixtures import ALL, INSIDE, START, TRUTH, as_json, made_samples, printed
from tests.calibration.fixtures import report as json_report
from tests.cli.tools import Outcome, assert_one_error, cli

SIZES = tuple(2**i for i in range(12, 33, 2))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = made_samples(TRUTH, INSIDE, sizes=SIZES)
    bad = printed(inside, 8, 1).replace("      0\n", "      5\n", 1)
    (tmp_path / "inside.txt").write_text(printed(inside, 8, 1))
    (tmp_path / "wrong.txt").write_text(bad)
    few = made_samples(TRUTH, INSIDE, sizes=SIZES[:1])
    (tmp_path / "few.txt").write_text(printed(few, 8, 1))
    (tmp_path / "across.json").write_text(
        as_json(json_report(made_samples(TRUTH, ALL, sizes=SIZES), 32, 4))
    )
    (tmp_path / "start.yaml").write_text(as_json(dump_topology(START)))
    return tmp_path


def test_files_of_one_and_several_nodes_give_a_topology(folder: Path) -> None:
    out = folder / "out.yaml"
    files = (str(folder / "inside.txt"), str(folder / "across.json"))
    done = cli("calibrate", "--from-nccl-tests", *files, "-o", str(out), "--details")
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


def test_a_note_is_kept_with_what_ran(folder: Path) -> None:
    """Among the sources, in the comments of the file too."""
    out, log = folder / "out.yaml", folder / "log.txt"
    log.write_text(f"NCCL version 2.27.3+cuda12.9\n{(folder / 'inside.txt').read_text()}")
    asked = ("calibrate", "--from-nccl-tests", str(log), "-o", str(out))
    done = cli(*asked, "--note", " rack 3: drivers of May ")
    assert done.code == 0, done.err
    sources = load_topology(str(out)).sources
    assert sources[-1] == "note: rack 3: drivers of May"
    assert "NCCL 2.27.3+cuda12.9" in sources[-2]
    assert "#   note: rack 3: drivers of May\n" in out.read_text()


def test_algorithms_of_the_fit_can_be_named(folder: Path) -> None:
    done = cli(
        *("calibrate", "--from-nccl-tests", str(folder / "inside.txt"), "--json"),
        *("--algorithm", "ring,tree"),
    )
    assert done.json()["topology"]["algorithms"] == ["ring", "tree"]


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Tables of one, two and all nodes of a DGX H100 cluster, by the model itself."""
    start = load_topology("dgx-h100:4")
    for name, where, nodes in (("one", INSIDE, None), ("two", ALL, 2), ("four", ALL, 4)):
        made = made_samples(start, where, outermost=nodes, sizes=SIZES)
        slow = [replace(sample, seconds=6 * sample.seconds) for sample in made]
        fast = [replace(sample, seconds=0.4 * sample.seconds) for sample in made]
        third = made_samples(slower(start), where, outermost=nodes, sizes=SIZES)
        for kind, found in (("", made), ("slow-", slow), ("fast-", fast), ("third-", third)):
            text = printed(found, 8 * (nodes or 1), nodes or 1)
            (tmp_path / f"{kind}{name}.txt").write_text(text)
    return tmp_path


def slower(topology: Topology) -> Topology:
    """The same cluster whose innermost links reach a third of what they do."""
    return topology.with_bandwidth_factor(1, 1 / 3)


def fitted(folder: Path, *names: str) -> Outcome:
    """What calibrate says of tables of a DGX H100 cluster; options may stand among the names."""
    words = [str(folder / name) if name.endswith(".txt") else name for name in names]
    out = ("-o", str(folder / "out.yaml"))
    return cli("calibrate", "--from-nccl-tests", "--topology", "dgx-h100:4", *out, *words)


def test_a_library_keeps_nominal_rates_and_gets_constants(tables: Path) -> None:
    done = fitted(tables, "one.txt", "two.txt", "four.txt", "--details")
    assert done.code == 0, done.err
    assert "left out" in done.out
    found, start = load_topology(str(tables / "out.yaml")), load_topology("dgx-h100:4")
    assert [lv.link.pieces for lv in found.levels] == [lv.link.pieces for lv in start.levels]
    assert found.library == start.library
    text = (tables / "out.yaml").read_text()
    assert "# Kept, as the times do not determine them:" in text
    assert "by a fit to the other tables" in text
    refused = cli("solve", "-t", str(tables / "out.yaml"), "--axes", "dp=32", "--nominal")
    assert_one_error(refused)


def test_json_tells_constants_and_errors_of_tables(tables: Path) -> None:
    data = fitted(tables, "one.txt", "two.txt", "--json").json()
    assert data["levels"] == []
    assert {row["quantity"] for row in data["constants"]} == {"efficiency", "hop", "call"}
    assert {row["level"] for row in data["constants"]} == {"node", "gpu", None}
    assert [row["times"] for row in data["tables"]] == [
        2 * len(SIZES)
    ] * 2  # out of place, in place
    assert all(row["median_error"] < 0.02 for row in data["tables"])
    assert data["warnings"] == data["unexplained"] == []


@pytest.mark.exhaustive
def test_tables_that_contradict_each_other_are_no_calibration(tables: Path) -> None:
    done = fitted(tables, "one.txt", "two.txt", "slow-four.txt")
    assert done.code == 3
    assert "warning: " in done.err
    first = (tables / "out.yaml").read_text().splitlines()[0]
    assert first.startswith("# NOT TO BE RELIED ON: ")
    assert "% off" in first


def test_rates_above_nominal_are_refused_and_nothing_is_written(tables: Path) -> None:
    done = fitted(tables, "fast-one.txt")
    assert_one_error(done)
    assert "nominal" in done.err
    assert not (tables / "out.yaml").exists()
    assert fitted(tables, "fast-one.txt", "--allow-above-nominal").code == 0
    assert (tables / "out.yaml").exists()


def test_another_library_and_none_can_be_named(tables: Path) -> None:
    any_rate = ("--allow-above-nominal", "--json")
    older = fitted(tables, "one.txt", "--library", "nccl-2.12", *any_rate)
    assert older.json()["topology"]["library"] == "nccl-2.12"
    plain = fitted(tables, "one.txt", "--library", "none", *any_rate).json()
    assert plain["topology"]["library"] == "none"
    assert plain["constants"] == []
    assert plain["levels"]


def test_rates_that_fit_another_machine_are_warned_of(tables: Path) -> None:
    """A third of the rate of NVLink: the constant, its value, the preset's, and what may be so."""
    done = fitted(tables, "third-one.txt")
    assert done.code == 0, done.err
    (line,) = [line for line in done.err.splitlines() if "of nvls" in line]
    preset = dict(load_topology("dgx-h100").levels[1].link.efficiency)["nvls"]
    assert line.startswith("warning: level gpu, efficiency of nvls: fitted ")
    assert f"half of the {100 * preset:.3g} % of dgx-h100" in line
    assert "another machine, or with another library than nccl-2.30?" in line
    assert f"# WARNING: {line.removeprefix('warning: ')}" in (tables / "out.yaml").read_text()
    assert (
        line.removeprefix("warning: ")
        in fitted(tables, "third-one.txt", "--json").json()["warnings"]
    )


def test_a_fit_near_the_preset_is_not_warned_of(tables: Path) -> None:
    done = fitted(tables, "one.txt", "two.txt", "--json")
    assert done.err == ""
    data = done.json()
    kept = [row for row in data["constants"] if not row["fitted"]]
    assert all(row["value"] == row["before"] for row in kept)
    assert data["unexplained_beyond"] == pytest.approx(1.35, abs=0.005)


def test_tables_of_one_name_in_two_folders_are_two(tables: Path) -> None:
    (tables / "more").mkdir()
    (tables / "more" / "one.txt").write_text((tables / "one.txt").read_text())
    data = fitted(tables, "one.txt", "more/one.txt", "two.txt", "--json").json()
    paths = [str(tables / name) for name in ("one.txt", "more/one.txt")]
    assert [row["source"] for row in data["tables"]] == [*paths, "two.txt"]


def test_constants_of_another_library_are_dropped_and_that_is_said(tables: Path) -> None:
    assert fitted(tables, "one.txt", "two.txt").code == 0
    ask = ("-t", str(tables / "out.yaml"), "--axes", "dp=32", "--reduce", "dp=1MiB")
    same, other = (cli("cost", *ask, "--library", name) for name in ("nccl-2.30", "nccl-2.20"))
    assert "was calibrated under" not in same.err
    assert "was calibrated under nccl-2.30: its calls, hops" in other.err
    file = tables / "out.yaml"
    for line, extra, note in (
        (
            "library: none\n",
            ("--library", "nccl-2.20"),
            "was calibrated under a library: its calls",
        ),
        (
            "",
            (),
            "names no library: library nccl-2.20 is assumed (NVLink); write library: NAME; its",
        ),
    ):
        unnamed = tables / "unnamed.yaml"
        unnamed.write_text(file.read_text().replace("library: nccl-2.30\n", line))
        done = cli("cost", "-t", str(unnamed), *ask[2:], *extra)
        assert note in done.err
        assert done.out == other.out


def test_what_ran_can_be_named_under_a_library(tables: Path) -> None:
    done = fitted(tables, "slow-one.txt", "--algorithm", "ring", "--json")
    names = {row["name"] for row in done.json()["constants"] if row["quantity"] == "efficiency"}
    assert names == {"ring"}


def test_the_cheapest_is_what_no_library_ran(tables: Path) -> None:
    for name in ("best", "auto"):
        done = fitted(tables, "slow-one.txt", "--algorithm", name)
        assert_one_error(done)
        assert f"--algorithm {name}: is not what nccl-2.30 runs" in done.err
    assert not (tables / "out.yaml").exists()


def test_without_a_library_the_fastest_of_the_topology_s_may_have_run(folder: Path) -> None:
    start = (*("--topology", str(folder / "start.yaml")), "--library", "none", "--json")
    asked = ("calibrate", "--from-nccl-tests", str(folder / "inside.txt"), *start)
    every = cli(*asked, "--algorithm", "ring,tree").json()
    assert cli(*asked, "--algorithm", "best").json() == every
    assert cli(*asked, "--algorithm", "auto").json() == every
    assert cli(*asked).json()["topology"]["algorithms"] == ["ring"]


def test_what_cannot_have_run_so_is_said(tables: Path) -> None:
    none = fitted(tables, "slow-two.txt", "--algorithm", "nvls")
    assert_one_error(none)
    assert "cannot run any step by it: all-reduce (slow-two.txt)" in none.err
    assert not (tables / "out.yaml").exists()
    some = fitted(tables, "slow-one.txt", "slow-two.txt", "--algorithm", "nvls", "--json")
    note = "note: by ring, as nccl-2.30 cannot run it by nvls: all-reduce (slow-two.txt)\n"
    assert note in some.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --from-nccl-tests"),
        (("inside.txt",), "'inside.txt': is read as measurements of nccl-tests with --from-nccl"),
        (("--from-nccl-tests", "few.txt", "--topology", "dgx-h100:4"), "1 message size: a fit"),
        (("--from-nccl-tests",), "give 1 to 100 files"),
        (("--from-nccl-tests", "inside.txt", "inside.txt"), "names a file twice"),
        (("--from-nccl-tests", "missing.txt"), "does not exist"),
        (("--from-nccl-tests", "across.json"), "inside a node were not measured"),
        (("--from-nccl-tests", "inside.txt", "--collective", "x"), "must be one of all-reduce"),
        (("--from-nccl-tests", "inside.txt", "--ranks", "0"), "whole number"),
        (("--from-nccl-tests", "inside.txt", "--ranks", "5"), "are those of 8 ranks"),
        (("--from-nccl-tests", "inside.txt", "--ranks", "8,8"), "2 numbers of ranks for 1 files"),
        (("--from-nccl-tests", "across.json", "--topology", "dgx-h100:2"), "such as dgx-h100:4"),
        (("--from-nccl-tests", "inside.txt", "--topology", "nope"), "neither a preset"),
        (("--from-nccl-tests", "inside.txt", "--topology", "tpu-v5p"), "whole nodes"),
        (("--from-nccl-tests", "inside.txt", "--library", "rccl"), "name it with --topology"),
        (("--from-nccl-tests", "inside.txt", "--use", "gpu=4"), "--use: is of a topology; name"),
        (("--from-nccl-tests", "inside.txt", "--algorithm", "x"), "must be best or some of"),
        (("--from-nccl-tests", "inside.txt", "--algorithm", "nvls"), "known to libraries only"),
        (("--from-nccl-tests", "inside.txt", "-o", "no/such/folder"), "existing folder"),
        (("--from-nccl-tests", "inside.txt", "--note", " "), "one line of 1 to 500"),
        (("--from-nccl-tests", "inside.txt", "--note", "a\nb"), "one line of 1 to 500"),
        (("--from-nccl-tests", "inside.txt", "--note", "a" * 501), "one line of 1 to 500"),
        (("--runs", "runs.csv", "--note", "a"), "are for links"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(folder)
    done = cli("calibrate", *arguments)
    assert_one_error(done)
    assert message in done.err


@pytest.mark.parametrize("name", ["broadcast", "Broadcast", "ncclBcast", "broadcast_perf"])
def test_a_collective_is_named_in_any_spelling(folder: Path, name: str) -> None:
    """What a file does not tell: its rows have busbw = algbw, as those of a send have, too."""
    rows = printed(
        made_samples(TRUTH, INSIDE, Collective.BROADCAST, sizes=SIZES), 8, 1, "broadcast"
    )
    (folder / "told.txt").write_text(rows)
    (folder / "untold.txt").write_text(rows.replace("broadcast_perf", "x"))
    asked = ("calibrate", "--from-nccl-tests", str(folder / "untold.txt"))
    assert_one_error(cli(*asked))
    found = cli(*asked, "--collective", name)
    told = cli(*asked[:2], str(folder / "told.txt"))
    assert found.code == 0, found.err
    assert found.out.replace("untold.txt", "told.txt").split() == told.out.split()

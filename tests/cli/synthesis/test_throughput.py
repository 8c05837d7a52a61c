"""`p2smt synthesize --objective throughput`: rates, files, JSON, failures, bad input."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.tools import TINY, Outcome, assert_one_error, cli

RING = "--fabric ring:4 --collective all-gather"


def asked(arguments: str) -> Outcome:
    """What a question of throughput says."""
    return cli("synthesize", "--objective", "throughput", *shlex.split(arguments))


@pytest.mark.parametrize(
    ("question", "first"),
    [
        (RING, "optimal: 8/3 chunks a round (2.667)"),
        ("--fabric dgx-a100 --collective all-gather", "optimal: 342.9 GB/s (2400/7)"),
        ("--fabric dgx1 --collective broadcast --root 3", "optimal: 150 GB/s"),
        ("-t dgx-h100:2 --collective reduce-scatter", "optimal: 480 GB/s"),
        ("--fabric ring:4 --collective all-reduce", "optimal: 4/3 chunks a round (1.333)"),
    ],
)
def test_the_rate_stands_first(question: str, first: str) -> None:
    done = asked(question)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == first
    assert len(done.out.splitlines()) <= 20


def test_a_gap_is_told_and_is_no_proof() -> None:
    done = asked("--fabric dgx-a100:2 --collective all-reduce --without 'card 3' --json")
    data = done.json()
    assert (done.code, data["status"]) == (3, "gap")
    assert data["gap"] == "1/207"


def test_a_forest_is_written_and_verified(tmp_path: Path) -> None:
    path = str(tmp_path / "forest.json")
    done = asked(f"-t dgx-h100:2 --collective all-gather --without 'card 3' -o {path}")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(f"forest written to {path}\n")
    for fabric in ([], ["--fabric", "dgx-h100:2"]):
        assert cli("verify", path, *fabric).code == 0
    other = cli("verify", path, "--fabric", "dgx-h100:3")
    assert (other.code, other.out.split(":")[0]) == (1, "invalid")
    data = json.loads(Path(path).read_text())
    Path(path).write_text(json.dumps(data | {"bound": "1/7"}))
    assert cli("verify", path).code == 1
    Path(path).write_text(json.dumps(data | {"bound": 1}))
    assert_one_error(cli("verify", path))


def test_a_schedule_is_written_verified_and_run(tmp_path: Path) -> None:
    path, forest = tmp_path / "algo.xml", tmp_path / "forest.json"
    svg = tmp_path / "trees.svg"
    done = asked(f"{RING} --pieces 3 -o {path} --certificate {forest} --svg {svg} --json")
    data = done.json()
    assert (done.code, done.err) == (0, "")
    assert data["files"] == {"output": str(path), "certificate": str(forest), "svg": str(svg)}
    assert svg.read_text().startswith("<svg")
    made = data["schedule"]
    assert (made["pieces"], made["chunks"], made["verdict"]) == (3, 3, "valid")
    assert cli("verify", str(path)).code == cli("verify", str(forest)).code == 0
    assert cli("run", str(path), "--backend", "reference", "--payload", "1KiB").code == 0


def test_the_time_limit_leaves_it_unknown(tmp_path: Path) -> None:
    done = asked(f"{RING} --time-limit 0 -o {tmp_path / 'forest.json'}")
    assert (done.code, done.err) == (3, "")
    assert done.out.startswith("unknown: the time limit came")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--fabric ring:4 --collective all-to-all", "throughput of all-to-all"),
        (f"{RING} --without 'link 0-1,link 2-3'", "ranks 1, 2 of ring:4"),
        (f"{RING} --without 'link 0-2'", "link 0-2"),
        (f"{RING} --pieces 0", "pieces '0'"),
        (f"{RING} --height 0", "height '0'"),
        (f"{RING} --height 1", "rank 0 needs 2 to reach all ranks; allow 2 or more"),
        (f"{RING} --pieces 2 -o algo.txt", "algo.txt"),
        (f"{RING} -o algo.xml", "add --pieces"),
        (f"{RING} --force", "--force"),
        (f"{RING} --steps 3", "--steps"),
        (f"{RING} --pareto", "--pareto"),
        (f"{RING} --symmetry none", "--symmetry"),
        (f"{RING} --svg a.png", "a.png"),
        (f"{RING} --journal a.jsonl", "--journal"),
        (f"{RING} -t dgx-h100", "--fabric and --topology"),
        (f"{RING} --root 1", "it has no root"),
        ("--fabric ring:4 --collective broadcast --root 4", "the ranks are 0 to 3"),
        ("--collective all-gather", "--fabric and --topology"),
        ("--fabric ring:4", "--collective"),
        ("-t dgx-h100:2 --collective all-gather --unit 25GB/s", "--unit"),
        ("-t dgx-h100:200 --collective all-gather", "1600 devices"),
        ("-t dgx-h100:2 --collective all-gather --without 'link 0-1'", "has no links"),
    ],
)
def test_bad_input_is_one_line(
    arguments: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = asked(arguments)
    assert_one_error(done)
    assert words in done.err
    assert not list(tmp_path.iterdir())


def test_nothing_that_is_read_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    for options in (f"--certificate {path}", f"-o {path}", f"--pieces 2 -o {path}"):
        done = asked(f"-t {path} --collective all-gather {options}")
        assert_one_error(done)
        assert path.read_text() == TINY


@pytest.mark.parametrize(
    "option", ["-t tiny.yaml", "--without 'link 0-1'", "--pieces 4", "--height 4"]
)
def test_options_of_throughput_need_the_objective(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(TINY)
    done = cli("synthesize", *shlex.split(f"{RING} {option} --steps 2 --rounds 3 --chunks 2"))
    assert_one_error(done)
    assert "--objective" in done.err


def test_failures_have_no_prices() -> None:
    done = cli("synthesize", *shlex.split("-t dgx1-v100:1 --size 1MiB --without 'link 0-1'"))
    assert_one_error(done)
    assert "prices of payloads know no failed links" in done.err

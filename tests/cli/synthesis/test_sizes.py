"""`p2smt synthesize --size`: verdicts, files with their intervals, certificates, bad input."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from p2smt.synthesis import best_rate, by_size
from tests.cli.tools import RACKS, TINY, assert_one_error, cli

NODE = "-t dgx1-v100:1 --fabric dgx1 --collective all-gather"
FOUR = """
name: mine
library: none
levels:
  - {name: gpu, size: 4, link: {kind: ring, bandwidth: 100 GB/s, latency: 2 us}}
"""
RANGE = f"{NODE} --size 1KiB..1GiB*32"


def answered(arguments: str, code: int = 0) -> dict[str, Any]:
    done = cli("synthesize", *shlex.split(arguments), "--json")
    assert done.code == code
    found: dict[str, Any] = done.json()
    return found


def test_a_range_is_proved_and_says_whose_price_is_lower() -> None:
    found = answered(RANGE)
    assert (found["status"], found["ratio"]) == ("proved", "1")
    assert [one["found"]["steps"] for one in found["pieces"]] == [2, 3]
    rows = found["sizes"]
    assert [row["size_bytes"] for row in rows] == [2**10, 2**15, 2**20, 2**25, 2**30]
    assert all(row["seconds"] == row["bound_s"] for row in rows)
    assert found["library"] == "nccl-2.30"
    cheaper = [row["price_s"] < row["library_s"] for row in rows]
    firsts = [(one["from_bytes"], one["name"] == "synthesized") for one in found["faster"]]
    for row, own in zip(rows, cheaper, strict=True):
        assert own == [name for low, name in firsts if low <= row["size_bytes"]][-1]


def test_a_gap_is_told_first_and_not_settled() -> None:
    done = cli("synthesize", *shlex.split(f"{RANGE} --max-steps 2"))
    assert done.code == 3
    assert re.match(
        r"proved optimal in the model from 1 KiB to \S+ \w+; "
        r"at most 1\.\d+ times the least time in the model from \S+ \w+ to 1 GiB\n",
        done.out.replace("\n", " ")
        .replace("all-gather on", "\nall-gather on")
        .replace(" \n", "\n"),
    )
    assert "no gain over a library is claimed" in done.out.replace("\n", " ")


def test_a_stop_is_told_on_the_first_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C when three steps are searched: what two have is there, with its proof."""

    def interrupted(*asked: Any) -> Any:
        if asked[1] == 3:
            raise KeyboardInterrupt
        return best_rate.best_rate(*asked)

    monkeypatch.setattr(f"{by_size.__name__}.best_rate", interrupted)
    done = cli("synthesize", *shlex.split(f"{RANGE} --quiet"))
    assert done.code == 130
    assert "proved optimal in the model from 1 KiB to" in done.out
    assert "it was stopped; more time may find better ones" in done.out.split("\n\n")[0]


def test_a_stop_after_the_proof_promises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C when three steps were searched, which prove the whole range."""

    def interrupted(question: best_rate.RateQuestion, steps: int, *more: Any) -> Any:
        found = best_rate.best_rate(question, steps, *more)
        question.searches[steps].stopped = steps == 3
        return found

    monkeypatch.setattr(f"{by_size.__name__}.best_rate", interrupted)
    done = cli("synthesize", *shlex.split(f"{RANGE} --quiet"))
    assert done.code == 130
    assert done.out.startswith("proved optimal in the model from 1 KiB to 1 GiB")
    assert "more time" not in done.out


def test_what_is_not_searched_is_said_where_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four GPUs in a ring 16 points a step; few bytes are proved without a search."""
    monkeypatch.setattr(best_rate, "MOST_POINTS", 40)
    path = tmp_path / "mine.yaml"
    path.write_text(FOUR, encoding="utf-8")
    asked = f"-t {path} --collective all-reduce --max-steps 3 --size"
    done = cli("synthesize", *shlex.split(f"{asked} 1KiB..1GiB"), "--details")
    assert done.code == 3
    assert "too large to search in 3 steps or more: of known parts or one chunk" in done.out
    assert answered(f"{asked} 1KiB..1GiB", 3)["unsearched"] is not None
    assert answered(f"{asked} 1B")["unsearched"] is None


def test_a_schedule_a_piece_says_for_which_payloads(tmp_path: Path) -> None:
    """The least and the most of each are those of the answer, and every file verifies."""
    files = f"-o {tmp_path} --certificate {tmp_path / 'sizes.json'} --svg {tmp_path / 'times.svg'}"
    found = answered(f"{RANGE} {files}")
    pieces = found["pieces"]
    assert found["svg"] == str(tmp_path / "times.svg")
    drawn = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert drawn == ["times-2-3-2.svg", "times-3-7-6.svg", "times.svg"]
    names = [Path(one["found"]["files"]["output"]).name for one in pieces]
    assert names == ["all-gather-dgx1-2-3-2.xml", "all-gather-dgx1-3-7-6.xml"]
    for one in pieces:
        path = Path(one["found"]["files"]["output"])
        ends = re.search(r'minBytes="(\d+)" maxBytes="(\d+)"', path.read_text())
        assert ends is not None
        assert [int(end) for end in ends.groups()] == [one["from_bytes"], one["to_bytes"]]
        assert cli("verify", str(path)).code == 0
    proof = str(tmp_path / "sizes.json")
    for fabric in ((), ("--fabric", "dgx1")):
        checked = cli("verify", proof, *fabric)
        assert checked.code == 0
        assert "take the least time" in " ".join(checked.out.split())
    assert cli("verify", proof, "--json").json()["verdict"] == "valid"
    assert cli("verify", proof, "--fabric", "dgx2").code == 1


def test_the_first_screen_has_four_lines_on_files(tmp_path: Path) -> None:
    """The certificate and the picture of all sizes first; the answer keeps its table."""
    files = f"-o {tmp_path}/a.xml --svg {tmp_path}/a.svg --certificate {tmp_path}/c.json"
    short, whole = (
        cli("synthesize", *shlex.split(f"{RANGE} {files} {more}")).out.split("\n\n")
        for more in ("", "--details")
    )
    names = ["c.json", "a.svg", "a-2-3-2.xml", "a-2-3-2.svg", "a-3-7-6.xml", "a-3-7-6.svg"]
    shown = [[name for name in names if f"/{name}" in " ".join(each)] for each in (short, whole)]
    assert shown == [names[:3], names]
    assert ".. 3 more files: --details" in short[-1]
    assert any(part.startswith("times\n") for part in short)


def test_another_unit_is_another_claim(tmp_path: Path) -> None:
    """The seconds of a byte come from the unit: of half a unit a round takes twice as long."""
    proof = tmp_path / "sizes.json"
    answered(f"{NODE} --size 1KiB --certificate {proof}")
    data = json.loads(proof.read_text())
    assert cli("verify", str(proof), "--fabric", "dgx1").code == 0
    answered(f"{NODE} --size 1KiB --unit 12.5GB/s --certificate {proof}")
    assert json.loads(proof.read_text())["beta_s"] != data["beta_s"]
    refused = cli("verify", str(proof), "--fabric", "dgx1")
    assert refused.code == 1
    assert "another fabric" in refused.out.replace("\n", " ")


def test_one_payload_has_one_file_for_any(tmp_path: Path) -> None:
    found = answered(f"{NODE} --size 64MiB -o {tmp_path / 'algo.xml'}")
    assert [Path(one["found"]["files"]["output"]).name for one in found["pieces"]] == ["algo.xml"]
    assert 'minBytes="0"' in (tmp_path / "algo.xml").read_text()
    assert len(found["sizes"]) == 1


def test_a_certificate_is_held_against_a_topology(tmp_path: Path) -> None:
    """Levels of one's own are the fabric, too; a slower step is another topology's."""
    level = "{name: gpu, size: 4, link: {kind: switch, bandwidth: 100 GB/s, latency: %d us}}"
    mine, slow = tmp_path / "mine.yaml", tmp_path / "slow.yaml"
    for path, latency in ((mine, 2), (slow, 3)):
        path.write_text(
            f"name: mine\nlibrary: none\nlevels:\n  - {level % latency}\n", encoding="utf-8"
        )
    proof = str(tmp_path / "proof.json")
    asked = ("-t", str(mine), "--collective", "all-gather", "--size", "1MiB")
    assert cli("synthesize", *asked, "--certificate", proof).code == 0
    held = cli("verify", proof, "-t", str(mine), "--fabric", str(mine), "--json")
    assert held.code == 0
    assert held.json()["not_checked"] == ["that there are these schedules (their files show it)"]
    refused = cli("verify", proof, "-t", str(slow))
    assert refused.code == 1
    assert "alpha_s is not the latency of a step on mine" in refused.out
    other = cli("verify", proof, "-t", str(mine), "--fix")
    assert other.code == 2
    assert "a proof about payloads: takes no options of schedules: --fix" in other.err


def test_a_certificate_with_one_changed_fraction_is_refused(tmp_path: Path) -> None:
    proof = tmp_path / "sizes.json"
    answered(f"{NODE} --size 1KiB --certificate {proof}")
    data = json.loads(proof.read_text())
    data["alpha_s"] = "1/100000"
    proof.write_text(json.dumps(data))
    assert cli("verify", str(proof)).code == 1


def test_without_a_library_nothing_stands_beside() -> None:
    found = answered(f"{NODE} --size 1MiB --library none")
    assert (found["library"], found["sizes"][0]["library_s"]) == (None, None)
    assert [one["name"] for one in found["faster"]] == ["synthesized"]


def test_the_time_limit_counts_the_making_of_the_fabric() -> None:
    asked = "-t dgx-a100:13 --fabric mesh:104 --collective broadcast --size 1MiB --time-limit 0"
    found = answered(asked, 3)
    assert (found["ranks"], found["pieces"]) == (None, [])
    assert found["ending"] == "the time limit came before the fabric was made"


def test_no_time_leaves_nothing_proved() -> None:
    found = answered(f"{NODE} --size 1MiB --time-limit 0", 3)
    assert (found["ratio"], found["pieces"], found["spans"]) == (None, [], [])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--fabric dgx1 --collective all-gather --size 64MiB", "--size: needs a topology"),
        (f"{NODE} --size 1GiB..1KiB", "must have two ends and grow"),
        (f"{NODE} --size 1KiB..1KiB", "must have two ends and grow"),
        (f"{NODE} --size 0B", "is less than one byte"),
        (f"{NODE} --size 0B..1KiB", "is less than one byte"),
        (f"{NODE} --size 1KiB,1MiB", "is a list"),
        (f"{NODE} --size ''", "--size ''"),
        (f"{NODE} --size 64", "with a unit"),
        (f"{NODE} --size 1MiB --pareto", "--pareto: does not go with --size"),
        (f"{NODE} --size 1MiB --steps 2", "--steps: does not go with --size"),
        (f"{NODE} --size 1MiB --symmetry none --processes 2", "does not go with --size"),
        (f"{NODE} --size 1MiB --max-steps 1", "every schedule has at least 2"),
        (f"{NODE} --size 1MiB --library nccl-9", "is not known"),
        (f"{NODE} --size 1MiB --force", "goes with --output"),
        (f"{NODE} --pareto", "--topology: goes with --size"),
        ("--fabric dgx1 --collective all-gather --pareto --library gloo", "--library: goes with"),
        ("-t dgx1-v100:1 --size 1MiB", "--collective: is missing"),
        ("-t dgx1-v100:2 --fabric dgx1 --collective all-gather --size 1MiB", "give both as many"),
        ("-t dgx1-v100:1 --fabric ring:8 --collective all-gather --size 1MiB", "without a unit"),
        (f"{NODE} --size 1MiB -o a.json --certificate a.json", "would overwrite each other"),
        (f"{NODE} --size 1MiB --link-bandwidth 25GB/s", "--link-bandwidth"),
        ("-t dgx-a100:1 --collective reduce --size 1MiB --link-bandwidth 1GB/s", "--link-band"),
    ],
)
def test_bad_input_is_one_line(arguments: str, words: str) -> None:
    done = cli("synthesize", *shlex.split(arguments))
    assert_one_error(done)
    assert words in done.err


def test_a_topology_that_is_read_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(TINY)
    asked = f"-t {path} --fabric dgx1 --collective all-gather --size 1MiB -o {path}"
    done = cli("synthesize", *shlex.split(asked))
    assert_one_error(done)
    assert "is a file that is read" in done.err
    assert path.read_text() == TINY


def test_no_schedule_and_its_certificate_share_a_file(tmp_path: Path) -> None:
    asked = "-t dgx-a100:1 --collective all-gather --size 1KiB..1MiB"
    files = f"-o {tmp_path}/a.json --certificate {tmp_path}/a-1-7-1.json"
    done = cli("synthesize", *shlex.split(f"{asked} {files}"))
    assert_one_error(done)
    assert "could be written over by a schedule of" in done.err
    assert not [*tmp_path.iterdir()]


def test_levels_of_a_file_are_a_fabric(tmp_path: Path) -> None:
    """Two nodes of four: a step costs the outer latency; uneven hosts have no matrix."""
    path = tmp_path / "mine.yaml"
    path.write_text(TINY)
    found = answered(f"-t {path} --collective all-gather --size 1KiB")
    assert (found["ranks"], found["alpha_s"], found["library"]) == (8, "1/100000", None)
    path.write_text(RACKS)
    done = cli("synthesize", "-t", str(path), "--collective", "all-gather", "--size", "1KiB")
    assert_one_error(done)
    assert "are not spread evenly" in done.err


def test_defaults_of_other_commands_do_not_disturb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topology and a library for all commands, where no payload is asked about."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p2smt.toml").write_text('[defaults]\nlibrary = "nccl-2.30"\n')
    asked = "--fabric ring:4 --collective all-gather --steps 2 --rounds 3 --chunks 2"
    assert cli("synthesize", *shlex.split(asked)).code == 0

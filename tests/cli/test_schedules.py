"""`verify`, `convert` and `classics` on schedule files, as a user gives them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from p2smt.files.yaml_text import dump_yaml
from p2smt.schedules.language.instance import parse_schedule
from p2smt.schedules.language.schedule_text import dump_schedule
from tests.cli.tools import Outcome, assert_one_error, cli

SYMBOLIC = Path(__file__).parents[1] / "schedules" / "symbolic"
BLUE = "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1"


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """A ring all-reduce of four ranks as MSCCL XML."""
    path = tmp_path / "ring.xml"
    made = cli(
        "classics", "ring-all-reduce", "--ranks", "4", "--set", "fused=true", "-o", str(path)
    )
    assert made.code == 0, made.err
    return path


def said(outcome: Outcome) -> str:
    """What was printed, as one line."""
    return " ".join(outcome.out.split())


def refused(outcome: Outcome, word: str) -> None:
    """Refused in one line that says this."""
    assert_one_error(outcome)
    assert word in outcome.err


def edited(path: Path, old: str, new: str, count: int = 1) -> Path:
    """The file with a text replaced."""
    text = path.read_text()
    assert old in text
    wrong = path.with_name(f"wrong{path.suffix}")
    wrong.write_text(text.replace(old, new, count))
    return wrong


def test_a_right_schedule(ring: Path) -> None:
    outcome = cli("verify", str(ring))
    assert outcome.code == 0
    assert outcome.out.startswith("valid: allreduce in place, 4 ranks")
    assert "right in every interleaving" in said(outcome)
    data = cli("verify", str(ring), "--json").json()
    assert (data["verdict"], data["violations"], data["min_fifo_depth"]) == ("valid", [], 2)
    assert data["schedule"]["format"] == "msccl-xml"


def test_a_wrong_schedule_names_line_step_and_chunk_and_its_repair(ring: Path) -> None:
    """The last receive of a ring reduces, where it should store what comes."""
    wrong = edited(ring, 'type="r"', 'type="rrc"')
    line = next(n for n, t in enumerate(wrong.read_text().splitlines(), 1) if 'type="rrc"' in t)
    outcome = cli("verify", str(wrong), "--fix")
    assert outcome.code == 1
    assert f"rrc (line {line}) adds the message from" in said(outcome)
    assert "it reduces where a plain receive was probably meant" in said(outcome)
    assert "receive without reducing; with that the schedule is valid" in said(outcome)
    data = cli("verify", str(wrong), "--fix", "--json").json()
    (broken,) = data["violations"]
    assert broken["kind"] == "doubled-contribution"
    assert {"rank", "chunk", "step", "message"} <= broken.keys()
    assert broken["steps"][0]["line"] == line
    assert data["fix"]["repair"]["line"] == line


def test_a_deadlock_and_the_depth_that_helps(ring: Path) -> None:
    outcome = cli("verify", str(ring), "--fifo-depth", "1")
    assert outcome.code == 1
    assert "deadlock: " in said(outcome)
    assert "every step would get its turn from depth 2 on" in said(outcome)


def test_a_race_shows_its_interleaving_and_writes_it(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.xml"
    cli("classics", "one-shot-all-reduce", "--ranks", "3", "-o", str(pairs))
    text = pairs.read_text()
    waiting = re.compile(r'(<step [^>]*type="re"[^>]*depid=")[0-9]+(" deps=")[0-9]+')
    wrong = tmp_path / "wrong.xml"
    wrong.write_text(waiting.sub(r"\1-1\2-1", text, count=1))
    assert wrong.read_text() != text
    trace = tmp_path / "trace.json"
    outcome = cli("verify", str(wrong), "--trace", str(trace))
    assert outcome.code == 1, outcome.out + outcome.err
    assert "in no certain order" in said(outcome)
    assert "interleaving that shows it" in said(outcome)
    assert outcome.out.endswith(f"trace written to {trace}\n")
    events = json.loads(trace.read_text())["traceEvents"]
    assert any(event["ph"] == "X" for event in events)


def test_the_predicted_time(ring: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    where = ("--topology", "dgx-a100:1", "--cost", "64MiB")
    outcome = cli("verify", str(ring), *where, "--trace", str(trace))
    assert outcome.code == 0
    assert "predicted: " in said(outcome)
    assert "bottleneck: gpu" in said(outcome)
    data = cli("verify", str(ring), *where, "--json").json()["cost"]
    assert data["seconds"] >= data["bound_s"] > 0
    assert json.loads(trace.read_text())["otherData"]["time"] == "predicted"


def test_every_size_of_a_symbolic_schedule() -> None:
    ring = str(SYMBOLIC / "ring_all_reduce.yaml")
    outcome = cli("verify", ring, "--upto", "5")
    assert outcome.code == 0
    assert "valid (each instance checked): n = 2..5" in said(outcome)
    assert "all n >= 2" in said(outcome)
    data = cli("verify", ring, "--upto", "5", "--json").json()
    assert (data["verdict"], data["all_sizes"], len(data["instances"])) == ("valid", True, 4)
    assert cli("verify", ring, "--set", "n=7").out.startswith("valid: allreduce in place, 7 ranks")
    refused(cli("verify", ring), "n")


def test_a_program_chunk_by_chunk() -> None:
    one = cli("verify", "--program", BLUE, "--levels", "2,4")
    assert (one.code, "l1 = 2, l2 = 4" in said(one)) == (0, True)
    data = cli("verify", "--program", BLUE, "--levels", "2,2", "--upto", "8", "--json").json()
    assert [i["ranks"] for i in data["instances"]] == [4, 6, 8, 6, 8]
    assert not data["all_sizes"]
    wrong = cli(
        "verify", "--program", "all-reduce inside l1; all-reduce inside root", "--levels", "2,2"
    )
    assert wrong.code == 1
    assert "doubled-contribution" in said(wrong)


def test_conversion_there_and_back(ring: Path, tmp_path: Path) -> None:
    yaml, again = tmp_path / "ring.yaml", tmp_path / "again.xml"
    assert cli("convert", str(ring), str(yaml)).code == 0
    assert cli("convert", str(yaml), str(again)).code == 0
    assert again.read_text() == ring.read_text()
    assert cli("convert", str(ring), str(tmp_path / "ring.json")).code == 0
    assert cli("verify", str(tmp_path / "ring.json")).code == 0


def test_a_plan_becomes_a_schedule_that_verifies(tiny: str, tmp_path: Path) -> None:
    plan, xml = tmp_path / "plan.json", tmp_path / "plan.xml"
    asked = ("--axes", "dp=8", "--reduce", "dp=1GiB", "-o", str(plan))
    assert cli("solve", "-t", tiny, *asked).code == 0
    for algorithm in ("ring", "tree", "direct"):
        made = cli("convert", str(plan), str(xml), "--algorithm", algorithm)
        assert made.code == 0, made.err
        assert cli("verify", str(xml)).code == 0
    refused(cli("convert", str(plan), str(xml), "--request", "2"), "request")
    refused(cli("verify", str(plan), "--fix"), "plan file")


def test_a_classic_as_json_is_one_object_that_holds_the_schedule_file(tmp_path: Path) -> None:
    named = ("classics", "ring-all-reduce", "--ranks", "3")
    made = cli(*named, "--json").json()
    assert (made["name"], made["ranks"], made["output"]) == ("ring-all-reduce", 3, None)
    assert dump_yaml(made["schedule"]).startswith("p2smt_schedule: 1")
    read = parse_schedule(dump_yaml(made["schedule"]), "made")
    assert dump_schedule(read) == cli(*named).out
    assert made["steps"] == len(read.steps)
    path = str(tmp_path / "ring.xml")
    written = cli(*named, "--json", "-o", path).json()
    assert (written["output"], written["schedule"]) == (path, None)
    assert Path(path).read_text().startswith("<algo")


def test_the_list_of_classics() -> None:
    assert "double-binary-tree-all-reduce" in cli("classics").out
    names = [classic["name"] for classic in cli("classics", "--json").json()["classics"]]
    assert "swing-all-reduce" in names
    assert cli("classics", "chain-broadcast", "--ranks", "3").out.startswith("p2smt_schedule: 1")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("verify",), "either a file or --program"),
        (("verify", "no.xml", "--program", "x"), "either a file or --program"),
        (("verify", "RING", "--levels", "2"), "for --program"),
        (("verify", "RING", "--fifo-depth", "0"), "fifo depth"),
        (("verify", "RING", "--root", "x"), "root"),
        (("verify", "RING", "--cost", "1GiB"), "go together"),
        (("verify", "RING", "--topology", "dgx-a100:1"), "go together"),
        (("verify", "RING", "--upto", "4"), "YAML"),
        (
            ("verify", "--program", BLUE, "--levels", "2,2", "--upto", "3"),
            "upto 3: counts ranks; 2 levels have at least 4, two a level; give 4 or more",
        ),
        (("verify", "RING", "--set", "n"), "n=8"),
        (("verify", "RING", "--collective", "allgatherx"), "allgatherx"),
        (("convert", "RING", "out.txt"), "formats are"),
        (("convert", "RING", "out.xml", "--request", "1"), "for plans"),
        (("convert", "none.xml", "out.xml"), "none.xml"),
        (("classics", "rings"), "'rings': is not known; `p2smt classics` lists them\n"),
        (("classics", "ring-allreduce"), "lists them; did you mean 'ring-all-reduce'?"),
        (("classics", "ring-all-reduce", "--ranks", "1"), "1"),
        (("classics", "ring-all-reduce", "--set", "colour=1"), "colour"),
        (("classics", "ring-all-reduce", "--set", "channels"), "chunks=4"),
        (("classics", "-o", "x.xml"), "name one"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], word: str, ring: Path) -> None:
    given = [str(ring) if argument == "RING" else argument for argument in arguments]
    refused(cli(*given), word)


def test_the_groups_of_a_plan_are_files(tiny: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    asked = ("--axes", "dp=2,tp=4", "--reduce", "tp=1GiB", "--fix", "tp=node:2")
    assert cli("solve", "-t", tiny, *asked, "-o", str(plan)).code == 0
    for ending in ("xml", "json"):
        made = cli("convert", str(plan), str(tmp_path / f"x.{ending}"))
        assert made.code == 0, made.err
        for number in (1, 2):
            assert cli("verify", str(tmp_path / f"x.{number}.{ending}")).code == 0
        assert not (tmp_path / f"x.{ending}").exists()
    assert "group 2 of 2, its ranks are devices" in said(made)
    assert "in the plan" in made.out
    alone = cli("convert", str(plan), str(tmp_path / "y.xml"), "--group", "2")
    assert alone.code == 0
    assert (tmp_path / "y.xml").read_text() == (tmp_path / "x.2.xml").read_text()
    refused(cli("convert", str(plan), str(tmp_path / "z.xml"), "--group", "3"), "1 to 2")
    refused(cli("convert", str(plan), str(tmp_path / "z.xml"), "--group", "0"), "group")
    kept = plan.read_bytes()
    refused(cli("convert", str(plan), str(plan), "--group", "1"), "is the plan itself")
    assert plan.read_bytes() == kept
    assert not list(tmp_path.glob("z*"))


def test_all_files_of_a_plan_or_none(tiny: str, tmp_path: Path) -> None:
    plan, folder = tmp_path / "plan.json", tmp_path / "out"
    asked = ("--axes", "dp=2,tp=4", "--reduce", "tp=1GiB", "--fix", "tp=node:2")
    assert cli("solve", "-t", tiny, *asked, "-o", str(plan)).code == 0
    (folder / "x.2.xml").mkdir(parents=True)
    refused(cli("convert", str(plan), str(folder / "x.xml")), "x.2.xml")
    assert [path.name for path in folder.iterdir()] == ["x.2.xml"]


def test_a_classic_as_a_plan_of_mscclpp(tmp_path: Path) -> None:
    file = str(tmp_path / "swing.json")
    assert cli("classics", "swing-all-reduce", "-o", file).code == 0
    outcome = cli("verify", file)
    assert outcome.code == 0
    assert "mscclpp-json" in said(outcome)


@pytest.mark.parametrize("end", ["xml", "json", "yaml"])
def test_as_many_steps_are_written_as_are_read(tmp_path: Path, end: str) -> None:
    first, path = str(tmp_path / "first.yaml"), str(tmp_path / f"ring.{end}")
    assert cli("classics", "ring-all-reduce", "--ranks", "4", "-o", first).code == 0
    made = cli("classics", "ring-all-reduce", "--ranks", "4", "-o", path)
    count = cli("verify", path, "--json").json()["schedule"]["steps"]
    assert made.out == f"{count} steps of 4 ranks written to {path}\n"
    assert cli("convert", first, path).out == made.out


@pytest.mark.parametrize(
    "command",
    [
        ("verify", str(SYMBOLIC / "ring_all_reduce.yaml"), "--set", "n=4", "--set", "n=8"),
        ("classics", "chain-broadcast", "--ranks", "4", "--set", "chunks=1", "--set", "chunks=2"),
    ],
)
def test_a_parameter_that_is_set_twice_is_refused(command: tuple[str, ...]) -> None:
    refused(cli(*command), "a parameter takes one value")


def test_the_option_and_the_place_name_one_output(ring: Path, tmp_path: Path) -> None:
    by_place, by_option = tmp_path / "a.json", tmp_path / "b.json"
    assert cli("convert", str(ring), str(by_place)).code == 0
    assert cli("convert", str(ring), "-o", str(by_option)).code == 0
    assert by_place.read_text() == by_option.read_text()
    before = ring.read_text()
    refused(cli("convert", str(ring), "-o", str(ring)), "is a file that is read")
    assert ring.read_text() == before
    refused(cli("convert", str(ring)), "give OUT, or -o FILE")
    refused(cli("convert", str(ring), str(by_place), "-o", str(by_option)), "drop one of them")


@pytest.mark.parametrize(
    ("topology", "basis", "why"),
    [
        ("dgx-a100:1", "fitted on a like system", ", tables are of the library's own choice"),
        ("TINY", "assumed", ", no library runs here"),
    ],
)
def test_a_predicted_time_has_its_range(
    topology: str, basis: str, why: str, ring: Path, tiny: str
) -> None:
    where = ("--topology", tiny if topology == "TINY" else topology, "--cost", "64MiB")
    data = cli("verify", str(ring), *where, "--json").json()
    cost = data["cost"]
    assert cost["range_s"][0] <= cost["seconds"] <= cost["range_s"][1]
    assert cost["basis"] == basis
    text = said(cli("verify", str(ring), *where))
    assert f": {basis}{why}" in text
    without = "the price of a call of nccl-2.20 is not in the time"
    assert (without in text) == (without in data.get("notes", ())) == (topology != "TINY")

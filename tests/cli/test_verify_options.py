"""`verify` on schedules: runtimes, collectives that files do not name, options without a use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.tools import assert_one_error, cli
from tests.interop.file_mutations import json_mutants, xml_mutants
from tests.interop.msccl.texts import ring
from tests.interop.mscclpp.plans import NOP, all_gather, lonely, pipeline

SYMBOLIC = Path(__file__).parents[1] / "schedules" / "symbolic"
BLUE = "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Schedules by a name."""
    texts = {
        "xml": ring(4),
        "nameless.xml": ring(4, coll=None),
        "unknown.xml": ring(4, coll="all_reduce"),
        "long.xml": cli("classics", "chain-broadcast", "--ranks", "2").out,
        "json": json.dumps(all_gather()),
        "pipeline.json": json.dumps(lonely([pipeline([NOP])])),
        "yaml": cli("classics", "ring-all-reduce", "--ranks", "4").out,
    }
    found = {}
    for name, text in texts.items():
        path = tmp_path / (name if "." in name else f"ring.{name}")
        path.write_text(text)
        found[name] = str(path)
    made = cli(
        *("classics", "chain-broadcast", "--ranks", "2", "--set", "chunks=257", "--force"),
        *("-o", found["long.xml"]),
    )
    assert made.code == 0
    return found


def test_limits_are_apart_from_the_verdict(files: dict[str, str]) -> None:
    plain = cli("verify", files["long.xml"])
    assert plain.code == 0
    lines = plain.out.splitlines()
    assert lines[0].startswith("valid: ")
    assert "runnable: no (MSCCL)" in lines
    assert "  lines 3, 264: the runtime runs at most 256 steps per block" in lines
    assert not any(line.startswith("warning") for line in lines)
    data = cli("verify", files["long.xml"], "--json").json()
    assert (data["verdict"], data["runtime"], data["runnable"]) == ("valid", "msccl", False)
    assert data["reasons"] == ["lines 3, 264: the runtime runs at most 256 steps per block"]
    assert data["warnings"] == []


@pytest.mark.parametrize(
    ("name", "runtime", "code"),
    [
        ("xml", "msccl", 0),
        ("long.xml", "msccl", 1),
        ("long.xml", "rccl", 1),
        ("xml", "mscclpp", 0),
        ("long.xml", "mscclpp", 0),
        ("json", "mscclpp", 0),
        ("json", "msccl", 1),
        ("yaml", "msccl", 0),
        ("nameless.xml", "msccl", 1),
    ],
)
def test_a_runtime_that_must_run_it(
    name: str, runtime: str, code: int, files: dict[str, str]
) -> None:
    more = ["--collective", "allreduce"] if name == "nameless.xml" else []
    found = cli("verify", files[name], "--runtime", runtime, *more)
    assert found.code == code
    assert found.out.startswith("valid: ")
    assert f"runnable: {'no' if code else 'yes'} (" in found.out
    own = {"xml": ("msccl", "rccl"), "json": ("mscclpp",)}.get(name.split(".")[-1], ())
    assert ("once it is converted" in found.out) == (runtime not in own)
    data = cli("verify", files[name], "--runtime", runtime, "--json", *more)
    assert data.code == code
    assert (data.json()["runtime"], data.json()["runnable"]) == (runtime, not code)
    assert bool(data.json()["reasons"]) == bool(code)


def test_p2smt_runs_every_yaml_file(files: dict[str, str]) -> None:
    data = cli("verify", files["yaml"], "--json").json()
    assert (data["runtime"], data["runnable"], data["reasons"]) == (None, True, [])
    assert "runnable" not in cli("verify", files["yaml"]).out


def test_a_wrong_schedule_stays_wrong_where_it_would_run(
    files: dict[str, str], tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.xml"
    wrong.write_text(Path(files["xml"]).read_text().replace('type="r"', 'type="rrc"', 1))
    found = cli("verify", str(wrong), "--runtime", "msccl")
    assert found.code == 1
    assert found.out.startswith("invalid: ")
    assert "runnable: yes (MSCCL)" in found.out


@pytest.mark.parametrize("name", ["nameless.xml", "unknown.xml"])
def test_a_collective_for_a_file_that_does_not_name_one(name: str, files: dict[str, str]) -> None:
    alone = cli("verify", files[name])
    assert_one_error(alone)
    assert ("name a collective with --collective" in alone.err) == (name == "nameless.xml")
    named = cli("verify", files[name], "--collective", "allreduce", "--json")
    assert named.code == 0
    assert named.json()["schedule"]["collective"] == "allreduce"
    other = cli("verify", files[name], "--collective", "allgather")
    assert (other.code, other.out.split(":")[0]) == (1, "invalid")


def test_another_collective_than_the_file_names(files: dict[str, str]) -> None:
    found = cli("verify", files["xml"], "--collective", "reduce", "--json").json()
    assert "line 1: the file is for 'allreduce': checked as reduce, as asked" in found["warnings"]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("xml", ("--root", "1"), "root 1: allreduce has no root; drop --root"),
        ("json", ("--root", "0"), "root 0: allgather has no root; drop --root"),
        ("yaml", ("--root", "1"), "--root: names the root of MSCCL XML and MSCCL++ JSON"),
        ("xml", ("--iterations", "2"), "--iterations: is for the pipelines of MSCCL++ JSON"),
        ("yaml", ("--iterations", "3"), "--iterations: is for the pipelines of MSCCL++ JSON"),
        ("json", ("--iterations", "2"), "2 iterations are asked for, and it has no pipeline"),
        ("yaml", ("--collective", "allgather"), "--collective: names the collective of"),
        ("yaml", ("--out-of-place",), "--out-of-place: is for files made for both uses, of MSCCL"),
        ("json", ("--out-of-place",), "--out-of-place: is for files made for both uses, of MSCCL"),
        ("xml", ("--runtime", "nccl"), "runtime 'nccl': is not known; one of msccl, rccl, mscc"),
        ("xml", ("--runtime", ""), "runtime '': is not known"),
    ],
)
def test_options_without_a_use(
    name: str, options: tuple[str, ...], words: str, files: dict[str, str]
) -> None:
    found = cli("verify", files[name], *options)
    assert_one_error(found)
    assert words in found.err


def test_options_with_a_use(files: dict[str, str]) -> None:
    assert cli("verify", files["pipeline.json"], "--iterations", "2").code in (0, 1)
    assert cli("verify", files["long.xml"], "--root", "0").code == 0
    assert cli("verify", files["long.xml"], "--root", "1").code == 1


@pytest.mark.parametrize(
    "options",
    [
        ("--root", "1"),
        ("--collective", "reduce"),
        ("--iterations", "2"),
        ("--out-of-place",),
        ("--runtime", "msccl"),
    ],
)
def test_families_and_programs_take_no_options_of_files(options: tuple[str, ...]) -> None:
    family = str(SYMBOLIC / "ring_all_reduce.yaml")
    assert_one_error(cli("verify", family, "--upto", "3", *options))
    assert_one_error(cli("verify", "--program", BLUE, "--levels", "2,2", *options))


@pytest.mark.exhaustive
@pytest.mark.parametrize("runtime", ["msccl", "rccl", "mscclpp"])
@pytest.mark.parametrize("suffix", ["xml", "json"])
def test_mutants_are_judged_or_refused_in_one_line(
    runtime: str, suffix: str, files: dict[str, str], tmp_path: Path
) -> None:
    mutants = (xml_mutants if suffix == "xml" else json_mutants)(Path(files[suffix]).read_text())
    path = tmp_path / f"mutant.{suffix}"
    for number, (_, text) in enumerate(mutants):
        if number % 40:
            continue
        path.write_text(text)
        found = cli("verify", str(path), "--runtime", runtime, "--time-limit", "2")
        assert found.code in (0, 1, 2, 3), found.err
        if found.code == 2:
            assert_one_error(found)
        else:
            assert "runnable: " in found.out

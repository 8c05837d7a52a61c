"""`export` and `verify` of tuner files on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2smt.interop.tuners.formats import recognised
from tests.cli.tools import cli

NCCL = ("export", "--to", "nccl-tuner")
CLUSTER = ("-t", "dgx-h100:2")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "takes a PLAN, or --topology"),
        (CLUSTER, "add --comms"),
        (("plan.json", *CLUSTER), "takes a PLAN, or --topology"),
        (("plan.json", "--comms", "1x8"), "a PLAN has groups"),
        ((*CLUSTER, "--comms", "8"), "nodes x ranks per node"),
        ((*CLUSTER, "--comms", "4x8"), "does not fit"),
        (("-t", "mi300x:2", "--comms", "1x8"), "is no NCCL"),
        ((*CLUSTER, "--comms", "1x8", "--margin", "5"), "--margin"),
        ((*CLUSTER, "--comms", "1x8", "--measured", "ring/ll=nowhere.txt"), "nowhere.txt"),
        ((*CLUSTER, "--comms", "1x8", "--by-host"), "options of hosts and ranks"),
    ],
)
def test_bad_input(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = cli(*NCCL, *words, "-o", "made.conf")
    assert done.code == 2
    assert said in done.err
    assert done.out == ""
    assert not Path("made.conf").exists()


def test_other_exports_take_no_communicators() -> None:
    assert cli("export", "plan.json", "--to", "csv", "--comms", "1x8").code == 2
    assert cli("export", "--to", "csv").code == 2


def test_an_unknown_format_is_told_the_one_that_is_meant() -> None:
    done = cli("export", "--to", "ompi-tunned", *CLUSTER, "--comms", "2x8")
    assert done.code == 2
    assert "did you mean 'ompi-tuned'?" in done.err
    assert "says nothing of where ranks go" in cli("order", "p.json", "--to", "mpich").err


def test_a_plan_of_what_the_format_lacks_is_refused(tmp_path: Path) -> None:
    plan, made = str(tmp_path / "plan.json"), tmp_path / "tuner.conf"
    assert (
        cli("solve", *CLUSTER, "--axes", "ep=16", "--all-to-all", "ep=64MiB", "-o", plan).code == 0
    )
    done = cli(*NCCL, plan, "-o", str(made))
    assert done.code == 2
    assert "has only all-to-all, which files of nccl-tuner do not have" in done.err
    assert not made.exists()
    of_nccl = cli("export", "--to", "ompi-tuned", plan, "-o", str(made))
    assert (of_nccl.code, made.exists()) == (2, False)
    assert "library nccl-2.30 of dgx-h100: is not the one that reads ompi-tuned" in of_nccl.err
    under = ("--library", "openmpi-5", "--axes", "ep=16", "--all-to-all", "ep=64MiB")
    assert cli("solve", *CLUSTER, *under, "-o", plan).code == 0
    assert cli("export", "--to", "ompi-tuned", plan, "-o", str(made)).code == 0


def test_a_file_of_no_format_is_named(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("hello world\n")
    done = cli("verify", str(tmp_path / "other.txt"), "--as", "mpich")
    assert done.code == 2
    assert "other.txt': is of none of the formats" in done.err


def test_a_plan_is_exported_by_its_groups(tmp_path: Path) -> None:
    plan, made = str(tmp_path / "plan.json"), str(tmp_path / "tuner.conf")
    solved = ("--axes", "dp=2,tp=8", "--reduce", "dp=1GiB", "--reduce", "tp=16MiB")
    assert cli("solve", *CLUSTER, *solved, "-o", plan).code == 0
    assert cli(*NCCL, plan, "-o", made).code == 0
    steps = [
        step for one in json.loads(Path(plan).read_text())["requests"] for step in one["steps"]
    ]
    groups = [group for step in steps for group in step["groups"]]
    nodes = [len({device // 8 for device in group}) for group in groups]
    comms = {f"{n}x{len(group) // n}" for n, group in zip(nodes, groups, strict=True)}
    done = cli("verify", made)
    assert done.code == 0
    assert {line.split()[0] for line in done.out.splitlines() if line[0] == " "} == comms


@pytest.mark.parametrize(
    ("text", "words", "code"),
    [
        ("allreduce,*,tree,ll,-1,1,8", (), 0),
        ("allreduce,*,tree,ll,-1,1,8", ("--as", "nccl-tuner"), 1),
        ("allreduce,0,9,tree,ll,-1,1,8", ("--as", "ncclx-tuner"), 1),
        ("allreduce,0,9,tree,ll,-1,1,8", (), 1),
        ("allreduce,0,9,tree,ll,-1,1,8", ("--as", "rccl-tuner"), 0),
        ("nothing of the kind", ("--as", "nccl-tuner"), 2),
        ("nothing of the kind", (), 2),
        ("allreduce,0,9,tree,ll,-1,1,8", ("--as", "nccl-tuna"), 2),
        ("allreduce,0,9,tree,ll,-1,1,8", ("--comms", "8"), 2),
        ("allreduce,0,9,tree,ll,-1,1,8", ("--prove",), 2),
    ],
)
def test_exit_codes(text: str, words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    path = tmp_path / "tuner.conf"
    path.write_text(text)
    done = cli("verify", str(path), *words)
    assert done.code == code
    if "--as" in words and code == 1:
        assert "other-format" in done.out
    assert (done.err.count("\n") == 1) == (code == 2)


@pytest.mark.parametrize(
    "text",
    [
        '{"ranks": [0,1,2,3,4,5,6,7,8,9,10]}',
        '"a",1,2,"ring",3,4,5,6',
        "- {name: node, size: 2, link: {kind: switch, a: 1, b: 2, c: 3, d: 4, e: 5}}",
        "rank,0,1,2,3,4,5,6",
        "",
        "# nccl-tuner is a word",
    ],
)
def test_other_files_are_not_taken_for_tuner_files(text: str) -> None:
    assert recognised(text) is None

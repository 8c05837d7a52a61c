"""Bad input: one clear line on stderr, exit code 2, nothing on stdout, never a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.hostile.test_options import UGLY
from tests.cli.tools import TINY, assert_one_error, cli

LONG = "x" * 100_000
NINES = "9" * 5000
SOLVE = ("solve", "-t", "azure-ndv4", "--axes", "dp=4,tp=4")
SIZED = (*SOLVE, "--reduce", "dp=1GiB")
PLACEMENTS = ("placements", "--levels", "2,2", "--axes", "2,2")
PROGRAMS = ("programs", "--factors", "2,2")
SCENE = ("-t", "azure-ndv4", "--axes", "dp=4,tp=4", "--reduce", "dp=1GiB")
MATRIX = "[[2,2],[1,4]]"
COMPARE = ("compare", *SCENE)
COST = ("cost", *SCENE, "--placement", MATRIX)
DEEP = "[" * 100_000 + "]" * 100_000

COMMAND_LINES: list[tuple[str, ...]] = [
    ("nothing",),
    ("--nothing",),
    ("topology",),
    ("topology", "nothing"),
    ("topology", "show"),
    ("topology", "list", "more"),
    ("schema", "nothing"),
    ("schema", ""),
    ("verify",),
    ("verify", "a", "b"),
    ("solve",),
    ("solve", "-t", "azure-ndv4"),
    ("solve", "--axes", "dp=4"),
    (*SOLVE, "--reduce"),
    (*SOLVE, "--nothing"),
    (*SIZED, "--json=yes"),
    (*SIZED, "positional"),
    SOLVE,
    ("placements",),
    ("placements", "--levels", "2,2"),
    ("placements", "--axes", "2,2"),
    (*PLACEMENTS, "-t", "azure-ndv4"),
    ("programs",),
    ("programs", "--factors", "1"),
    ("programs", "--factors", "2,4", "--nominal"),
    ("programs", "--factors", "2,4", "--library", "nccl-2.30"),
    (*PROGRAMS, "--axes", "2"),
    (*PROGRAMS, "-t", "azure-ndv4"),
    (*PROGRAMS, "--top", "2", "--limit", "2"),
    ("programs", "-t", "azure-ndv4"),
    ("programs", "-t", "azure-ndv4", "--axes", "dp=4,tp=4"),
    ("programs", "-t", "azure-ndv4", "--axes", "dp=4,tp=4", "--reduce", "dp"),
    ("programs", *SCENE[:4], "--reduce", "dp+dp", "--placement", MATRIX),
    ("programs", *SCENE[:4], "--reduce", "dp=1GiB*0", "--placement", MATRIX),
    ("compare",),
    (*COMPARE, "nothing"),
    (*COMPARE, ""),
    (*COMPARE, "[" * 100_000),
    (*COMPARE, LONG),
    (*COMPARE, "x=" + LONG),
    ("cost",),
    ("cost", *SCENE),
    ("cost", *SCENE[:4], "--reduce", "dp", "--placement", MATRIX),
    ("cost", "plan.json", "--algorithm", "ring"),
    ("cost", "plan.json", "--pipeline", "8"),
    (*COST, "--program", "all-reduce inside rack"),
    (*COST, "--program", "all-reduce inside gpu"),
    (*COST, "--program", "reduce inside root; reduce inside root"),
    (*COST, "--program", ";" * 100),
    (*COST, "--program", "all-reduce inside root;" * 1000),
    (*SIZED, "--max-steps-at", "root=1"),
    (*SIZED, "--reduce", "tp=1GiB", *("--reduce", "dp=1KiB") * 31),
    (*SOLVE, "--send", "dp+tp=1MiB"),
    ("solve", "-t", "azure-ndv4", "--axes", "dp=4,dp=4", "--reduce", "dp=1GiB"),
    ("solve", "-t", "azure-ndv4", "--axes", "dp=4,tp=8", "--reduce", "dp=1GiB"),
    ("solve", "-t", "azure-ndv4", "--axes", ",".join(f"a{n}=1" for n in range(9))),
    ("placements", "--levels", ",".join(["1"] * 9), "--axes", "1"),
    ("placements", "--levels", "2", "--axes", ",".join(["1"] * 9)),
]

# (a command line, an option of it, values that it refuses)
VALUES: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = [
    (SIZED, "--within", ("5", "0.05", "-1%", "1001%", "%", "5%%", "nan%", "1e1%", f"{NINES}%")),
    (SIZED, "--top", ("0", "-1", "1001", "2.0", "nan", NINES)),
    (SIZED, "--use", ("gpu", "=2", "gpu=", "gpu=0", "gpu=9", "gpu=x", "xx=2", f"gpu={NINES}")),
    (SIZED, "--hosts", ("n1", "n[1-", "n[9-1]", "n1,,n2", "/", "n[1-999999999]", "a b", "n1,n1")),
    (COMPARE, "--hosts", ("n1", "n[1-", "/dev/null", "./missing", "[]")),
    (COMPARE, "--time-limit", ("nan", "-1", NINES)),
    (SIZED, "--seed", ("-1", "1e3", "inf", str(2**31), NINES)),
    (SIZED, "--workers", ("0", "-1", "257", "two", str(10**30))),
    (SIZED, "--time-limit", ("nan", "inf", "-1", "1e400", "5 min", str(10**30), NINES)),
    (SIZED, "--length", ("0", "-3", "17", "five", str(10**30))),
    (SIZED, "--objective", ("mean", "SUM")),
    (SIZED, "--solver", ("gurobi", "cpsat,z3", "../cpsat")),
    (SIZED, "--algorithm", ("rings", "ring,ring", "ring,", "auto,ring")),
    (SIZED, "--pipeline", ("0", "-1", "1025", "2.5", "Auto", "auto,8", "nan", NINES)),
    (COST, "--pipeline", ("0", "none", "8 chunks", str(10**30))),
    (SIZED, "--forbid-form", ("outside", "Inside")),
    (SIZED, "--max-steps-at", ("node", "node=-1", "rack=1", "node=x", f"node={10**30}")),
    (SIZED, "--require", ("dp in node", "dp within", "xx within node", "dp within rack")),
    (SIZED, "--forbid", ("dp under node", "dp across pod", "dp")),
    (SIZED, "--fix", ("dp", "dp=node", "dp=node:0", "dp=node:1,node:2", "zz=node:1", "dp=x:1")),
    (SIZED, "--compare", ("[", "{}", "1", "null", '"a"', "[0.5]", "[true]", "[[1],2]", "[NaN]")),
    (SIZED, "--compare", ("[]", "[[]]", "[[1,2],[3]]", "[0,1]", "[0]" * 2, DEEP, f"[{NINES}]")),
    (SIZED, "--compare", (str([0] * 16), str(list(range(1, 17))), "[[4,4],[1,1]]", "[[-2,-2]]")),
    (COST, "--placement", ("[", "[1]", "[[1.0]]", "[[true,4]]", "[[4,1]]", "[]", "[[]]", DEEP)),
    (COST, "--placement", (f"[[{NINES},{NINES}]]", f"[[{10**30},1],[1,1]]", "[[0,2],[1,4]]")),
    (COST, "--reduce", ("xx=1GiB", "dp=", "=1GiB", "dp+xx=1GiB", "dp=1", "dp=-1GiB")),
    (COST, "--kind", ("send", "all-to-all", "sum")),
    (COST, "--program", ("all-reduce", "all reduce inside root", "reduce parallel node")),
    (SOLVE, "--reduce", ("dp", "dp=1", "dp=0 B", "dp=0.5B", "dp=nanB", "dp=1e400B", "dp=-1GiB")),
    (SOLVE, "--reduce", ("dp=1GiB*0", "dp=1GiB*-1", "dp=1GiB*x", f"dp=1GiB*{10**30}", "dp=1GiB*")),
    (SOLVE, "--reduce", ("xx=1GiB", "dp+dp=1GiB", "+=1GiB", "dp=1 Gb", f"dp={10**30}GiB")),
    (("solve", "--reduce", "dp=1GiB", "-t", "azure-ndv4"), "--axes", ("16", "dp", "dp=0", "dp=x")),
    (
        ("solve", "--reduce", "dp=1GiB", "-t", "azure-ndv4"),
        "--axes",
        ("dp=-16", "1dp=16", "d-p=16"),
    ),
    (("solve", "--reduce", "dp=1GiB", "-t", "azure-ndv4"), "--axes", (f"dp={10**30}", "dp=16,")),
    (("placements", "--axes", "4,4"), "--levels", ("0", "-4,4", "4,x", "4,", "4.0,4", "1e1,4")),
    (("placements", "--axes", "4,4"), "--levels", (str(10**30), NINES, "2,4")),
    (("placements", "--levels", "4,4"), "--axes", ("4,0", "x=4,x=4", "a=4,4", "a=4,b=5")),
    (PLACEMENTS, "--limit", ("0", "-1", "all", str(10**30))),
    (("programs",), "--factors", ("0", "2,-2", "2;2", "2,2,", str(10**30))),
    (PROGRAMS, "--kind", ("send", "reduce")),
    (PROGRAMS, "--top", ("0", "1001", "x")),
    (("topology",), "show", ("azure-ndv5000", "azure-ndv4:0", "azure-ndv4:x", ":")),
    (("topology",), "check", ("missing.yaml", "/", "/dev/null", "azure-ndv4:99999999")),
    (SIZED, "-o", ("/", "missing/plan.json", "plan.json/")),
]


def name_of(value: object) -> str:
    return ascii(value)[:40]


ONE_VALUE = {name: name for name in ("--axes", "--placement", "--factors", "--levels")}
ONE_VALUE["--topology"] = "-t"


def with_value(arguments: tuple[str, ...], option: str, value: str) -> tuple[str, ...]:
    """The command line with this value of an option, instead of one that takes one value."""
    words = list(arguments)
    if ONE_VALUE.get(option) in words:
        at = words.index(ONE_VALUE[option])
        del words[at : at + 2]
    return (*words, option, value)


@pytest.mark.parametrize("arguments", COMMAND_LINES, ids=lambda a: " ".join(a)[:60])
def test_command_lines(arguments: tuple[str, ...]) -> None:
    assert_one_error(cli(*arguments))


@pytest.mark.parametrize(("arguments", "option", "values"), VALUES, ids=name_of)
def test_values(arguments: tuple[str, ...], option: str, values: tuple[str, ...]) -> None:
    for value in values:
        outcome = cli(*with_value(arguments, option, value))
        assert_one_error(outcome)
        assert "give the option once" not in outcome.err, value[:60]


@pytest.mark.parametrize("value", UGLY, ids=name_of)
def test_ugly_names_of_a_plan(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An odd name is a name, but what is printed of it is printable."""
    monkeypatch.chdir(tmp_path)
    outcome = cli(*SIZED, "-o", value)
    if value in ("", "\x00", LONG):
        assert_one_error(outcome)
        assert list(tmp_path.iterdir()) == []
    else:
        assert outcome.code == 0
        assert all(line.isprintable() for line in outcome.out.split("\n"))
        assert [path.name for path in tmp_path.iterdir()] == [value]


def test_the_line_names_what_was_given_the_rule_and_the_remedy() -> None:
    line = cli(*SOLVE, "--reduce", "dp=64").err
    assert "'64'" in line
    assert "is not a non-negative decimal number with a unit" in line
    assert "write it like 512MiB" in line
    assert "see p2smt solve --help" in cli("solve", "--tpo", "3").err


# A change of the topology file TINY (old text, new text) and a word of the message.
FILES: list[tuple[str, str, str]] = [
    ("name: tiny", "name: tiny\ncolour: red", "colour"),
    ("size: 2", "size: 2, weight: 3", "weight"),
    ("kind: switch", "kind: swich", "switch"),
    ("kind: switch", "kind: torus", "dims"),
    ("size: 2", "size: 0", "size"),
    ("size: 2", "size: -2", "size"),
    ("size: 2", "size: 2.0", "size"),
    ("size: 2", "size: yes", "size"),
    ("size: 2", "size: .nan", "size"),
    ("size: 2", f"size: {10**30}", "size"),
    ("size: 2", "size: 1e400", "size"),
    ("size: 2", f"size: {NINES}", "size"),
    ("size: 4", "size: 1048576", "devices"),
    ("10 GB/s", "10", "bandwidth"),
    ("10 GB/s", "0 GB/s", "bandwidth"),
    ("10 GB/s", "-10 GB/s", "bandwidth"),
    ("10 GB/s", "nan GB/s", "bandwidth"),
    ("10 GB/s", "1e400 GB/s", "bandwidth"),
    ("10 GB/s", "10 GB", "bandwidth"),
    ("10 us", "10", "latency"),
    ("10 us", "-10 us", "latency"),
    ("10 us", ".inf", "latency"),
    ("latency: 10 us", "ports: 2", "latency"),
    ("name: gpu", "name: node", "node"),
    ("name: gpu", "name: root", "root"),
    ("name: gpu", "name: ''", "name"),
    ("name: gpu", "name: 'a b'", "a b"),
    ("[ring]", "[]", "algorithms"),
    ("[ring]", "[ring, ring]", "ring"),
    ("[ring]", "[ringg]", "ring"),
    ("library: none", "library: {broadcast: ringg}", "did you mean 'ring'"),
    ("library: none", "library: {brodcast: ring}", "did you mean 'broadcast'"),
    ("library: none", "library: [ring]", "name of a library"),
    ("library: none", "library: ncll-2.20", "did you mean 'nccl-2.20'"),
    (
        "library: none",
        "library: gloo\noverrides: {reduce: tree}",
        "gloo runs reduce only by scatter-gather",
    ),
    ("library: none\nalgorithms: [ring]", "algorithms: [direct]", "nccl-2.20 runs only"),
    ("switch,", "switch, fabric: nvlink,", "must be one of nvlink1"),
    ("switch,", "switch, efficiency: 2,", "part of the bandwidth"),
    ("switch,", "switch, hops: {ll: 5},", "hops.ll"),
    ("levels:", "levels: []\nmore:", "more"),
    ("name: tiny", "name: tiny\nname: other", "name"),
    ("name: tiny", "name: &a tiny", "anchors"),
    ("name: tiny", "name: !!python/object:os.system {}", ""),
    ("name: tiny", "name: [", "YAML"),
    ("name: tiny", "name: \x07", ""),
    ("name: tiny", "\tname: tiny", ""),
    (TINY, "", "empty"),
    (TINY, "[]", "mapping"),
    (TINY, "just text", "mapping"),
    (TINY, "levels: " + "[" * 1000, ""),
    (TINY, "name: x\nlevels:\n" + "- {name: l, size: 1}\n" * 400_000, "larger"),
]


@pytest.mark.parametrize(("old", "new", "word"), FILES, ids=name_of)
def test_topology_files(tmp_path: Path, old: str, new: str, word: str) -> None:
    assert old in TINY
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY.replace(old, new, 1))
    for arguments in (("topology", "check", str(path)), (*SIZED[:1], *SIZED[3:], "-t", str(path))):
        outcome = cli(*arguments)
        assert_one_error(outcome)
        assert re.search(word, outcome.err)


def test_nine_levels(tmp_path: Path) -> None:
    line = "  - {name: l%d, size: 1, link: {kind: switch, bandwidth: 1 GB/s, latency: 1 us}}\n"
    path = tmp_path / "nine.yaml"
    path.write_text("name: nine\nlevels:\n" + "".join(line % n for n in range(9)))
    outcome = cli("topology", "check", str(path))
    assert_one_error(outcome)
    assert "9 levels" in outcome.err


def test_files_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(bytes(range(256)))
    (tmp_path / "folder.yaml").mkdir()
    for name in ("binary.yaml", "folder.yaml", "missing.yaml", "missing/tiny.yaml"):
        assert_one_error(cli("topology", "check", str(tmp_path / name)))
        assert_one_error(cli(*SIZED[:1], *SIZED[3:], "-t", str(tmp_path / name)))

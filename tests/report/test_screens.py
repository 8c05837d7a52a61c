"""First screens: at most 20 lines of 80 columns, the verdict first, nothing that details lack."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from p2smt.report.screen import COLUMNS, LINES, names_block
from p2smt.report.screens.check_screen import checked_screen
from tests.cli.tools import RACKS, cli

TWO = "--axes dp=8,tp=4 --reduce dp=1GiB --reduce tp=64MiB*128"
EVERY = (
    "--axes dp=4,tp=8 --reduce dp=1GiB --reduce tp=64MiB*128 --reduce-scatter dp=1GiB "
    "--all-gather dp=1GiB --all-to-all tp=1MiB --send dp=64MiB*8"
)
HOSTS = "-t racks.yaml --axes dp=2,pp=2,tp=2 --reduce dp=1GiB --send pp=16MiB*16"
PLACED = "--axes dp=16 --placement [[2,8]] --reduce dp"
TREE = "'reduce inside node; all-reduce master node in root; broadcast inside node'"
SPLIT = "'reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node'"
MOVED = (
    "redistribute -t dgx-h100:2 --mesh dp=2,tp=8 --shape 1280,8192 --dtype bf16 "
    "--from S(dp,tp),R --to R,S(dp,tp) -o moved.json"
)
MIXTURE = "--dispatch ep=56MiB,experts=256,active=8,groups=8,top_groups=4"

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "experiments/training_runs/runs.csv"
TABLES = ROOT / "tests/interop/nccl_tests/nccl_tables"

COMMANDS = (
    (f"solve -t dgx-a100:4 {TWO}", "optimal: "),
    (f"solve -t dgx-a100:4 {TWO} --within 300% --sensitivity -o plan.json", "optimal: "),
    (f"solve -t dgx-h100:4 {EVERY} --top 20 --what-if node*2", "optimal: "),
    ("solve -t gb200-nvl72:2 --axes tp=144 --reduce tp=1GiB", "optimal: "),
    (f"solve {HOSTS} --hosts n[1-4]", "optimal: "),
    (f"solve {HOSTS} --sensitivity --explain --within 10% -o hosts.json", "optimal: "),
    ("compare -t dgx-h100:4 --axes tp=4,dp=8 --reduce dp=1GiB --reduce tp=1GiB", "default takes "),
    (f"compare {HOSTS} --hosts n[1-5]", "listed takes "),
    ("programs --factors 2,4", "complete: 61 programs "),
    ("programs -t dgx-a100:4 --axes dp=8,tp=4 --placement [[2,4],[2,2]] --reduce dp=1GiB "
     "--reduce tp=1GiB --top 9", "all-reduce dp: complete: "),
    ("placements --levels 2,8,8 --axes tp=8,pp=4,dp=4", "complete: 19 placements "),
    ("placements -t dgx-a100:4 --axes dp=8,tp=4", "complete: 3 placements "),
    (f"cost -t dgx-a100:2 {PLACED}=1GiB --program {SPLIT}", "all-reduce dp 1 GiB: "),
    (f"cost -t dgx-a100:2 {PLACED}=1GiB --program {TREE} --program {SPLIT}", "fastest: "),
    (f"cost -t dgx-a100:2 {PLACED} --sizes 1KiB..8GiB", "all-reduce dp: "),
    (f"cost -t dgx-a100:2 {PLACED} --sizes 1KiB..8GiB --program {TREE} --program {SPLIT}", "fast"),
    (f"cost -t dgx-a100:2 {PLACED} --symbolic --program {SPLIT}", "all-reduce dp: "),
    (f"cost -t dgx-h100:32 --axes dp=4,ep=64 --placement [[4,1],[8,8]] {MIXTURE}", "dispatch ep "),
    (f"cost {HOSTS} --hosts n[1-4]", ""),
    ("cost plan.json", "valid: "),
    ("cost hosts.json", "valid: "),
    ("cost moved.json", "valid: "),
    (f"run -t dgx-a100:1 {PLACED.replace('16', '8').replace('[2,8]', '[1,8]')}=1MiB "
     "--backend reference", "verified: "),
    ("show plan.json", "verdict "),
    ("topology list", "29 presets, 4 profiles, 6 fabrics: "),
    ("topology show dgx-h100", "dgx-h100: 16 devices"),
    ("topology show gb200-nvl72", "gb200-nvl72: "),
    ("topology fabric dgx1", "dgx1: 8 ranks, 32 edges"),
    ("topology fabric torus:4x4", "torus:4x4: 16 ranks"),
    ("models", "83 models: "),
    ("schema", "66 schemas: "),
    ("classics", "24 classic algorithms: "),
    ("convert plan.json made.xml", "4 files written"),
    (f"calibrate --from-nccl-tests {TABLES}/aws-p5-1n8g-batch-allreduce.txt -t aws-p5:1",
     "fitted to 64 times"),
    (f"calibrate --from-nccl-tests {TABLES}/b200-vultr-2n16g-alltoall.txt -t dgx-b200:2 "
     "--library none", "fitted to 46 times"),
    ("calibrate --runs few.csv", "1 efficiency fitted to 3 runs"),
)  # fmt: skip
EVERY_RUN = (f"calibrate --runs {RUNS}", "6 efficiencies fitted to ")
CHECKS = (
    ("verify set.json", "valid: "),
    ("verify moved.json", "valid: 1 step"),
    ("verify plan.json", "valid: 2 requests"),
    ("verify gather.xml", "valid: allgather"),
    (f"verify {ROOT}/examples/lost_dependency.xml --fix --trace trace.json", "invalid: allreduce"),
    ("verify -t dgx-a100:2 --program 'reduce-scatter inside node; all-reduce inside root; "
     "all-gather inside node'", "invalid: 1 size"),
)  # fmt: skip
"""Commands of `verify`, and how their answers begin."""
WRITTEN = {
    "set.json": "crossings --factors 4,8 --sufficient -o set.json",
    "gather.xml": "classics ring-all-gather -o gather.xml",
    "plan.json": COMMANDS[1][0],
    "hosts.json": COMMANDS[5][0],
    "moved.json": MOVED,
}
FIGURE = re.compile(r"[0-9][0-9.,]* (?:[num]?s|[KMGT]iB|[kMGT]?B/s|%)(?![a-z/])")
OWN = {"show"}
"""What has no further tables."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a cluster that names its hosts, and with three of the measured runs."""
    monkeypatch.chdir(tmp_path)
    Path("racks.yaml").write_text(RACKS)
    Path("few.csv").write_text("".join(RUNS.read_text().splitlines(keepends=True)[:4]))
    return tmp_path


def written(command: str) -> None:
    """Make the file that the command reads."""
    for name, maker in WRITTEN.items():
        if name in command and "-o" not in command.split():
            assert cli(*shlex.split(maker)).code == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("command", "verdict"),
    [*COMMANDS, pytest.param(*EVERY_RUN, marks=pytest.mark.exhaustive)],
)
def test_a_first_screen_is_one(command: str, verdict: str) -> None:
    written(command)
    words = shlex.split(command)
    done = cli(*words)
    lines = done.out.splitlines()
    assert done.code == 0, done
    assert 1 <= len(lines) <= LINES
    assert max(map(cell_len, lines)) <= COLUMNS
    assert lines[0].startswith(verdict)
    assert [line for line in lines if line != line.rstrip()] == []
    if words[0] not in OWN:
        details = cli(*words, "--details")
        assert details.code == 0
        asked = {one for one in figures(done.out) if one.replace(" ", "") in command}
        assert figures(done.out) - figures(details.out) - asked == set()
        assert len(details.out) > len(done.out) / 2


def figures(text: str) -> set[str]:
    """The times, sizes, rates and parts that a text tells, but for sums of what is left out."""
    return set(FIGURE.findall(re.sub(r"and .* in all\b", "", text)))


@pytest.mark.usefixtures("folder")
def test_an_answer_says_first_that_there_is_none() -> None:
    done = cli(*shlex.split(f"solve -t dgx-a100:4 {TWO} --require 'dp within gpu'"))
    assert done.out.startswith("infeasible: ")
    assert len(done.out.splitlines()) <= LINES


@pytest.mark.usefixtures("folder")
def test_requests_that_do_not_fit_are_counted() -> None:
    done = cli(*shlex.split(f"solve -t dgx-h100:4 {EVERY}"))
    assert re.search(r"^ +and 2 others, [\d.]+ [mun]?s in all$", done.out, re.M)


def test_a_long_sweep_is_told_at_some_of_its_sizes() -> None:
    done = cli(*shlex.split(f"cost -t dgx-a100:2 {PLACED} --sizes 1KiB..8GiB"))
    lines = done.out.splitlines()
    sizes = [" ".join(line.split()[:2]) for line in lines if re.match(r" *\d+ [KMG]iB  ", line)]
    assert (sizes[0], sizes[-1], len(sizes)) == ("1 KiB", "8 GiB", 12)
    assert lines[-1] == "12 more sizes: --details"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("command", "verdict"), CHECKS)
def test_a_check_begins_with_its_verdict(command: str, verdict: str) -> None:
    written(command)
    done, details = cli(*shlex.split(command)), cli(*shlex.split(command), "--details")
    lines = done.out.splitlines()
    assert lines[0].startswith(verdict)
    assert len(lines) <= LINES
    assert max(map(cell_len, lines)) <= COLUMNS
    assert done.code == details.code == int(verdict.startswith("invalid"))
    assert sorted(figures(done.out) - figures(details.out)) == []


@given(
    lines=st.lists(
        st.sampled_from(["a: b c", "  more of it:", "    listed", "w " * 90]), max_size=60
    ),
    at=st.integers(0, 60),
)
def test_a_verdict_comes_first_and_what_stays_last(lines: list[str], at: int) -> None:
    said = [*lines[:at], "valid: it", *lines[at:]]
    shown = checked_screen(said, ["written to x"])
    assert shown[0] == "valid: it"
    assert shown[-1] == "written to x"
    assert len(shown) <= LINES
    assert max(map(cell_len, shown)) <= COLUMNS
    whole = "the rest: --details" not in shown
    assert whole == (len(" ".join(shown).split()) == len(" ".join([*said, "written to x"]).split()))


@given(names=st.lists(st.text("ab-1", min_size=1, max_size=30), min_size=1, max_size=40))
def test_names_are_shown_or_counted(names: list[str]) -> None:
    shown = " ".join(line.strip() for line in names_block("x", names, 2).lines)
    told, more, rest = shown.removeprefix("x").partition(" (")
    left = int(rest.split()[0]) if more else 0
    assert len(names_block("x", names, 2).lines) <= 2
    assert len(told.split(", ")) + left == len(names)


@pytest.mark.exhaustive
def test_the_nearest_flips_of_placement_and_programs_are_told() -> None:
    asked = f"-t dgx-a100:4 {TWO} --explain"
    done = cli(*shlex.split(f"solve {asked}"))
    details = cli(*shlex.split(f"solve {asked} --details")).out
    told = " ".join(done.out.partition("flips")[2].partition("next")[0].split())
    (row,) = re.findall(r"^(\S+ links) +([\d.]+x) (slower|faster)  all-reduce", details, re.M)[:1]
    assert f"with {' '.join(row)}, all-reduce" in told
    assert re.findall(r"^nearest flip: (.*)$", details, re.M)[0] in told

"""The README shows real output: its blocks are compared with what the commands print now."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import pytest

from experiments.placement_448x.report.readme import claims_table
from experiments.placement_448x.report.values import all_values
from p2smt.cli import run
from p2smt.cluster.file import preset_names
from tests.interpreter import python

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block_after(opening: str) -> str:
    """The text between a line and the end of its code block."""
    return README.split(opening + "\n", 1)[1].split("\n```", 1)[0]


def printed_by(module: str) -> str:
    """What a script of the studies prints, started as the README says."""
    return python("-m", module)


def test_make_solve_prints_what_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    recipe = re.search(r"^\t\$\(BIN\)/p2smt (solve .*)$", (ROOT / "Makefile").read_text(), re.M)
    assert recipe is not None
    assert run(shlex.split(recipe[1])) == 0
    shown = [line.rstrip() for line in capsys.readouterr().out.strip().splitlines()]
    expected = block_after("$ make solve").splitlines()
    assert expected[0] == f".venv/bin/p2smt {recipe[1]}"
    assert shown == expected[1:]


def test_the_python_example_prints_what_the_readme_shows() -> None:
    code = block_after("```python")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue().strip() == block_after("```text").strip()


def test_the_orders_of_hosts_are_those_of_their_page() -> None:
    """The page's own test runs the command."""
    page = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```console\n(\$ p2smt compare .*?)\n```", README, re.S)
    assert f"```console\n{block}\n" in page


def test_the_redistribution_is_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```console\n\$ p2smt (redistribute .*?)\n```", README, re.S)
    command, *shown = block.splitlines()
    assert run(shlex.split(command)) == 0
    assert [line.rstrip() for line in capsys.readouterr().out.strip().splitlines()] == shown


def test_the_presets_are_counted() -> None:
    assert re.findall(r"(\d+) presets", README) == [str(len(preset_names()))]


def test_every_command_of_the_table_exists(capsys: pytest.CaptureFixture[str]) -> None:
    for name in set(re.findall(r"^\| `p2smt (\w+)", README, re.M)):
        assert run([name, "--help"]) == 0
        assert name in capsys.readouterr().out


def test_the_benchmark_table_is_that_of_the_committed_results() -> None:
    assert printed_by("experiments.benchmarks.table").strip() in README


def test_nothing_is_left_to_fill_in() -> None:
    assert re.findall(r"@[A-Z]+@|TODO|TBD", README) == []


def test_every_link_to_a_file_holds() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_test_cluster_tables_are_those_of_the_committed_results() -> None:
    printed = printed_by("experiments.programs_on_testbed.table")
    overview, *details = printed.strip().split("\n\n", 1)
    assert overview in README
    page = (ROOT / "experiments/programs_on_testbed/README.md").read_text(encoding="utf-8")
    assert all(text.strip() in page for text in details)


def test_the_claims_are_those_of_the_committed_results() -> None:
    assert "\n".join(claims_table()) in README
    exact = json.loads((ROOT / "experiments/placement_448x/exact.json").read_text(encoding="utf-8"))
    ratios = [
        exact[name]["inside_bytes_per_s"] / exact[name]["card_bytes_per_s"]
        for name in ("effective", "nominal")
    ]
    limit = exact["bandwidth_ratio_in_the_limit"]
    text = " ".join(README.split())
    assert "is {:g}, the groups that share".format(exact["paper"] / limit) in text
    assert "{:g} with effective and {:g} with nominal".format(*ratios) in text
    assert f"448.5x needs {limit:.0f}" in text


@pytest.mark.exhaustive
def test_claims_count_groups_once_first_and_predict_beside_what_is_measured() -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in claims_table()][2:]
    for claim in ("requests that gain from a program", "mean speedup"):
        ways = [row[0] for row in rows if row[0].startswith(claim)]
        assert ways == [f"{claim} (each different group once)", f"{claim} (all requests)"]
    assert all(cell for row in rows for cell in row[2:])
    predicted = [row[4] for row in rows[:-1]]
    assert all(re.match(r"\d", cell) for cell in predicted)


def test_the_readme_says_what_a_library_s_choice_leaves_to_gain() -> None:
    value, text = all_values(), " ".join(README.split())
    assert f"gains {value['max_library_two']} at most on two A100 nodes" in text
    four = f"{value['share_library_four']} of the requests on four gain"
    assert f"{four}, {value['mean_library_four']} in the mean" in text


def test_the_verified_schedules_are_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = block_after("$ p2smt classics ring-all-reduce --ranks 4 --set fused=true -o ring.xml")
    made, _, command, *shown = lines.splitlines()
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split("classics ring-all-reduce --ranks 4 --set fused=true -o ring.xml")) == 0
    assert capsys.readouterr().out.strip() == made
    text = Path("ring.xml").read_text()
    Path("wrong.xml").write_text(text.replace('type="r"', 'type="rrc"', 1))
    assert run(shlex.split(command.removeprefix("$ p2smt "))) == 1
    assert capsys.readouterr().out.rstrip().splitlines() == shown
    monkeypatch.chdir(ROOT)
    family = "verify tests/schedules/symbolic/ring_all_reduce.yaml --upto 12"
    assert run(shlex.split(family)) == 0
    assert capsys.readouterr().out.strip() == block_after(f"$ p2smt {family}")

"""Defaults from ``p2smt.toml`` and the environment: what takes them, and what does not."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from p2smt.cli.app import command_named
from p2smt.cli.guide.commands import COMMANDS
from p2smt.cli.guide.defaults import INNER, INSTEAD, NEVER, config_file
from p2smt.cli.guide.headings import HEADINGS
from tests.cli.tools import assert_one_error, cli
from tests.imports import ROOT
from tests.schemas.tools import complaints

ASKED = """
[defaults]
topology = "dgx-a100:2"
seed = 3
[solve]
axes = "dp=2,tp=8"
reduce = ["tp=64MiB", "dp=1MiB"]
[cost]
library = "rccl-2"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with defaults; the working folder is one inside it."""
    (tmp_path / ".git").mkdir()
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    (tmp_path / "p2smt.toml").write_text(ASKED)
    monkeypatch.chdir(inside)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_what_is_not_given_is_taken_said_and_kept() -> None:
    done = cli("solve", "--json", "-o", "plan.json")
    said = "--axes=dp=2,tp=8 --reduce=tp=64MiB --reduce=dp=1MiB"
    assert done.code == 0
    assert f"note: defaults: {said} (../../p2smt.toml [solve])" in " ".join(done.err.split())
    assert [one["words"] for one in done.json()["defaults"]] == [
        ["--axes=dp=2,tp=8"],
        ["--reduce=tp=64MiB", "--reduce=dp=1MiB"],
        ["--topology=dgx-a100:2"],
        ["--seed=3"],
    ]
    assert complaints("solve", done.json()) == []
    command = json.loads(Path("plan.json").read_text())["answer"]["command"]
    again = cli(*shlex.split(command)[1:], "--json")
    assert again.json()["plan"]["requests"] == done.json()["plan"]["requests"]
    assert "defaults" not in again.json()
    assert not again.err


def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "defaults.md").read_text()
    (tmp_path / "p2smt.toml").write_text(page.partition("```toml\n")[2].partition("```")[0])
    monkeypatch.chdir(tmp_path)
    command, first, said = page.partition("$ p2smt ")[2].partition("```")[0].split("\n", 2)
    done = cli(*shlex.split(command))
    assert done.out.splitlines()[0] == first
    assert done.err.split() == said.split()
    for option in NEVER - {"--help", "--no-config", "--out"}:
        assert f"`{option}`" in page, option


@pytest.mark.usefixtures("folder")
def test_options_come_first_and_no_config_takes_none() -> None:
    given = cli("solve", "-adp=16", "-t", "dgx-h100:2", "--reduce=dp=1MiB", "--json")
    assert [one["words"] for one in given.json()["defaults"]] == [["--seed=3"]]
    assert_one_error(cli("solve", "--no-config"))
    assert not cli("solve", "--help").err


def test_the_environment_is_before_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P2SMT_TOPOLOGY", "dgx-h100:2")
    done = cli("placements", "-a", "dp=16", "--json").json()
    assert {"words": ["--topology=dgx-h100:2"], "source": "$P2SMT_TOPOLOGY"} in done["defaults"]
    (folder / "p2smt.toml").unlink()
    assert cli("placements", "-a", "dp=16", "--json").json()["defaults"][0]["source"][0] == "$"


@pytest.mark.usefixtures("folder")
def test_what_stands_in_its_place_keeps_a_default_away() -> None:
    levels = cli("placements", "-a", "dp=8", "--levels", "2,4")
    assert levels.code == 0, levels.err
    for name, others in INSTEAD.items():
        assert {f"--{one}" for one in (name, *others)} <= {x for y in HEADINGS.values() for x in y}


@pytest.mark.usefixtures("folder")
def test_files_say_what_is_asked_by_themselves() -> None:
    cli("solve", "-o", "plan.json")
    done = cli("verify", "plan.json")
    assert done.code == 0
    assert not done.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[sovle]\n", "[sovle]: is no command; did you mean 'solve'?"),
        ("[solve]\naxs = 'dp=2'\n", "[solve] axs: is no option there; did you mean 'axes'?"),
        ("[plan]\ntpology = 'x'\n", "[plan] tpology: is no option there"),
        ("[topology.imprt]\nunit = 'x'\n", "[topology.imprt]: is no command"),
        ("[solve.x]\nseed = 1\n", "[solve.x]: is no command"),
        ("seed = 1\n", "seed: stands in no table; write it under [defaults] or [plan]"),
        ("[defaults]\nforce = true\n", "[defaults] force: is never a default"),
        ("[defaults]\noutput = 'x'\n", "[defaults] output: is never a default"),
        ("[solve]\nseed = true\n", "[solve] seed: is neither a text nor a number"),
        ("[solve]\nforbid = [[1]]\n", "[solve] forbid: is neither a text nor a number nor a list"),
        ("[solve]\nexplain = 'yes'\n", "[solve] explain: is neither true nor false"),
        ("[solve\n", "is no TOML"),
    ],
)
def test_a_bad_file_is_one_line(folder: Path, text: str, words: str) -> None:
    (folder / "p2smt.toml").write_text(text)
    done = cli("solve", "-t", "dgx-a100:2", "--axes", "dp=16", "--reduce", "dp=1MiB")
    assert_one_error(done)
    assert words in done.err
    assert not done.out


def test_flags_are_set_by_true_alone(folder: Path) -> None:
    asked = ("solve", "-t", "dgx-a100:2", "--axes", "dp=16", "--reduce", "dp=1MiB")
    for value, more in (("true", ["--explain"]), ("false", [])):
        (folder / "p2smt.toml").write_text(f"[solve]\nexplain = {value}\n")
        assert cli(*asked).out == cli(*asked, "--no-config", *more).out


def test_no_further_than_the_repository(tmp_path: Path) -> None:
    (tmp_path / "p2smt.toml").touch()
    (tmp_path / "repository" / "inside").mkdir(parents=True)
    inside = tmp_path / "repository" / "inside"
    assert config_file(inside) == tmp_path / "p2smt.toml"
    (tmp_path / "repository" / ".git").touch()
    assert config_file(inside) is None


def test_names_are_those_of_commands_and_options() -> None:
    every = {option for options in HEADINGS.values() for option in options}
    assert every >= NEVER - {"--csv", "--out"}
    for group, names in INNER.items():
        assert [*command_named(group).commands] == [*names]
    for name in set(COMMANDS) - {*INNER, "docs", "schema", "report", "show"}:
        assert "--no-config" in {x for one in command_named(name).params for x in one.opts}, name

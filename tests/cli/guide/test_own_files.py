"""Files of p2smt's own where another is wanted: said what they are, and what takes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from p2smt.cli.app import command_named
from p2smt.cli.guide import own_files
from p2smt.cli.guide.commands import COMMANDS
from p2smt.cli.guide.own_files import OwnFile, kind_of
from p2smt.cli.guide.places import PlacedWord, is_option
from tests.cli.tools import SMALL, TINY, assert_one_error, cli

SOLVE = ("solve", "-t", "topology.yaml", "--axes", "dp=8", "--reduce", "dp=1MiB")
RESHARD = ("redistribute", "-t", "topology.yaml", "--mesh", "tp=8", "--shape", "64,64")
FABRIC = "name: pair\nranks: 2\nlinks:\n  - {ranks: [0, 1], bandwidth: 25 GB/s}\n"
KINDS: dict[str, OwnFile | None] = {
    "plan.json": own_files.PLAN,
    "redistribution.json": own_files.REDISTRIBUTION,
    "schedule.xml": own_files.SCHEDULE,
    "schedule.yaml": own_files.SCHEDULE,
    "certificate.json": own_files.CERTIFICATE,
    "sizes.json": own_files.CERTIFICATE,
    "set.json": own_files.LEAST_SET,
    "journal.jsonl": own_files.JOURNAL,
    "answer.json": own_files.ANSWER,
    "topology.yaml": own_files.TOPOLOGY,
    "fabric.yaml": own_files.FABRIC,
    "page.html": own_files.PAGE,
    "other.html": None,
    "model.yaml": None,
    "other.json": None,
    "list.json": None,
    "binary": None,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of each kind, as the commands write them."""
    path = tmp_path_factory.mktemp("kinds")
    (path / "topology.yaml").write_text(TINY)
    (path / "fabric.yaml").write_text(FABRIC)
    (path / "model.yaml").write_text("name: m\n" + SMALL)
    (path / "other.json").write_text('{"schema_version": 1, "kind": "recipe"}')
    (path / "other.html").write_text("<!doctype html>\n<html></html>\n")
    (path / "list.json").write_text("[1]")
    (path / "binary").write_bytes(b"\xff\0")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        made = [
            (*SOLVE, "-o", "plan.json"),
            (*SOLVE, "--journal", "journal.jsonl"),
            (*RESHARD, "--from", "S(tp),R", "--to", "R,R", "-o", "redistribution.json"),
            ("classics", "ring-all-gather", "--ranks", "4", "-o", "schedule.xml"),
            ("convert", "schedule.xml", "schedule.yaml"),
            ("report", "plan.json", "-o", "page.html"),
            ("crossings", "--factors", "2,3", "--sufficient", "-o", "set.json"),
        ]
        for words in made:
            assert cli(*words).code == 0, words
        proof = ("--steps", "1", "--rounds", "1", "--chunks", "1", "--certificate")
        ask = ("synthesize", "--fabric", "ring:4", "--collective", "all-gather")
        assert cli(*ask, *proof, "certificate.json").code in (0, 4)
        sized = ("synthesize", "-t", "dgx1-v100:1", "--fabric", "dgx1", "--size", "1KiB", *ask[3:])
        assert cli(*sized, "--certificate", "sizes.json").code == 0
        (path / "answer.json").write_text(cli(*SOLVE, "--json").out)
    return path


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_is_known(name: str, folder: Path) -> None:
    assert kind_of(str(folder / name)) is KINDS[name]
    assert kind_of(str(folder / "missing")) is None


def parameters() -> Iterator[tuple[str, Any]]:
    """Every command with each of its parameters that has a value."""
    for name in COMMANDS:
        command = command_named(name)
        inner = getattr(command, "commands", {})
        for path, one in [(f"{name} {word}", one) for word, one in inner.items()] or [
            (name, command)
        ]:
            yield from ((path, parameter) for parameter in one.params if has_value(parameter))


def has_value(parameter: Any) -> bool:
    return not is_option(parameter) or not (parameter.is_flag or parameter.count)


OWN = [name for name, kind in KINDS.items() if kind is not None]


@pytest.mark.parametrize("name", OWN)
def test_wherever_it_is_not_taken_the_error_says_what_it_is(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    kind, refused = KINDS[name], 0
    assert kind is not None
    for path, parameter in parameters():
        file = "FILE" in (parameter.metavar or "") or not is_option(parameter)
        if not file or kind.is_for(path, PlacedWord(parameter, name)):
            continue
        words = [max(parameter.opts, key=len), name] if is_option(parameter) else [name]
        done = cli(*path.split(), *words)
        assert_one_error(done)
        assert f"'{name}': is {kind.title}, which " in done.err, (path, words, done.err)
        refused += 1
    assert refused > 25


@pytest.mark.parametrize(
    ("line", "given", "rule", "remedy"),
    [
        ("solve --nosuch", "--nosuch", "No such option: --nosuch", "see p2smt solve --help"),
        ("solve --retries 3", "--retries", "No such option", "--workers are near; see p2smt solve"),
        ("export", "--to", "Missing option '--to'", "see p2smt export --help"),
        ("solve a b", "a b", "Got unexpected extra argument(s) (a b)", "see p2smt solve --help"),
        ("topology nosuch", "nosuch", "No such command 'nosuch'", "see p2smt topology --help"),
    ],
)
def test_a_wrong_line_as_json_comes_in_parts(line: str, given: str, rule: str, remedy: str) -> None:
    error = cli(*line.split(), "--json").json()["error"]
    assert (error["given"], rule in error["rule"], remedy in error["remedy"]) == (given, True, True)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("solve plan.json", "p2smt show plan.json"),
        ("plan -t plan.json", "--topology of p2smt plan does not take"),
        ("verify topology.yaml", "--topology topology.yaml"),
        ("solve -t topology.yaml --axes dp=8 plan.json", "is a plan"),
        ("compare topology.yaml answer.json", "is a topology"),
        ("solve -t fabric.yaml --axes dp=8", "--topology takes a file with levels"),
    ],
)
def test_one_line_names_the_command(
    line: str, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    done = cli(*line.split())
    assert_one_error(done)
    assert words in done.err
    as_json = cli(*line.split(), "--json")
    assert as_json.json()["error"]["rule"].startswith("is ")


@pytest.mark.parametrize(
    "line",
    [
        "verify plan.json",
        "verify redistribution.json",
        "verify schedule.yaml",
        "verify certificate.json",
        "verify set.json",
        "verify journal.jsonl",
        "cost plan.json",
        "show answer.json",
        "show schedule.xml",
        "run plan.json --backend reference",
        "run redistribution.json --backend reference",
        "compare plan.json answer.json",
        "order plan.json --hosts a,b",
        "topology show topology.yaml",
    ],
)
def test_what_takes_it_is_not_disturbed(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    done = cli(*line.split())
    assert done.code == 0, done.err
    wrong = cli(*line.split(), "--nonsense")
    assert "No such option" in wrong.err

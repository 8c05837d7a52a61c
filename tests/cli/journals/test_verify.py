"""`verify` of journals: what it proves of real searches, what it says of others, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import p2smt
from tests.cli.tools import TINY, assert_one_error, cli
from tests.parallel_search.journal.test_journal import room_for

LIST = ("placements", "--levels", "4,4,8", "--axes", "tp=8,dp=16")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Journals of a list and of a search for the best two."""
    path = tmp_path_factory.mktemp("journals")
    (path / "tiny.yaml").write_text(TINY)
    best = (
        "solve",
        "-t",
        str(path / "tiny.yaml"),
        *["-a", "tp=4,dp=2", "--top", "2", "--reduce", "dp=1GiB"],
    )
    for name, words in (("list", LIST), ("best", best)):
        assert cli(*words, "--journal", str(path / f"{name}.jsonl")).code == 0
    return path


def test_a_list_is_proved(folder: Path) -> None:
    done = cli("verify", str(folder / "list.jsonl"), "--details")
    assert done.code == 3
    verdict, proved, cover, counts, verdicts = done.out.splitlines()
    assert proved == "proved: no, 3 verdicts of solvers were not checked (--all solves them again)"
    many = cli(*LIST, "--json").json()["count"]
    assert verdict.startswith(f"valid: enumerate over placements, complete: {many} members, digest")
    assert f"hold all {many} matrices, each once" in cover
    assert counts == "counts: of each closed cube, the same as by the formula"
    assert "5 of 8 solved again with z3, which is another than the search had; 5 agree" in verdicts
    assert "3 taken at their word" in verdicts
    every = cli("verify", str(folder / "list.jsonl"), "--all", "--details")
    assert (every.code, every.out.splitlines()[1]) == (0, "proved: yes")


def test_all_verdicts_of_a_search_for_the_best(folder: Path) -> None:
    done = cli("verify", str(folder / "best.jsonl"), "--all", "--json")
    assert done.code == 0
    data = done.json()
    assert (data["verdict"], data["status"], data["top"]) == ("valid", "optimal", 2)
    assert data["best"][0]["value"] == data["bound"]
    assert data["verdicts"]["agreed"] == data["verdicts"]["recorded"] > 0
    assert (data["proved"], data["verdicts"]["unchecked"]) == (True, 0)
    with pytest.raises(p2smt.InputError, match="give it to verify_journal"):
        p2smt.verify(folder / "best.jsonl")
    report = p2smt.verify_journal(folder / "best.jsonl", sample=0)
    assert isinstance(report, p2smt.JournalReport)
    assert report.answer is not None
    assert [one.witness for one in report.answer.best] == [one["witness"] for one in data["best"]]


def test_a_search_goes_on_and_a_torn_line_is_told(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "list.jsonl").read_text().splitlines(keepends=True)
    path = tmp_path / "cut.jsonl"
    path.write_text("".join(lines[:4]) + lines[4][:20])
    cut = cli("verify", str(path))
    assert cut.code == 1
    assert cut.out.startswith("unproved: enumerate over placements, truncated: 3 members")
    assert "cover: not proved; 3 closed cubes hold 3 of 8 matrices, 5 cubes are open" in cut.out
    assert "torn: a last line of 20 bytes is left out" in cut.out
    again = cli(*LIST, "--journal", str(path))
    assert again.err.startswith("note: journal ")
    assert "goes on from 3 closed cubes" in again.err
    assert "a last line of 20 bytes was torn and is dropped" in again.err
    assert again.out == cli(*LIST).out
    assert cli("verify", str(path), "--all").code == 0
    assert path.read_text().startswith("".join(lines[:4]))


def test_a_full_disk_ends_the_search_with_6(folder: Path, tmp_path: Path) -> None:
    path, header = tmp_path / "full.jsonl", (folder / "list.jsonl").read_text().partition("\n")[0]
    with room_for(len(header) + 700):
        done = cli(*LIST, "--journal", str(path))
    assert_one_error(done, 6)
    assert "cannot be written any further (File too large)" in done.err
    assert path.read_text().endswith("}\n")
    assert cli("verify", str(path)).out.startswith("unproved: ")
    assert cli(*LIST, "--journal", str(path)).code == 0
    assert cli("verify", str(path), "--all").code == 0


def test_what_is_wrong_is_named(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "wrong.jsonl"
    text = (folder / "best.jsonl").read_text()
    closed = next(line for line in text.splitlines() if '"solved"' in line)
    data = json.loads(closed)
    data["best"][0]["value"] += 1
    data["bound"] += 1
    path.write_text(text.replace(closed, json.dumps(data)))
    done = cli("verify", str(path), "--details")
    assert done.code == 1
    assert "ticks, not " in done.out.splitlines()[0]
    assert "invalid: optimise over solve" in done.out
    assert "none solved again, as something is wrong without that" in done.out


def test_without_time_nothing_is_solved_again(folder: Path) -> None:
    done = cli("verify", str(folder / "list.jsonl"), "--time-limit", "0.000001", "--sample", "2")
    assert done.code == 3
    assert "proved: no, 8 verdicts of solvers were not checked" in done.out
    assert "2 of 8 solved again" in done.out
    assert "0 agree; 2 without an answer in time" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("list.jsonl", "--sample", "2", "--all"), ("--sample and --all", "give one of them")),
        (("list.jsonl", "--sample", "-1"), ("sample", "whole number")),
        (("list.jsonl", "--sample", "x"), ("sample", "whole number")),
        (("list.jsonl", "--prove"), ("--prove", "is for plans")),
        (("list.jsonl", "--fix"), ("a journal", "takes no options of schedules")),
        (("list.jsonl", "--upto", "4"), ("a journal", "takes no options of schedules")),
        (("tiny.yaml",), ("is a topology", "does not take")),
        (("some.yaml", "--all"), ("--all", "is for journals of searches")),
        (("some.yaml", "--sample", "3"), ("--sample", "is for journals of searches")),
        (("none.jsonl",), ("journal", "none.jsonl", "does not exist")),
        (("empty.jsonl",), ("has no whole line", "nothing is on record")),
        (("torn.jsonl",), ("has no whole line", "nothing is on record")),
        (("text.jsonl",), ("is not a journal",)),
        (("rows.jsonl",), ("line 1", "is none of a journal's")),
        (("other.jsonl",), ("of a space 'solv'", "did you mean 'solve'")),
        (("question.jsonl",), ("line 1", "the description of a space", "is none of placements")),
        (("tick.jsonl",), ("line 1: tick_s", "positive number of seconds")),
        (("names.jsonl",), ("line 1", "the description of a space", "none of placements")),
        (("renamed.txt", "--prove"), ("--prove", "is for plans")),
    ],
)
def test_bad_input(
    folder: Path, tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    text = (folder / "list.jsonl").read_text()
    for name in ("list.jsonl", "tiny.yaml"):
        (tmp_path / name).write_text((folder / name).read_text())
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "torn.jsonl").write_text(text[:100])
    (tmp_path / "text.jsonl").write_text("a text")
    (tmp_path / "some.yaml").write_text("a: 1")
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "renamed.txt").write_text(text)
    (tmp_path / "other.jsonl").write_text(_with(text, space="solv"))
    (tmp_path / "question.jsonl").write_text(_with(text, description={"levels": [4]}))
    (tmp_path / "names.jsonl").write_text(_with(text, description={"levels": 4, "axes": {}}))
    best = (folder / "best.jsonl").read_text()
    question = json.loads(best.partition("\n")[0])["description"] | {"tick_s": "1"}
    (tmp_path / "tick.jsonl").write_text(_with(best, description=question))
    done = cli("verify", str(tmp_path / arguments[0]), *arguments[1:])
    assert_one_error(done)
    assert all(word in done.err for word in words), done.err


def _with(text: str, **changes: object) -> str:
    """A journal whose header was changed by someone who knows how its digest is made."""
    from p2smt.parallel_search.journal.journal_text import parse_journal

    first, _, rest = text.partition("\n")
    data = json.loads(first) | changes
    key = "version of p2smt"
    question = {name: data[name] for name in list(data)[2:9]}
    from hashlib import sha256

    digest = sha256(
        json.dumps({**question, key: data["versions"]["p2smt"]}, separators=(",", ":")).encode()
    )
    made = json.dumps(data | {"digest": digest.hexdigest()}) + "\n" + rest
    assert parse_journal(made.encode(), "it").header is not None
    return made

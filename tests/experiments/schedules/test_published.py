"""The study of published schedules: its pages, clones, programs and verdicts."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.published_schedules import bug_page, page
from experiments.published_schedules.clones import Clone, clone_of
from experiments.published_schedules.custom import CUSTOM
from experiments.published_schedules.generated import generate, read_output
from experiments.published_schedules.judge import judged
from experiments.published_schedules.known import BUGS
from experiments.published_schedules.sources import REPOSITORIES, Program, Repository
from experiments.published_schedules.store import RESULTS, TIMED, read, text
from experiments.published_schedules.study import file_rows, program_rows, rows_of
from p2smt.errors import InputError
from tests.interop.msccl.texts import algo, block, gpu, step

ROWS = read()


def chain(coll: str = "broadcast", last: str = "o0") -> str:
    """Rank 0 copies its chunk and sends it to rank 1, which stores it there."""
    root = gpu(
        0,
        block(0, step(0, "s"), send=1),
        block(1, step(0, "cpy", "i0", "o0")),
        chunks=(1, 1, 1),
    )
    other = gpu(1, block(0, step(0, "r", last), recv=0), chunks=(1, 1, 1))
    return algo([root, other], coll=coll, nchunksperloop=1, inplace=0).strip()


def git(folder: Path, *arguments: str) -> str:
    """What git says in a folder."""
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    command = ["git", *who, "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A clone with a right schedule, a wrong one, a program, and something else."""
    folder = tmp_path / "clones" / "nobody+schedules"
    (folder / "xml" / "more").mkdir(parents=True)
    (folder / "xml" / "right.xml").write_text(chain())
    (folder / "xml" / "more" / "wrong.xml").write_text(chain(last="s0"))
    (folder / "xml" / "notes.txt").write_text("none")
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("raise ImportError('no GPU')\n")
    (folder / "package" / "language.py").write_text(f"TEXT = {chain()!r}\n")
    (folder / "example.py").write_text("from package.language import TEXT\nprint(TEXT)\n")
    git(folder.parent, "init", "-q", str(folder))
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "all")
    commit = git(folder, "rev-parse", "HEAD")
    programs = (Program("example.py"), Program("missing.py"))
    repository = Repository(
        *("nobody/schedules", commit, ("xml/*.xml",)), bare="package", programs=programs[:1]
    )
    git(folder, "rm", "-qr", "xml")  # the work tree is not what is read
    return Clone(repository, folder)


def test_the_pages_are_those_of_the_results() -> None:
    say = "run: python -m experiments.published_schedules.page"
    assert page.PAGE.read_text(encoding="utf-8") == page.page(ROWS), say
    assert page.BUGS_PAGE.read_text(encoding="utf-8") == bug_page.bug_page(ROWS), say


def test_the_file_is_as_it_is_written() -> None:
    plain = [{k: v for k, v in row.items() if k not in TIMED.fields} for row in ROWS]
    assert text(plain) == RESULTS.read_text(encoding="utf-8")


def test_every_wrong_schedule_is_told_and_no_other() -> None:
    assert bug_page.untold(ROWS) == []
    wrong = {(row["repository"], row["path"]) for row in ROWS if row["verdict"] == "invalid"}
    assert {(bug.repository, path) for bug in BUGS for path in bug.paths} == wrong


def test_a_wrong_schedule_that_is_not_told_is_found() -> None:
    row = next(row for row in ROWS if row["verdict"] == "valid")
    found = bug_page.untold([*ROWS, {**row, "verdict": "invalid"}])
    assert found == [f"{row['repository']} {row['path']}"]


def test_every_program_and_repository_has_rows() -> None:
    names = {(row["repository"], row["path"]) for row in ROWS}
    for repository in REPOSITORIES:
        for program in repository.programs:
            starts = (path.startswith(program.name) for name, path in names)
            assert any(starts), program.name
    assert {one.name for one in REPOSITORIES} == {name for name, _ in names}
    assert {program.custom for one in REPOSITORIES for program in one.programs} - {""} == set(
        CUSTOM
    )


def test_files_are_read_at_the_commit(clone: Clone) -> None:
    assert clone.paths() == ["xml/more/wrong.xml", "xml/right.xml"]
    verdicts = {row["path"]: row["verdict"] for row in file_rows(clone)}
    assert verdicts == {"xml/more/wrong.xml": "invalid", "xml/right.xml": "valid"}
    assert clone.content("xml/none.xml") is None


def test_another_commit_is_refused(clone: Clone) -> None:
    other = Clone(replace(clone.repository, commit="0" * 40), clone.folder)
    with pytest.raises(InputError, match="fetch the commit of the study"):
        other.paths()


def test_programs_run_without_what_their_package_loads(clone: Clone) -> None:
    (row,) = program_rows(clone, sys.executable)
    assert (row["path"], row["verdict"], row["own_check"]) == ("example.py", "valid", "none")


def test_a_program_that_fails_says_why(clone: Clone, tmp_path: Path) -> None:
    clone.extract(tmp_path / "tree")
    (tmp_path / "tree" / "bad.py").write_text("raise ValueError('no such topology')\n")
    found = generate(sys.executable, tmp_path / "tree", clone.repository, Program("bad.py"))
    assert found.schedules == ()
    assert found.failure == "does not run: ValueError: no such topology"


def test_code_of_the_study_imports_what_a_program_would(clone: Clone, tmp_path: Path) -> None:
    clone.extract(tmp_path / "tree")
    program = Program("example.py", code="from package.language import TEXT; print(TEXT)")
    found = generate(sys.executable, tmp_path / "tree", clone.repository, program)
    assert found.schedules == (chain(),)


def test_rows_without_a_clone_or_an_interpreter_stay(
    clone: Clone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repository, clones = clone.repository, clone.folder.parent
    assert clone_of(repository, clones) == clone
    assert clone_of(repository, tmp_path / "none") is None
    old: list[dict[str, Any]] = [
        {"repository": repository.name, "path": "xml/old.xml", "program": False},
        {"repository": repository.name, "path": "example.py", "program": True},
        {"repository": "somebody/else", "path": "a.xml", "program": False},
    ]
    assert rows_of(repository, tmp_path, None, old) == old[:2]
    assert "its rows stay as they are" in capsys.readouterr().err
    assert [row["path"] for row in rows_of(repository, clones, None, old)] == [
        *("xml/more/wrong.xml", "xml/right.xml", "example.py"),
    ]


@pytest.mark.parametrize(
    ("source", "printed", "own"),
    [
        ("XML()\nCheck()", "", "passed"),
        ("XML()\nCheck()", "Rank 3 chunk 1 is incorrect should be ..\n", "refused"),
        ("XML()\n# Check()", "", "none"),
        ("XML()\n#Check()", "Rank 3 chunk 1 is incorrect\n", "none"),
    ],
)
def test_own_checks(source: str, printed: str, own: str) -> None:
    found = read_output(source, f"{chain()}\n{printed}", "", 0)
    assert (found.own_check, found.schedules) == (own, (chain(),))


def test_several_schedules_and_json_are_read() -> None:
    assert read_output("", f"{chain()}\nwords\n{chain('x')}\n", "", 0).schedules == (
        *(chain(), chain("x")),
    )
    assert read_output("", ' {"gpus": []}\n', "", 0).schedules == ('{"gpus": []}',)
    assert read_output("Check()", "words\n", "", 0).failure == "does not run: words"


@pytest.mark.parametrize(
    ("custom", "verdict"),
    [("to the next", "valid"), ("to the one before", "invalid"), ("from rank 0", "valid")],
)
def test_collectives_of_programs(custom: str, verdict: str) -> None:
    found = judged(chain("custom"), custom)
    assert (found["verdict"], found["collective"]) == (verdict, "custom")


def test_a_schedule_without_a_collective_is_not_judged() -> None:
    found = judged(chain("custom"))
    assert found["verdict"] == "unreadable"
    assert "does not say what it must produce" in found["reason"]


def test_a_wrong_one_is_told_in_words() -> None:
    found = judged(chain(last="s0"))
    assert (found["verdict"], found["kind"]) == ("invalid", "missing-contribution")
    assert found["lines"][0].startswith("invalid: broadcast out of place, 2 ranks")

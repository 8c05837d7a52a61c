"""Writing a journal, and going on from one after any stop."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from p2smt.errors import InputError, OutOfSpace
from p2smt.parallel_search.journal import is_journal
from p2smt.parallel_search.journal.journal import Journal, Resumed
from p2smt.parallel_search.journal.journal_text import read_journal
from p2smt.parallel_search.journal.record import JournalHeader, header_of
from p2smt.parallel_search.subproblem import Closure, Member, Subproblem, SubproblemVerdict
from tests.parallel_search.journal.words import Words

SPACE = Words()
A, B, C = SPACE.roots()
BEST = SPACE.member("aba")
SOLVED = Closure(A, SubproblemVerdict.SOLVED, 4, (BEST,), seed=3, seconds=0.25, worker="w1")
BOUNDED = Closure(C, SubproblemVerdict.BOUNDED, 6, by_formula=True)


def header(**changes: object) -> JournalHeader:
    made = header_of(SPACE, "words", scale="1 letter", cube_rule="first letters")
    return replace(made, **changes)  # type: ignore[arg-type]


def journal(path: Path, **changes: object) -> Journal:
    return Journal(str(path), header(**changes), SPACE.member)


def write(path: Path) -> None:
    """A journal of a search that was stopped when one cube was open."""
    with journal(path) as made:
        assert made.resumed is None
        made.incumbent(BEST)
        made.closed(SOLVED)
        made.split(B, SPACE.split(B))
        made.closed(BOUNDED)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write(tmp_path / "j.jsonl")
    return tmp_path / "j.jsonl"


def resumed(path: Path, **changes: object) -> Resumed:
    with journal(path, **changes) as again:
        assert again.resumed is not None
        return again.resumed


def test_what_is_written_is_read(path: Path) -> None:
    found = resumed(path)
    assert found.closures == (SOLVED, BOUNDED)
    assert found.splits == ((B, SPACE.split(B)),)
    assert found.members == (BEST,)
    assert found.torn == 0


def test_every_record_is_in_the_file_at_once_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with journal(path) as made:
        assert is_journal(str(path))
        before = path.read_bytes()
        made.closed(SOLVED)
        after = path.read_bytes()
        assert after.startswith(before)
        (entry,) = read_journal(str(path)).entries
        assert entry.record == SOLVED


def test_a_continuation_has_its_own_options(path: Path) -> None:
    resumed(path, options={"seed": 7})
    first = read_journal(str(path)).header
    assert first is not None
    assert first.options == {}
    last = json.loads(path.read_text().splitlines()[-1])
    assert (last["record"], last["options"]) == ("continued", {"seed": 7})
    assert resumed(path).closures == (SOLVED, BOUNDED)


def test_a_journal_may_end_at_any_byte(path: Path, tmp_path: Path) -> None:
    """What a kill -9 or a full disk can leave: whole lines count, the rest is told and dropped.

    A line that lacks its line break alone is whole: it gets one before anything is appended.
    """
    whole = path.read_bytes()
    ends = [at for at, byte in enumerate(whole, start=1) if byte == ord("\n")]
    near = {end + step for end in ends for step in (-1, 0, 1) if end + step <= len(whole)}
    for length in sorted(near | set(range(0, len(whole), 101))):
        part = tmp_path / "part.jsonl"
        part.write_bytes(whole[:length])
        kept = length if length + 1 in ends else whole[:length].rfind(b"\n") + 1
        with journal(part) as again:
            assert ("torn and is dropped" in again.found) is (length > kept)
            assert ("goes on from " in again.found) is (kept > 0)
            assert (again.resumed is not None) is (kept > 0)
            if again.resumed is not None:
                assert again.resumed.torn == length - kept
                assert len(again.resumed.closures) <= 2
        kept += length + 1 in ends
        assert part.read_bytes()[:kept] == whole[:kept]
        assert read_journal(str(part)).torn == 0
        part.unlink()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"description": {"length": 4}}, "its description is another"),
        ({"top": 2}, "its top is another, 1, not 2"),
        ({"scale": "1 s"}, "its scale is another, '1 letter', not '1 s'"),
        ({"space": "solve"}, "its space is another, 'words', not 'solve'"),
        ({"roots": (Subproblem(),)}, "its roots is another"),
        ({"versions": {"p2smt": "0"}}, "its version of p2smt is another"),
    ],
)
def test_another_search_is_refused(path: Path, changes: dict[str, object], message: str) -> None:
    before = path.read_bytes()
    with pytest.raises(InputError, match=message), journal(path, **changes):
        pass
    assert path.read_bytes() == before


def test_another_solver_or_python_goes_on(path: Path) -> None:
    versions = {**header().versions, "ortools": "0", "python": "0"}
    assert resumed(path, versions=versions).closures


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("line", "old", "new", "message"),
    [
        (1, '"top": 1', '"top": 2', "line 1: its digest is not that of its question"),
        (1, "{", "[", "line 1: is not JSON"),
        (1, "header", "split", "line 1: unknown key"),
        (2, "incumbent", "incumbents", "did you mean 'incumbent'"),
        (2, "value", "valeu", "line 2: unknown key 'valeu'"),
        (2, '"at_s": ', '"at_s": 1, "at_s": ', "line 2: has the key 'at_s' twice"),
        (2, "}\n", "}}\n", "line 2: is not JSON"),
        (2, "}\n", "\n", "line 2: is not JSON"),
        (3, "solved", "empty", "line 3: verdict 'empty': has members on record"),
        (3, '"bound": 4', '"bound": 5', "bound 5: is more than its best member costs"),
        (3, "0.25", "NaN", "has NaN, which is no number of JSON"),
        (3, "0.25", '"0.25"', "must be a number"),
        (3, '"seed": 3', '"seed": true', "must be a whole number"),
        (3, '"aba"', '"aab"', "the member 'aab': is none of this space"),
        (3, '"value": 4', '"value": 5', "the member 'aba': has the value 4 and not 5"),
        (3, "[97, 98, 97]", "[97, 98, 98]", "or another place"),
        (3, '"cube": ["a"]', '"cube": ["d"]', "line 3: cube d is no first cube"),
        (5, "\n", "\n\n", "line 6: is not JSON"),
        (5, "\n", "\n\0\n", "line 6: is not JSON"),
        (5, '"c"', '"\\ud800"', "unable to parse"),
    ],
)
def test_any_other_bad_line_is_refused(
    path: Path, line: int, old: str, new: str, message: str
) -> None:
    lines = lines_of(path)
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    path.write_text("".join(lines))
    with pytest.raises(InputError, match=message) as caught, journal(path):
        pass
    assert "\n" not in str(caught.value)
    assert path.read_text() == "".join(lines)


def test_a_second_header_is_refused(path: Path) -> None:
    path.write_text("".join([*lines_of(path), lines_of(path)[0]]))
    with pytest.raises(InputError, match="line 6: is a second header"), journal(path):
        pass


def test_contradicting_verdicts_are_refused(path: Path) -> None:
    with journal(path) as made:
        made.closed(Closure(A, SubproblemVerdict.EMPTY))
    with pytest.raises(InputError, match="line 7: cube a has a verdict that contradicts"):
        resumed(path)


@pytest.mark.parametrize(
    "late",
    [
        replace(SOLVED, worker="w9", seconds=3.0, seed=8),
        Closure(A, SubproblemVerdict.UNKNOWN, 2),
        Closure(A, SubproblemVerdict.BOUNDED, 4),
    ],
)
def test_late_and_duplicate_results_are_harmless(path: Path, late: Closure) -> None:
    with journal(path) as made:
        made.closed(late)
    assert resumed(path).closures == (SOLVED, BOUNDED)


def test_a_closure_that_nobody_could_read_is_not_written(path: Path) -> None:
    before = path.read_bytes()
    with journal(path) as made, pytest.raises(InputError, match="no member on record"):
        made.closed(Closure(B, SubproblemVerdict.SOLVED))
    assert len(lines_of(path)) == len(before.splitlines()) + 1  # the continuation


def test_a_second_coordinator_is_refused(path: Path) -> None:
    other = "written to by another search"
    with journal(path), pytest.raises(InputError, match=other), journal(path):
        pass
    assert resumed(path).closures


def test_the_lock_of_a_killed_coordinator_is_free(path: Path) -> None:
    code = (
        "import sys, time; from p2smt.parallel_search.journal.journal import AppendedFile;"
        "kept = AppendedFile(sys.argv[1]); print('locked', flush=True); time.sleep(3600)"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "locked\n"
        with pytest.raises(InputError, match="another search"), journal(path):
            pass
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert resumed(path).closures


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "cannot be written"),
        ("no/such/folder.jsonl", r"cannot be written \(No such file or directory\)"),
        (".", r"cannot be written \(Is a directory\)"),
        ("fifo", "is not a regular file"),
        ("plan.json", "is not a journal"),
        ("rows.json", "line 1: is none of a journal's"),
    ],
)
def test_a_path_that_holds_no_journal(tmp_path: Path, name: str, message: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "plan.json").write_text('{"schema_version": 2}')
    (tmp_path / "rows.json").write_text('{"schema_version": 2}\n')
    given = str(tmp_path / name) if name else ""
    with pytest.raises(InputError, match=message), Journal(given, header(), SPACE.member):
        pass
    assert (tmp_path / "plan.json").read_text() == '{"schema_version": 2}'


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes (SIGXFSZ is ignored by Python)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [1, 40, 150])
def test_what_is_there_when_the_disk_is_full_stays_valid(path: Path, room: int) -> None:
    with journal(path) as made:
        size = path.stat().st_size
        late = Closure(B.under("a"), SubproblemVerdict.UNKNOWN, worker="w" * 300)
        with room_for(size + room), pytest.raises(OutOfSpace, match="make room") as caught:
            made.closed(late)
        assert path.stat().st_size == size
        made.closed(replace(late, worker=""))
    assert "\n" not in str(caught.value)
    assert len(resumed(path).closures) == 3


def test_a_member_without_a_check_is_taken_as_it_is(path: Path) -> None:
    with Journal(str(path), header()) as again:
        again.incumbent(Member(1, (), "zzz"))
    with Journal(str(path), header()) as again:
        assert again.resumed is not None
        assert again.resumed.members[0] == Member(1, (), "zzz")
    with pytest.raises(InputError, match="'zzz': is none of this space"):
        resumed(path)


def test_a_small_file_system_is_filled(tmp_path: Path) -> None:
    """As with a limit of sizes, on a disk of one page more than the journal has at first."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        path = disk / "j.jsonl"
        with journal(path) as made, pytest.raises(OutOfSpace, match="No space left on device"):
            fill(made)
        size = path.stat().st_size
        text = read_journal(str(path))
        assert (text.torn, text.size) == (0, size)
        last = text.entries[-1].record
        assert isinstance(last, Closure)
        assert last.worker == f"w{len(text.entries) - 1}"
        with pytest.raises(OutOfSpace), journal(path):
            raise AssertionError("there is room for the record that it goes on")
        assert path.stat().st_size == size
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def fill(made: Journal) -> None:
    """Write until there is no room."""
    for number in range(1000):
        made.closed(replace(SOLVED, worker=f"w{number}"))

"""What workers of one machine tell each other: read by all, sought by one, whatever dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOLCK
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from p2smt.parallel_search.shared_table import SharedTable, new_table, shared_table


def nothing() -> None:
    return None


def _hold(path: str, key: str, pipe: Connection) -> None:
    """Seek a key until told what it is: another process's part."""
    table = SharedTable(path)
    with table.sought(key) as mine:
        pipe.send(mine)
        table.put(key, pipe.recv())
    pipe.send(None)


@contextmanager
def other(path: str, key: str) -> Iterator[tuple[Connection, int]]:
    """A process that seeks a key, and its id."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=_hold, args=(path, key, there))
    process.start()
    assert here.recv() is True
    yield here, process.pid or 0
    process.kill()
    process.join()


@pytest.fixture
def path() -> Iterator[str]:
    with new_table() as made:
        assert made is not None
        yield made


def test_what_one_found_the_other_reads(path: str) -> None:
    one, two = SharedTable(path), SharedTable(path)
    assert two.get("a") is None
    one.put("a", "1\n2")
    one.put("b", "3")
    assert (two.get("a"), two.get("b"), two.get("c")) == ("1\n2", "3", None)
    assert SharedTable(path).get("b") == "3"


def test_a_key_that_is_sought_elsewhere_is_waited_for(path: str) -> None:
    table = SharedTable(path)
    waited: list[bool] = []
    with other(path, "a") as (pipe, _):
        assert table.waits("a")
        assert not table.waits("b")

        def wait() -> None:
            if not waited:
                pipe.send("found")
            waited.append(True)

        assert table.found_or_sought("a", lambda: "not asked", wait) == "found"
        assert waited
        assert not table.waits("a")


def test_waiting_may_be_given_up(path: str) -> None:
    def wait() -> None:
        raise TimeoutError

    with other(path, "a"), pytest.raises(TimeoutError):
        SharedTable(path).found_or_sought("a", nothing, wait)


def test_what_a_killed_process_sought_is_free(path: str) -> None:
    table = SharedTable(path)
    with other(path, "a") as (_, pid):
        os.kill(pid, signal.SIGKILL)
        assert table.found_or_sought("a", lambda: "mine", nothing) == "mine"
    assert SharedTable(path).get("a") == "mine"


def test_what_is_not_found_is_not_told(path: str) -> None:
    assert SharedTable(path).found_or_sought("a", nothing, nothing) is None
    assert Path(path).read_bytes() == b""


@pytest.mark.parametrize(
    "torn", [b'["a", "tor', b"not json\n", b'["a"]\n', b'["a", 1]\n', b"\xff\n"]
)
def test_lines_that_are_none_are_passed_over(path: str, torn: bytes) -> None:
    reader, writer = SharedTable(path), SharedTable(path)
    Path(path).write_bytes(torn)
    assert reader.get("a") is None
    writer.put("b", "2")
    assert (reader.get("a"), reader.get("b")) == (None, "2")


def test_without_a_file_there_is_only_this_process(tmp_path: Path) -> None:
    table = SharedTable(str(tmp_path / "none"))
    assert table.found_or_sought("a", lambda: "1", nothing) == "1"
    assert not table.waits("a")
    assert table.get("a") == "1"


def test_where_nothing_can_be_locked_all_may_seek(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.lockf", refused)
    assert not SharedTable(path).waits("a")
    assert SharedTable(path).found_or_sought("a", lambda: "1", nothing) == "1"


WITHOUT = [(), ("O_TMPFILE",)]


@pytest.fixture(params=WITHOUT, ids=["nameless", "named"])
def folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of temporary files, on a system with files without a name or without them."""
    for name in request.param:
        monkeypatch.delattr(os, name)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_table_goes_with_its_search(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with new_table() as made:
        assert made is not None
        assert Path(made).stat().st_mode & 0o777 == 0o600
        with other(made, "a") as (pipe, _):
            pipe.send("1")
            assert pipe.recv() is None
        assert shared_table(made).get("a") == "1"
    assert not list(folder.iterdir())
    monkeypatch.setattr("tempfile.tempdir", str(folder / "none"))
    with new_table() as made:
        assert made is None


def test_the_next_table_is_empty(folder: Path) -> None:
    """It may have the path of the one before, which this process had open."""
    for _ in range(2):
        with new_table() as made:
            assert made is not None
            assert shared_table(made).get("a") is None
            shared_table(made).put("a", "1")
    assert folder.exists()


def test_a_table_without_a_name_is_in_no_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So nothing of it is left, however the process ends."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with new_table() as made:
        assert made is not None
        if not made.startswith("/proc/"):
            pytest.skip("this folder has no files without a name")
        assert not list(tmp_path.iterdir())


def test_a_file_of_another_process_is_none(tmp_path: Path) -> None:
    """Where the process that made a table is gone, its number may be another one's."""
    with (tmp_path / "other").open("w+") as file:
        table = SharedTable(f"/proc/{os.getpid()}/fd/{file.fileno()}")
        table.put("a", "1")
        assert file.read() == ""
    assert table.get("a") == "1"


def test_what_a_killed_process_left_is_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where tables have names: by their process, if that is gone, and by nothing else."""
    monkeypatch.delattr(os, "O_TMPFILE")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = [f"p2smt-table-{number}-x.jsonl" for number in (int(gone.stdout), os.getpid())]
    for name in (*names, "p2smt-table-x.jsonl", "p2smt-1.jsonl"):
        (tmp_path / name).touch()
    with new_table():
        pass
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == sorted([names[1], "p2smt-table-x.jsonl", "p2smt-1.jsonl"])

"""Files that name hosts: what they say, and what is none."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.hostlist import hosts_named, read_hosts
from p2smt.errors import InputError


def test_names_lists_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# rack 1\nn[08-10]  # three\n\nlogin1,gpu-2.example.org\r\n10.0.0.7\n")
    assert read_hosts(str(path)) == (
        *("n08", "n09", "n10", "login1", "gpu-2.example.org", "10.0.0.7"),
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "names no host"),
        (b"# a\n", "names no host"),
        (b"n[1-\n", "line 1.*does not close"),
        (b"a\nn[1-999999999]\n", "line 2.*more than"),
        (b"n[1-1000000]\nm[1-1000000]\n", "more than"),
        (b"a b\n", "characters that no host has"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"a" * (2**24 + 1), "is larger than"),
    ],
)
def test_what_is_no_host_file(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_hosts(str(path))


def test_a_file_or_a_host_list(tmp_path: Path) -> None:
    path = tmp_path / "a,b"
    path.write_text("c\n")
    assert hosts_named(str(path)) == ("c",)
    assert hosts_named("a,b") == ("a", "b")
    assert hosts_named("n[08-10]") == ("n08", "n09", "n10")
    assert hosts_named("hosts.txt") == ("hosts.txt",)
    for text, message in (("none/a,b", "No such file"), (" ", "empty text")):
        with pytest.raises(InputError, match=message):
            hosts_named(text)


def test_a_folder_or_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        read_hosts(str(tmp_path))
    with pytest.raises(InputError, match="No such file"):
        read_hosts(str(tmp_path / "none"))
    with pytest.raises(InputError, match="hosts file"):
        read_hosts("\0")


@given(st.binary(max_size=200))
def test_any_bytes_are_hosts_or_refused(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    path = tmp_path_factory.mktemp("hosts") / "f"
    path.write_bytes(raw)
    with contextlib.suppress(InputError):
        assert read_hosts(str(path))

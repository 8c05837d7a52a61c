"""What names a topology on the command line: presets, node counts, paths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from p2smt.cluster.file import (
    load_topology,
)
from p2smt.errors import InputError
from p2smt.files.yaml_text import MAX_BYTES
from tests.cluster.texts import GOOD


@pytest.mark.parametrize(
    "value",
    ["", "1", "\x00", "a" * 5000, "::", ":4", "azure-ndv4:", "azure-ndv9", "no such", "../"],
)
def test_bad_specs(value: str) -> None:
    with pytest.raises(InputError) as caught:
        load_topology(value)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_unknown_presets_get_a_suggestion() -> None:
    with pytest.raises(InputError, match="did you mean 'azure-ndv4'"):
        load_topology("azure-nd-v4")


@pytest.mark.parametrize("count", ["0", "-1", "1.5", "x", "two", "9" * 30, "2:2", " "])
def test_bad_node_counts(count: str) -> None:
    with pytest.raises(InputError, match="azure-ndv4"):
        load_topology(f"azure-ndv4:{count}")


def test_too_many_nodes() -> None:
    with pytest.raises(InputError, match="devices"):
        load_topology("azure-ndv4:1000000")


BAD_PATHS: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(missing_ok=True),
    "directory": lambda path: path.mkdir(),
    "binary": lambda path: path.write_bytes(b"\x80\x81\xff\x00"),
    "utf-16": lambda path: path.write_bytes("name: x".encode("utf-16")),
    "too large": lambda path: path.write_bytes(b"#" * (MAX_BYTES + 1)),
    "empty": lambda path: path.write_bytes(b""),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path),
}


@pytest.mark.parametrize("case", BAD_PATHS)
def test_bad_paths(case: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    BAD_PATHS[case](path)
    for spec in (str(path), f"{path}:4"):
        with pytest.raises(InputError, match=r"cluster\.yaml") as caught:
            load_topology(spec)
        assert caught.value.remedy


def test_special_files_are_refused() -> None:
    with pytest.raises(InputError, match="regular file"):
        load_topology("/dev/zero")


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(GOOD)

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)
    with pytest.raises(InputError, match="Permission denied"):
        load_topology(str(path))


def test_files_and_node_counts(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(GOOD)
    assert load_topology(str(path)).sizes == (2, 8)
    assert load_topology(f"{path}:5").sizes == (5, 8)
    odd = tmp_path / "a:3"
    odd.write_text(GOOD)
    assert load_topology(str(odd)).sizes == (2, 8)

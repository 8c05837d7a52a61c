"""Runs of the tests are the same: the examples, whatever was loaded before, and shuffled orders."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis.internal.conjecture import providers

from tests.conftest import shuffled, without_constants
from tests.exploring.test_explore import ran

DRAWN = """
from pathlib import Path

from hypothesis import given, settings, strategies as st
{more}

@settings(max_examples=300)
@given(st.integers(), st.text(max_size=3), st.sets(st.sampled_from("abcdef")))
def test_drawn(number: int, text: str, letters: set[str]) -> None:
    with Path("drawn.txt").open("a") as file:
        print(number, repr(text), sorted(letters), file=file)
"""


def drawn(folder: Path, more: str) -> str:
    """What a property is tried on in a run of its own."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(DRAWN.format(more=more))
    (folder / "constants.py").write_text(f"ALL = {[7**n for n in range(9, 99)]}\n")
    done = ran(folder, "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    path = folder / "drawn.txt"
    text = path.read_text()
    path.unlink()
    return text


def test_examples_are_the_same_whatever_is_loaded(tmp_path: Path) -> None:
    first = drawn(tmp_path, "")
    assert len(first.splitlines()) >= 300
    assert drawn(tmp_path, "import constants") == first
    assert not list(tmp_path.glob(".hypothesis/examples/*"))


def test_a_function_inside_hypothesis_that_is_gone_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(providers, "_get_local_constants")
    with pytest.raises(pytest.UsageError, match="has no _get_local_constants"):
        without_constants()


def item(path: str, name: str) -> pytest.Item:
    return cast(pytest.Item, SimpleNamespace(path=Path(path), name=name))


def test_a_seed_shuffles_files_and_their_tests() -> None:
    items = [item(f"f{file}", f"t{test}") for file in range(9) for test in range(9)]
    orders = [[(str(one.path), one.name) for one in shuffled(items, seed)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    for order in orders:
        assert sorted(order) == sorted((str(one.path), one.name) for one in items)
        files = [file for file, _ in order]
        assert files == [file for file in dict.fromkeys(files) for _ in range(9)], "file by file"
        assert files != sorted(files)
        assert [name for _, name in order[:9]] != sorted(name for _, name in order[:9])

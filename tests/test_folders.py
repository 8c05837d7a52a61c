"""The house stays easy to find one's way in: few files side by side, none of them long."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = ("p2smt", "encodings")
BESIDE = ("tests", "experiments")
MOST_LINES = 400
MOST_FILES = {"p2smt/cli": 25}  # one per command; a family of commands gets a folder of its own


def sources(*folders: str) -> list[Path]:
    """Python files below these folders, links not followed; packages' own files left out."""
    found = (path for name in folders for path in (ROOT / name).rglob("*.py"))
    return sorted(path for path in found if path.name != "__init__.py")


def crowded(files: list[Path], most: int) -> list[str]:
    """Folders with more files side by side than they may have."""
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in files)
    limits = {name: MOST_FILES.get(name, most) for name in counts}
    return [f"{name}: {n} files" for name, n in counts.items() if n > limits[name]]


def test_folders_are_not_crowded() -> None:
    assert crowded(sources(*CODE), 14) == []
    assert crowded(sources(*BESIDE), 25) == []


def test_a_crowded_folder_is_found() -> None:
    assert crowded([ROOT / "p2smt" / "cost" / f"{i}.py" for i in range(15)], 14)
    assert not crowded([ROOT / "p2smt" / "cli" / f"{i}.py" for i in range(25)], 14)


def test_files_hold_one_idea() -> None:
    long = {path: len(path.read_text().splitlines()) for path in sources(*CODE, *BESIDE)}
    assert {path: count for path, count in long.items() if count > MOST_LINES} == {}


@pytest.mark.parametrize("name", CODE)
def test_every_folder_says_what_it_holds(name: str) -> None:
    """Packages of p2smt open with a docstring; folders of encodings have no such file."""
    for folder in {path.parent for path in sources(name)}:
        opening = folder / "__init__.py"
        if name == "encodings":
            assert not opening.exists(), "Python has a package of that name"
        else:
            assert opening.read_text().startswith('"""'), opening

"""The house stays easy to find one's way in: few files side by side, none of them long."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.imports import ROOT, files_below, module_of
from tests.interpreter import python

CODE = ("p2smt", "encodings")
BESIDE = ("tests", "experiments")
MOST_LINES = 700


def sources(*folders: str) -> list[Path]:
    """Python files below these folders, links not followed; packages' own files left out."""
    found = (path for name in folders for path in (ROOT / name).rglob("*.py"))
    return sorted(path for path in found if path.name != "__init__.py")


def crowded(files: list[Path], most: int) -> list[str]:
    """Folders with more files side by side than they may have."""
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in files)
    return [f"{name}: {n} files" for name, n in counts.items() if n > most]


def said(*command: str) -> set[Path]:
    """The Python files that a tool names, one a line."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {ROOT / line for line in done.stdout.splitlines() if line.endswith(".py")}


def test_tools_see_every_file() -> None:
    """Some ignore folders by name, such as "build"."""
    every = set(sources(*CODE, *BESIDE)) | set((ROOT / "p2smt").rglob("__init__.py"))
    if (ROOT / ".git").exists():
        seen = said("git", "ls-files", "--cached", "--others", "--exclude-standard")
        assert every - seen == set()
    ruff = Path(sys.executable).with_name("ruff")
    assert every - said(str(ruff), "check", "--show-files") == set()


def test_folders_are_not_crowded() -> None:
    assert crowded(sources(*CODE, *BESIDE), 20) == []


def test_a_crowded_folder_is_found() -> None:
    assert crowded([ROOT / "p2smt" / "cost" / f"{i}.py" for i in range(21)], 20)
    assert not crowded([ROOT / "p2smt" / "cost" / f"{i}.py" for i in range(20)], 20)


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


NAMED = re.compile(r"``([a-z][a-z_0-9]*)``")
DEFINED = re.compile(r"(?:def|class) (\w+)|^ *(\w+) ?[:=]", re.M)


def strangers(opening: Path) -> list[str]:
    """What a package's docstring names and is no part of it, nor defined in one."""
    own = [path for path in opening.parent.rglob("*.py") if path != opening]
    there = {"p2smt", *(path.stem for path in own), *(path.parent.name for path in own)}
    words = {word for path in own for found in DEFINED.findall(path.read_text()) for word in found}
    named = NAMED.findall(ast.get_docstring(ast.parse(opening.read_text())) or "")
    return sorted({name for name in named if name not in there | words})


def test_openings_name_what_is_there() -> None:
    """Of what is no module any more nothing may be left in the docstring of its package."""
    openings = (ROOT / "p2smt").rglob("__init__.py")
    found = {str(path.parent.relative_to(ROOT)): strangers(path) for path in openings}
    assert {name: lost for name, lost in found.items() if lost} == {}


@pytest.mark.parametrize("name", ["encodings", "topologies"])
def test_folders_of_the_root_are_relative_links(name: str) -> None:
    assert os.readlink(ROOT / "p2smt" / name) == f"../{name}"
    assert not (ROOT / name / "__init__.py").exists(), "with it PYTHONPATH=. stops Python"


def test_python_starts_in_the_root() -> None:
    """Python's own package ``encodings`` must win over the folder of that name."""
    code = (
        "import encodings, sys, p2smt.encodings.placement.primes; "
        "sys.stdout.write(encodings.__file__)"
    )
    found = python("-c", code, environment={"PYTHONPATH": "."})
    assert not Path(found).is_relative_to(ROOT / "encodings")


def test_every_package_is_listed_for_installation() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {module_of(path.parent / "__init__.py") for path in files_below(ROOT / "p2smt")}
    folders = {"p2smt" if name == "p2smt" else f"p2smt.{name}" for name in packages}
    listed = set(project["tool"]["setuptools"]["packages"]) - {
        "p2smt.topologies",
        "p2smt.libraries",
    }
    assert folders <= listed, "add the package to [tool.setuptools] in pyproject.toml"

"""The wheel and the sdist hold the folders that are linked into the package, and work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import p2smt

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
BUILD = "import setuptools.build_meta as b; b.build_{0}('out')"  # PEP 517, without isolation
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
FOLDERS = ("p2smt", "encodings", "topologies", "docs")
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV", "PYTEST"))}


def run(folder: Path, *command: str | Path) -> str:
    done = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(folder: Path, kind: str) -> Path:
    """Builds a wheel or sdist of the project in ``folder``; nothing is downloaded."""
    run(folder, sys.executable, "-c", BUILD.format(kind))
    (found,) = (folder / "out").glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return found


def package_files() -> set[str]:
    """What an installation must hold, as paths in it."""
    own = {f"{path.relative_to(ROOT)}" for path in (ROOT / "p2smt").rglob("*.py")}
    code = {f"p2smt/{path.relative_to(ROOT)}" for path in (ROOT / "encodings").rglob("*.py")}
    data = {f"p2smt/{path.relative_to(ROOT)}" for path in (ROOT / "topologies").rglob("*.yaml")}
    for kind in ("*.yaml", "*.csv"):
        data |= {f"{path.relative_to(ROOT)}" for path in (ROOT / "p2smt").rglob(kind)}
    data |= {f"p2smt/{path.relative_to(ROOT)}" for path in (ROOT / "docs").rglob("*.md")}
    assert own
    assert code
    assert data
    return own | code | data | {"p2smt/py.typed"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is built, so that no build result lands in the working tree."""
    copy = tmp_path_factory.mktemp("project")
    for name in FILES:
        shutil.copy(ROOT / name, copy)
    for name in FOLDERS:
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=skip)
    return copy


@pytest.fixture(scope="module")
def sdist(project: Path) -> Path:
    return build(project, "sdist")


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the unpacked sdist, as an installer does it."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (inner,) = folder.iterdir()
    return build(inner, "wheel")


def test_the_version_is_the_same_everywhere(sdist: Path) -> None:
    assert sdist.name == f"p2smt-{p2smt.__version__}.tar.gz"
    for page, line in (
        ("CITATION.cff", f"version: {p2smt.__version__}\n"),
        ("CHANGELOG.md", f"## {p2smt.__version__}"),
    ):
        assert line in (ROOT / page).read_text(), page


def test_sdist_holds_the_linked_folders(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert package_files() <= names
    assert set(FILES) <= names


def test_the_description_has_no_link_into_the_repository(sdist: Path) -> None:
    """A package index shows it without the files beside it."""
    with tarfile.open(sdist) as archive:
        (name,) = (one for one in archive.getnames() if one.count("/") == 1 and "PKG-INFO" in one)
        file = archive.extractfile(name)
        assert file is not None
        head, _, said = file.read().decode().partition("\n\n")
    assert "Description-Content-Type: text/markdown" in head
    assert said.startswith("# p2smt\n")
    targets = re.findall(r"\]\(([^)]*)\)", said)
    assert targets
    assert [one for one in targets if not one.startswith("https://")] == []
    assert "![" not in said
    named = re.findall(r"`p2smt docs ([^`]+)`", said)
    assert len(named) >= 5
    assert [one for one in named if not (ROOT / "docs" / f"{one}.md").is_file()] == []


def test_extras_that_messages_and_pages_name_exist() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    assert {"torch", "plots", "cluster", "report"} <= set(extras)
    said = "".join(one.read_text(encoding="utf-8") for one in texts_for_users())
    named = set(re.findall(r"(?:p2smt|\.)\[([a-z]+)\]'", said))
    assert named >= {"torch", "cluster"}
    assert named <= set(extras)


def test_no_advice_names_a_package_index() -> None:
    """Which one is the reader's choice: machines without the network have their own."""
    for path in texts_for_users():
        assert not re.search(r"--(extra-)?index-url|download\.pytorch", path.read_text()), path


def texts_for_users() -> list[Path]:
    """Code and pages of what is installed."""
    code = (path for name in ("p2smt", "encodings") for path in (ROOT / name).rglob("*.py"))
    pages = (path for name in ("docs", "examples") for path in (ROOT / name).rglob("*.md"))
    return sorted({*code, *pages, ROOT / "README.md"})


@pytest.mark.exhaustive
def test_wheel_from_the_sdist_holds_the_linked_folders(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert package_files() <= names
    assert "p2smt/encodings/__init__.py" not in names
    assert not [name for name in names if name.startswith("p2smt/docs/") and name[-3:] == ".py"]
    assert not [name for name in names if name.startswith(("encodings/", "tests/"))]


@pytest.mark.exhaustive
def test_wheel_from_the_working_tree_is_the_same(project: Path, wheel: Path) -> None:
    direct = zipfile.ZipFile(build(project, "wheel")).namelist()
    assert set(direct) == set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.exhaustive
def test_an_installed_wheel_works(wheel: Path, tmp_path: Path) -> None:
    """In a new environment that borrows the dependencies of this one."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    paths = sysconfig.get_paths("venv", vars={"base": str(home), "platbase": str(home)})
    borrowed = Path(paths["purelib"]) / "borrowed.pth"
    borrowed.write_text(sysconfig.get_path("purelib") + "\n")
    python = Path(paths["scripts"]) / "python"
    pip = (sys.executable, "-m", "pip", "--quiet", "--python", python)
    run(tmp_path, *pip, "install", "--no-index", "--no-deps", wheel)
    code = (
        "import p2smt, p2smt.encodings.placement.cpsat;"
        "from p2smt.cluster.file import load_topology;"
        "print(p2smt.__file__, load_topology('dgx-a100:4').devices)"
    )
    where, devices = run(tmp_path, python, "-c", code).split()
    assert Path(where).is_relative_to(home)
    assert devices == "32"
    program, empty = Path(paths["scripts"]) / "p2smt", tmp_path / "empty"
    empty.mkdir()
    assert "solve" in run(empty, program, "--help")
    assert run(empty, program, "docs", "report") == (ROOT / "docs" / "report.md").read_text()
    asked = "solve -t dgx-a100:2 --axes dp=2,tp=8 --reduce dp=1GiB -o plan.json"
    assert "optimal" in run(empty, program, *asked.split())
    run(empty, program, "report", "plan.json", "-o", "page.html")
    assert {one.name for one in empty.iterdir()} == {"plan.json", "page.html"}
    assert (empty / "page.html").read_text().startswith("<!doctype html>")

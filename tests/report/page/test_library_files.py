"""The file that makes a plan's library choose so, as a report names it."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from p2smt.interop.tuners.advice import LibraryAdvice
from p2smt.report.page.reading import Names
from p2smt.report.page.sources import story_of
from tests.cli.tools import TINY, cli

RING = ("--algorithm", "ring")
TABLES = Path(__file__).parents[3] / "examples" / "mpi"
SOLVE = ("solve", "--axes", "dp=8", "--reduce", "dp=8MiB", "--length", "1")


def advice(tmp_path: Path, library: str, *more: str, nodes: int = 2) -> LibraryAdvice | None:
    """What the report of a plan on so many nodes of eight devices in all says."""
    text = TINY.replace("library: none\nalgorithms: [ring]\n", f"library: {library}\n")
    text = text.replace("node, size: 2", f"node, size: {nodes}")
    text = text.replace("gpu, size: 4", f"gpu, size: {8 // nodes}")
    (tmp_path / "t.yaml").write_text(text)
    plan = str(tmp_path / "my plan.json")
    assert cli(*SOLVE, "-t", str(tmp_path / "t.yaml"), *more, "-o", plan).code == 0
    return story_of([plan]).library


def written(found: LibraryAdvice) -> list[str]:
    """The formats of the commands, each run in the current folder and its file judged."""
    formats = []
    for command in found.commands:
        _, export, *words = shlex.split(command)
        formats.append(words[2])
        assert cli(export, *words).code == 0, command
        assert cli("verify", words[-1], "--comms", "4x2", "--as", words[2]).code == 0, command
    return formats


@pytest.mark.parametrize(
    ("library", "formats", "tables"),
    [
        ("nccl-2.20", ["nccl-tuner"], ""),
        ("openmpi-4", ["ompi-tuned"], "openmpi"),
        ("openmpi-5", ["ompi-tuned", "ompi-han"], "openmpi"),
        ("mpich-5", ["mpich", "mpich-ch4"], "mpich"),
    ],
)
def test_the_commands_that_it_names_write_the_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    library: str,
    formats: list[str],
    tables: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if tables:
        shutil.copytree(TABLES / tables, tmp_path, dirs_exist_ok=True)
    found = advice(tmp_path, library, *(RING if tables else ()), nodes=4)
    assert found is not None
    assert "8 MiB on 4x2" in found.words
    assert written(found) == formats


@pytest.mark.parametrize(
    ("library", "tables"),
    [
        ("nccl-2.20", ""),
        ("rccl", " --measured own=own.txt --measured WAY=forced.txt"),
        ("mpich-5", " --measured own=own.txt --measured WAY=forced.txt"),
    ],
)
def test_what_a_library_takes_by_itself_needs_tables_where_files_have_gains_alone(
    tmp_path: Path, library: str, tables: str
) -> None:
    found = advice(tmp_path, library)
    assert found is not None
    assert found.short == f"as {library} chooses by itself"
    start = found.commands[0].partition(" -o ")[0]
    assert start.partition(" --to ")[2].partition(" ")[2] == tables.strip()


def test_inside_a_node_no_file_for_several_is_named(tmp_path: Path) -> None:
    for library in ("openmpi-5", "mpich-5"):
        found = advice(tmp_path, library, nodes=1)
        assert found is not None
        assert len(found.commands) == 1


@pytest.mark.parametrize("library", ["gloo", "none"])
def test_a_library_that_reads_no_file_has_none(tmp_path: Path, library: str) -> None:
    assert advice(tmp_path, library) is None


@pytest.mark.parametrize("library", ["nccl-2.20", "openmpi-5"])
def test_a_plan_that_asks_for_another_way_says_what_it_takes(tmp_path: Path, library: str) -> None:
    own, asked = advice(tmp_path, library), advice(tmp_path, library, *RING)
    assert own is not None
    assert asked is not None
    assert "counts on ring" in asked.words
    assert "if --measured tables show the gain" in asked.words
    assert f"not {library}'s own " in asked.short
    assert asked.short.partition("own ")[2].partition(",")[0] in own.words


def test_what_an_option_left_the_library_is_not_pinned_as_its_own(tmp_path: Path) -> None:
    """A file made of such a plan changes no choice that no table contains."""
    found = []
    for more in ((), RING):
        advice(tmp_path, "nccl-2.20", *more)
        found.append(cli("export", str(tmp_path / "my plan.json"), "--to", "nccl-tuner").out)
    assert found[0] == found[1]
    assert ",tree," in found[0]


def test_the_terminal_and_the_page_name_it(tmp_path: Path) -> None:
    assert advice(tmp_path, "openmpi-5") is not None
    plan, page = str(tmp_path / "my plan.json"), tmp_path / "page.html"
    shown = " ".join(cli("show", plan).out.split())
    assert (
        "as openmpi-5 chooses by itself: p2smt export 'my plan.json' --to ompi-tuned --measured"
        in shown
    )
    assert cli("report", plan, "-o", str(page)).code == 0
    assert "Make the library choose so" in page.read_text()
    hidden = story_of([plan], Names(anonymous=True)).library
    assert hidden is not None
    assert "plan" not in " ".join(hidden.commands)

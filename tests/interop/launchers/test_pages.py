"""The pages of launchers: every command on them runs, and prints what they show."""

from __future__ import annotations

import re
from os import environ
from pathlib import Path

import pytest

from tests.interop.launchers.slurm_cluster import SlurmCluster, why_no_slurm
from tests.interop.launchers.test_rankfile import needs_cores, needs_mpirun, variables
from tests.interop.launchers.test_torchrun import cluster
from tests.interpreter import ran
from tests.pages import blocks, commands, with_programs

BUFFERED = {"PYTHONUNBUFFERED": ""}
"""Ranks that share a stream write whole lines: unbuffered, ``print`` writes a line's end apart."""

PAGES = Path(__file__).parents[3] / "docs" / "launchers"
PAGE = PAGES / "README.md"
OURS = ("What a rank is", "Ranks host by host", "Hosts without names")
"""Sections whose commands are p2smt's own; the others start ranks."""


def printed(command: str, folder: Path, variables: dict[str, str]) -> list[str]:
    """What a command prints on both streams: at first what it says, then its notes."""
    done = ran("bash", "-c", command, folder=folder, environment={**BUFFERED, **variables})
    refused = done.stderr.startswith("p2smt: error:")
    unproved = command.startswith("p2smt solve") and done.returncode == 3
    assert refused or unproved or done.returncode == 0, done.stderr
    notes = done.stderr if "p2smt export" in command else ""
    return (done.stdout + notes).splitlines()


def run_section(section: str, folder: Path, variables: dict[str, str]) -> None:
    """Every command of a section; ranks may speak in any order."""
    for command, lines in commands(PAGE, section):
        found = printed(command, folder, variables)
        if not command.startswith(("p2smt", "cat")):
            assert sorted(found) == sorted(lines), command
        elif lines or "solve" not in command:
            assert found == lines, command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The plan of the first page, as its first command makes it, and a command p2smt."""
    (tmp_path / "cluster.yaml").write_text(blocks(PAGE, "yaml")[0])
    with_programs(tmp_path)
    solve, _ = next(commands(PAGE))
    printed(solve, tmp_path, path(tmp_path))
    return tmp_path


def path(folder: Path) -> dict[str, str]:
    return {"PATH": f"{folder / 'bin'}:{environ['PATH']}"}


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_page(folder: Path) -> None:
    for section in OURS:
        run_section(section, folder, path(folder))


def test_every_section_with_commands_is_run() -> None:
    sections = re.findall(r"^## (.*)$", PAGE.read_text(), re.M)
    run = {one for one in sections if blocks(PAGE, "console", one)}
    assert run == {*OURS, "Slurm", "Open MPI", "torchrun"}


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_page_of_jobs(tmp_path: Path) -> None:
    """What both streams have: answers, then notes."""
    page = PAGES / "jobs.md"
    (tmp_path / "gpus.yaml").write_text(blocks(page, "yaml")[0])
    with_programs(tmp_path)
    for command, lines in commands(page):
        done = ran("bash", "-c", command, folder=tmp_path, environment=path(tmp_path))
        said = "" if command.startswith("p2smt plan") else done.stderr
        assert (done.stdout + said).splitlines() == lines, command


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
def test_the_section_of_slurm(folder: Path) -> None:
    if reason := why_no_slurm():
        pytest.skip(reason)
    (job,) = blocks(PAGE, "bash", "Slurm")
    (folder / "job.sh").write_text(job)
    slurm = folder / "slurm"
    slurm.mkdir()
    with SlurmCluster.started(slurm, 4) as started:
        run_section("Slurm", folder, {**path(folder), **started.variables})


@pytest.mark.exhaustive
@needs_mpirun
@needs_cores
@pytest.mark.slow
@pytest.mark.cluster
def test_the_section_of_open_mpi(folder: Path) -> None:
    run_section("Open MPI", folder, {**variables(folder / "agent"), **path(folder)})


@pytest.mark.exhaustive
@pytest.mark.cluster
def test_the_section_of_torchrun(folder: Path) -> None:
    pytest.importorskip("torch")
    (program,) = blocks(PAGE, "python", "torchrun")
    (folder / "train.py").write_text(program)
    run_section("torchrun", folder, cluster(folder / "bin"))

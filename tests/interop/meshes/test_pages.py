"""The pages of meshes: every command on them runs and prints what they show, every program runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.imports import ROOT
from tests.interpreter import ran
from tests.pages import blocks, commands, with_programs

PAGES = ROOT / "docs" / "meshes"
SHORT = ("README.md",)
REST = sorted({path.name for path in PAGES.glob("*.md")} - {*SHORT})
LONG = pytest.mark.exhaustive
LAUNCHERS = ROOT / "docs" / "launchers" / "README.md"


def run(command: str, folder: Path) -> list[str]:
    """What a command prints, notes last."""
    place = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    done = ran("bash", "-c", command, folder=folder, environment=place)
    if not done.stderr.startswith("p2smt: error:"):
        assert done.returncode in (0, 3), done.stderr
    return (done.stdout + (done.stderr if "p2smt export" in command else "")).splitlines()


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan of the pages, and a command p2smt."""
    folder = tmp_path_factory.mktemp("planned")
    (folder / "cluster.yaml").write_text(blocks(LAUNCHERS, "yaml")[0])
    with_programs(folder)
    (solve,) = re.findall(r"^\$ (p2smt solve .*-o plan\.json)$", LAUNCHERS.read_text(), re.M)
    run(solve, folder)
    return folder


@pytest.fixture
def folder(planned: Path, tmp_path: Path) -> Path:
    """A folder of its own for each test."""
    return Path(shutil.copytree(planned, tmp_path / "pages"))


@pytest.mark.slow
@pytest.mark.parametrize("page", [*SHORT, *(pytest.param(page, marks=LONG) for page in REST)])
def test_commands(page: str, folder: Path) -> None:
    for command, lines in commands(PAGES / page):
        found = run(command, folder)
        if lines or "solve" not in command:
            assert found == lines, command


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("page", "form", "module", "ranks"),
    [("README.md", "device-mesh", "mesh", 8), ("python.md", "python", "programs", 16)],
)
def test_programs_for_torch(page: str, form: str, module: str, ranks: int, folder: Path) -> None:
    for command in re.findall(r"^\$ (p2smt solve.*)$", (PAGES / page).read_text(), re.M):
        run(command, folder)
    plan = "plan.json" if form == "device-mesh" else "a100.json"
    run(f"p2smt export {plan} --to {form} -o {module}.py", folder)
    (program,) = blocks(PAGES / page, "python")
    (folder / "train.py").write_text(program)
    start = f"{shlex.quote(sys.executable)} -m torch.distributed.run --standalone"
    run(f"OMP_NUM_THREADS=1 {start} --nproc-per-node={ranks} train.py", folder)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_program_for_jax(folder: Path) -> None:
    pytest.importorskip("jax")
    run("p2smt export plan.json --to jax -o programs_jax.py", folder)
    (program,) = blocks(PAGES / "jax.md", "python")
    (folder / "use.py").write_text(program)
    run(f"JAX_PLATFORMS=cpu {shlex.quote(sys.executable)} use.py", folder)

"""MPI as a backend, on real ranks where there is an MPI, and what is said where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from p2smt import load_topology
from p2smt.cluster.file_model import dump_topology
from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.files.yaml_text import dump_yaml
from p2smt.runtime.job import Job
from p2smt.runtime.payload import DataType, RunOptions
from p2smt.runtime.ranks import mpi_launch
from p2smt.runtime.ranks.mpi_launch import on_mpi
from p2smt.schedules.classics import classic
from p2smt.schedules.language.write import dump_schedule

MISSING = find_spec("mpi4py") is None or shutil.which("mpirun") is None
needs_mpi = pytest.mark.skipif(MISSING, reason="needs mpi4py and an MPI: openmpi or mpich")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
WHERE = ("-t", "dgx-a100:2", "--use", "gpu=2")


def four_ranks(folder: Path) -> tuple[str, ...]:
    """Two nodes of two ranks, on which one axis lies."""
    part = load_topology("dgx-a100:2").under("none")
    inner = replace(part.levels[-1], size=2)
    part = replace(part, levels=(*part.levels[:-1], inner))
    (folder / "t.yaml").write_text(dump_yaml(dump_topology(part)))
    return ("-t", "t.yaml", "--axes", "dp=4", "--placement", "[[2,2]]")


def cli(folder: Path, *words: str, launcher: tuple[str, ...] = ()) -> tuple[int, str]:
    command = (*launcher, sys.executable, "-m", "p2smt.cli", *words)
    more = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    environment = {**os.environ, **AS_ROOT, **more}
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    return ended.returncode, ended.stdout + ended.stderr


ASKED = {
    "single": ("--reduce", "dp=4KiB", "--all-gather", "dp=4KiB", "--reduce-scatter", "dp=4KiB"),
    "exchange": ("--all-to-all", "dp=4KiB", "--send", "dp=4KiB"),
    "master": (
        *("--reduce", "dp=4KiB", "--pipeline", "3", "--program"),
        "reduce inside node; all-reduce master node in root; broadcast inside node",
    ),
    "parallel": (
        *("--reduce", "dp=4KiB", "--program"),
        "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node",
    ),
    "tokens": ("--dispatch", "dp=64KiB,experts=8,active=2"),
}


@needs_mpi
@pytest.mark.cluster
@pytest.mark.parametrize("asked", ASKED)
def test_requests_and_programs_run_right(tmp_path: Path, asked: str) -> None:
    where = four_ranks(tmp_path)
    once = ("--backend", "mpi", "--repeat", "1", "--warmup", "0")
    code, said = cli(tmp_path, "run", *where, *ASKED[asked], *once)
    assert (code, "verified: 4 ranks, mpi" in said) == (0, True), said


@needs_mpi
@pytest.mark.cluster
def test_schedules_and_redistributions_run_right_on_ranks_that_exist(tmp_path: Path) -> None:
    (tmp_path / "ring.yaml").write_text(dump_schedule(classic("ring-all-reduce", 3)))
    launcher = ("mpirun", "-n", "3")
    code, said = cli(tmp_path, "run", "ring.yaml", "--backend", "mpi", launcher=launcher)
    assert (code, said.count("verified: 3 ranks, mpi")) == (0, 1), said
    words = ("--mesh", "x=2,y=2", "--shape", "8,8", "--dtype", "f32", "-o", "plan.json")
    types = ("--from", "S(x),S(y)", "--to", "S(y),S(x)")
    code, said = cli(tmp_path, "redistribute", *WHERE, *words, *types)
    assert code == 0, said
    code, said = cli(tmp_path, "run", "plan.json", "--backend", "mpi", "--repeat", "1")
    assert (code, "verified: 4 ranks, mpi" in said) == (0, True), said


@needs_mpi
@pytest.mark.cluster
def test_one_rank_that_fails_ends_all(tmp_path: Path) -> None:
    """Rank 2 fails while the others wait in a collective that will never be complete."""
    (tmp_path / "fails.py").write_text(
        "import os, sys\nfrom p2smt.runtime import mpi\ncomm = mpi.mpi().COMM_WORLD\n"
        "os._exit(6) if comm.rank == 2 else comm.Barrier()\n"
    )
    ended = subprocess.run(
        ("mpirun", "-n", "4", sys.executable, "fails.py"),
        cwd=tmp_path,
        env={**os.environ, **AS_ROOT, "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"},
        capture_output=True,
        timeout=600,
    )
    assert ended.returncode != 0


def test_a_missing_launcher_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi_launch.os, "environ", {"PATH": "/nonexistent"})
    monkeypatch.setattr(mpi_launch.shutil, "which", lambda _: None)
    with pytest.raises(BackendError, match="no mpirun or mpiexec on PATH") as caught:
        on_mpi(Job(4, ()), RunOptions("mpi"))
    assert "\n" not in str(caught.value)


def test_a_launcher_that_fails_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = tmp_path / "mpirun"
    launcher.write_text("#!/bin/sh\necho '----'\necho no slots available >&2\nexit 3\n")
    launcher.chmod(0o755)
    monkeypatch.setattr(mpi_launch, "started_by_mpi", lambda: False)
    monkeypatch.setattr(mpi_launch.shutil, "which", lambda _: str(launcher))
    with pytest.raises(ExecutionError, match="mpirun: no slots available"):
        on_mpi(Job(4, ()), RunOptions("mpi"))


@pytest.mark.parametrize("kind", [DataType.FLOAT16, DataType.BFLOAT16])
def test_half_precision_is_refused(kind: DataType) -> None:
    with pytest.raises(InputError, match="use float32 or int64"):
        RunOptions("mpi", data_type=kind)


def test_mpi_has_no_gpus() -> None:
    with pytest.raises(InputError, match="does not run on device cuda"):
        RunOptions("mpi", "cuda")

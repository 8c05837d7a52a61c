"""MPI as a backend, on real ranks where there is an MPI, and what is said where there is none."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from p2smt import load_topology
from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.runtime.job import Job
from p2smt.runtime.payload import DataType, RunOptions
from p2smt.runtime.ranks.mpi_launch import on_mpi, ranks_here
from p2smt.schedules.classics import classic
from p2smt.schedules.language.schedule_text import dump_schedule
from tests.cli.tools import assert_one_error
from tests.runtime.processes import PAIRS, PROGRAM, started, wait_for
from tests.runtime.ranks.mpis import Mpi, mpi
from tests.tiers import but_the_first

__all__ = ["mpi"]

RANK = "p2smt.runtime.ranks.mpi_rank"
MASTERS = "reduce inside node; all-reduce master node in root; broadcast inside node"
REDUCED = (("8KiB", "single"), ("12KiB", MASTERS), ("20KiB", PROGRAM))
OTHERS = ("--reduce-scatter", "--all-gather", "--all-to-all", "--send")


def on_pairs(folder: Path, *words: str, command: str = "run", repeat: str = "1") -> tuple[str, ...]:
    """A command on two nodes of two ranks."""
    path = folder / "pairs.yaml"
    path.write_text(PAIRS)
    place = ("--axes", "dp=4", "--placement", "[[2,2]]", "--repeat", repeat)
    return (command, "-t", str(path), *(place if command == "run" else ()), *words)


def requests() -> list[str]:
    """Every kind of request, and programs with master steps and with parallel ones."""
    sizes = [word for size, _ in REDUCED for word in ("--reduce", f"dp={size}")]
    others = [word for option in OTHERS for word in (option, "dp=4KiB")]
    tokens = ["--dispatch", "dp=64KiB,experts=8,active=2"]
    programs = [program for _, program in REDUCED] + ["single"] * len(OTHERS[:-1])
    return [*sizes, *others, *tokens, *(w for p in programs for w in ("--program", p))]


@pytest.mark.cluster
@pytest.mark.parametrize("dtype", but_the_first("float32", "int64"))
def test_requests_and_programs_run_right_on_ranks_started_here(
    tmp_path: Path, mpi: Mpi, dtype: str
) -> None:
    words = ("--backend", "mpi", "--pipeline", "3", "--dtype", dtype)
    done = mpi.p2smt(*on_pairs(tmp_path, *requests(), *words))
    assert (done.code, done.err) == (0, "")
    assert f"verified: 4 ranks, mpi, {dtype}" in done.out


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_schedules_and_redistributions_run_right_on_ranks_of_mpirun(
    tmp_path: Path, mpi: Mpi
) -> None:
    ring, plan = str(tmp_path / "ring.yaml"), str(tmp_path / "plan.json")
    Path(ring).write_text(dump_schedule(classic("ring-all-reduce", 3)))
    done = mpi.p2smt("run", ring, "--backend", "mpi", ranks=3)
    assert (done.code, done.out.count("verified: 3 ranks, mpi")) == (0, 1), done.err
    array = ("--mesh", "x=2,y=2", "--shape", "8,8", "--dtype", "f32", "-o", plan)
    layouts = ("--from", "S(x),S(y)", "--to", "S(y),S(x)")
    done = mpi.p2smt(*on_pairs(tmp_path, *array, *layouts, command="redistribute"))
    assert done.code == 0, done.err
    done = mpi.p2smt("run", plan, "--backend", "mpi", "--repeat", "1", ranks=4)
    assert (done.code, done.out.count("verified: 4 ranks, mpi")) == (0, 1), done.err


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_transfers_run_right_on_ranks_started_here(tmp_path: Path, mpi: Mpi) -> None:
    plan = str(tmp_path / "plan.json")
    array = ("--mesh", "x=2", "--shape", "9,7", "--dtype", "f32", "--to-mesh", "y=3", "-o", plan)
    words = ("--from", "S(x),R", "--to", "R,S(y)", "--uneven", "nested", "--to-device-ids", "1-3")
    done = mpi.p2smt(*on_pairs(tmp_path, *array, *words, command="redistribute"))
    assert done.code in (0, 3), done.err
    done = mpi.p2smt("run", plan, "--backend", "mpi", "--repeat", "1")
    assert (done.code, done.out.count("verified: 4 ranks, mpi")) == (0, 1), done.err


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_a_calibration_measures_mpi_and_no_library_of_gpus(tmp_path: Path, mpi: Mpi) -> None:
    out = str(tmp_path / "measured.yaml")
    words = ("calibrate", "-t", "dgx-a100:2", "--use", "gpu=2", "--backend", "mpi", "-o", out)
    sizes = ("--sizes", "1KiB,16KiB,256KiB,1MiB", "--repeat", "1")
    done = mpi.p2smt(*words, *sizes)
    assert done.code == 0, done.err
    found = load_topology(out)
    assert (found.library, found.calibrated) == (None, True)
    assert any("4 ranks, mpi" in source for source in found.sources)


FAILS = """
import os
if "2" in (os.environ.get("OMPI_COMM_WORLD_RANK"), os.environ.get("PMI_RANK")):
    from p2smt.runtime.ranks import worker

    def fails(*_):
        raise OSError("the disk is full")

    worker.report_work = fails
"""
FAULT = "p2smt: error: rank 2: OSError during its start: the disk is full"


@pytest.mark.cluster
@pytest.mark.parametrize("ranks", but_the_first(4, 0))
def test_one_rank_that_fails_ends_all(tmp_path: Path, mpi: Mpi, ranks: int) -> None:
    """The others wait in a collective that will never be complete; none of them is left."""
    (tmp_path / "sitecustomize.py").write_text(FAILS)
    words = on_pairs(tmp_path, "--reduce", "dp=4KiB", "--backend", "mpi")
    done = mpi.p2smt(*words, ranks=ranks, first=(tmp_path,))
    assert done.code != 0
    assert [line for line in done.err.splitlines() if "error:" in line] == [FAULT]
    if not ranks:
        assert_one_error(done, 6)


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_other_ranks_than_a_plan_has_are_refused(tmp_path: Path, mpi: Mpi) -> None:
    words = on_pairs(tmp_path, "--reduce", "dp=4KiB", "--backend", "mpi")
    done = mpi.p2smt(*words, ranks=3)
    assert done.code != 0  # which one, and what more is said, is the launcher's affair
    assert "verified" not in done.out
    assert done.err.count("3 ranks that mpirun started: the plan is for 4; start 4") == 1


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_bad_input_of_all_ranks_is_one_json_object(tmp_path: Path, mpi: Mpi) -> None:
    words = on_pairs(tmp_path, "--reduce", "dp=4KiB", "--backend", "mpi")
    done = mpi.p2smt(*words, "--json", ranks=3)
    assert json.loads(done.out)["error"]["rule"] == "the plan is for 4"


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_a_launcher_of_another_mpi_is_told(tmp_path: Path, mpi: Mpi) -> None:
    """Each of its processes would think that it is alone."""
    others = "PMI_SIZE" if mpi.name == "openmpi" else "OMPI_COMM_WORLD_SIZE"
    words = on_pairs(tmp_path, "--reduce", "dp=4KiB", "--backend", "mpi")
    done = mpi.p2smt(*words, more={others: "4"})
    assert done.code == 5
    assert "error: backend mpi: mpirun started 4 ranks, of another MPI than" in done.err


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_a_run_that_is_terminated_leaves_no_rank(tmp_path: Path, mpi: Mpi) -> None:
    words = on_pairs(tmp_path, "--reduce", "dp=4KiB", "--backend", "mpi", repeat="100000")
    line = [str(mpi.bin / "python"), "-m", "p2smt.cli", *words]
    with started(line=line, environment=mpi.environment()) as running:
        wait_for(lambda: len(running.running(RANK)) > 4 or None)  # mpirun names it, too
        running.process.terminate()
        assert running.outcome().code == 143
        running.assert_nothing_left()


@pytest.mark.parametrize(
    ("environment", "here"),
    [
        ({}, range(8)),
        ({"PMIX_RANK": "5"}, range(5, 6)),
        (
            {
                "OMPI_COMM_WORLD_SIZE": "8",
                "OMPI_COMM_WORLD_RANK": "5",
                "OMPI_COMM_WORLD_LOCAL_RANK": "1",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
            },
            range(4, 8),
        ),
        (
            {"PMI_SIZE": "8", "PMI_RANK": "2", "MPI_LOCALRANKID": "2", "MPI_LOCALNRANKS": "4"},
            range(4),
        ),
    ],
)
def test_memory_is_of_the_ranks_of_a_machine(environment: dict[str, str], here: range) -> None:
    assert ranks_here(8, environment) == here


def test_a_missing_launcher_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(BackendError, match="no mpirun or mpiexec on PATH") as caught:
        on_mpi(Job(4, ()), RunOptions("mpi"))
    assert "\n" not in str(caught.value)


def test_a_launcher_that_fails_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = tmp_path / "mpirun"
    launcher.write_text("#!/bin/sh\necho '----'\necho no slots available >&2\nexit 3\n")
    launcher.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _: str(launcher))
    with pytest.raises(ExecutionError, match="mpirun: no slots available"):
        on_mpi(Job(4, ()), RunOptions("mpi"))


@pytest.mark.cluster
@pytest.mark.skipif(os.geteuid() != 0, reason="Open MPI refuses root alone")
def test_open_mpi_as_root_says_what_helps(tmp_path: Path, mpi: Mpi) -> None:
    if mpi.name != "openmpi":
        pytest.skip("MPICH runs as root")
    words = on_pairs(tmp_path, "--reduce", "dp=4KiB", "--backend", "mpi")
    done = mpi.p2smt(
        *words, more={"OMPI_ALLOW_RUN_AS_ROOT": "", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": ""}
    )
    assert_one_error(done, 6)
    assert "as root. run it as another user, or set OMPI_ALLOW_RUN_AS_ROOT=1" in done.err


def test_ranks_that_are_not_of_mpi_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of torchrun's ranks would start all of MPI's."""
    place = {"RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "here", "MASTER_PORT": "29500"}
    for name, value in place.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match="none of MPI's; start them with mpirun"):
        on_mpi(Job(4, ()), RunOptions("mpi"))


@pytest.mark.parametrize("kind", [DataType.FLOAT16, DataType.BFLOAT16])
def test_half_precision_is_refused(kind: DataType) -> None:
    with pytest.raises(InputError, match="use float32 or int64"):
        RunOptions("mpi", data_type=kind)


def test_mpi_has_no_gpus() -> None:
    with pytest.raises(InputError, match="does not run on device cuda"):
        RunOptions("mpi", "cuda")

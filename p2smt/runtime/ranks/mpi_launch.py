"""Ranks of MPI: those that exist, or those that mpirun is to start on this machine."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.runtime.payload import RankReport, RunOptions
from p2smt.runtime.ranks.place import existing_place
from p2smt.runtime.work import Work
from p2smt.units import plain

_SIGNS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "PMI_RANK")
"""What launchers of MPI tell each rank: Open MPI's, hydra's, and srun with PMIx or PMI-2."""
_RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_LOCAL_RANK = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
_MORE_THAN_CORES = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",  # Open MPI 4
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # 5
}
_SPARE_S, _GRACE_S = 60.0, 5.0


def started_by_mpi(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a launcher of MPI started this process."""
    return any(name in environment for name in _SIGNS)


def is_first_rank(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is rank 0 of those that a launcher started, or none of them."""
    if started_by_mpi(environment):
        return next((environment[name] for name in _RANK if name in environment), "0") == "0"
    try:
        place = existing_place(environment)
    except InputError:
        return True
    return place is None or place.rank == 0


def ranks_here(ranks: int, environment: Mapping[str, str] = os.environ) -> range:
    """The ranks of this machine: all, if none exist yet, one where the launcher does not say."""
    if not started_by_mpi(environment):
        return range(ranks)
    rank, local, count = (
        next((int(environment[name]) for name in names if name in environment), default)
        for names, default in ((_RANK, 0), (_LOCAL_RANK, 0), (_LOCAL_RANKS, 1))
    )
    first = min(max(0, rank - local), ranks - min(count, ranks))
    return range(first, first + min(count, ranks))


def on_mpi(work: Work, options: RunOptions) -> list[RankReport] | None:
    """Run work on MPI's ranks: as one of them, or on new ones here; None on ranks but 0.

    Raises:
        InputError: other ranks exist than the work has, or ranks that no MPI knows.
        BackendError: mpirun, mpi4py or MPI is missing.
        ExecutionError: a rank failed or died, which ends all, or did not finish in time.
    """
    if started_by_mpi():
        from p2smt.runtime.ranks.mpi_rank import run_mpi_rank

        return run_mpi_rank(work, options)
    if existing_place() is not None:
        rule = "are none of MPI's"
        remedy = "start them with mpirun, or with srun --mpi=pmix"
        raise InputError("the ranks that torchrun or srun started", rule, remedy)
    launcher = shutil.which("mpirun") or shutil.which("mpiexec")
    if launcher is None:
        raise BackendError(
            "backend mpi: no mpirun or mpiexec on PATH; install an MPI (openmpi or mpich), or "
            f"start the ranks yourself, as with srun --mpi=pmix -n {work.ranks} p2smt run .."
        )
    with tempfile.TemporaryDirectory(prefix="p2smt-mpi-") as folder:
        return _launched(launcher, work, options, Path(folder))


def _launched(launcher: str, work: Work, options: RunOptions, folder: Path) -> list[RankReport]:
    (folder / "work").write_bytes(pickle.dumps((work, options)))
    rank = (sys.executable, "-m", "p2smt.runtime.ranks.mpi_rank", str(folder))
    command = (launcher, "-host", "localhost", "-n", str(work.ranks), *rank)
    output, code = _output(command, options.time_limit_s + _SPARE_S)
    if (folder / "errors").exists():
        kind, _, text = (folder / "errors").read_text().splitlines()[0].partition(" ")
        raise (BackendError if kind == "backend" else ExecutionError)(text)
    if code or not (folder / "reports").exists():
        raise ExecutionError(f"mpirun: {_said(output)}")
    reports: list[RankReport] = pickle.loads((folder / "reports").read_bytes())
    return reports


def _output(command: Sequence[str], limit_s: float) -> tuple[bytes, int]:
    """What mpirun says, and its exit code.

    It is asked to end before it is killed, where this process is to end itself, too: Open MPI's
    leaves its ranks behind when it is killed.

    Raises:
        ExecutionError: it did not end in time.
    """
    with subprocess.Popen(
        command,
        env={**_MORE_THAN_CORES, **os.environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as mpirun:
        try:
            output, errors = mpirun.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise ExecutionError(f"mpirun: no end within {plain(limit_s, 6)} s") from None
        finally:
            _end(mpirun)
    return errors or output, mpirun.returncode


def _end(mpirun: subprocess.Popen[bytes]) -> None:
    mpirun.terminate()
    try:
        mpirun.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        mpirun.kill()


def _said(output: bytes) -> str:
    """The first line that says something, and what helps where that is known."""
    lines = (line.strip(" -=*\t") for line in output.decode(errors="replace").splitlines())
    first = next((line[:200] for line in lines if line), "ended without a word")
    if b"attempt to run as root" in output:
        names = "OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
        first += f" run it as another user, or set {names}"
    return first

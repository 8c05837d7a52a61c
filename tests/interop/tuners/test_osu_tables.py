"""Files for MPI libraries from tables of OSU: those that nccl-tests would give."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import cli
from tests.interop.test_osu import text_of
from tests.interop.tuners.tables import mpi_cluster
from tests.interop.tuners.test_mpi_write import OWN, RING, table

TIMES = {"own": OWN, "ring": RING}
TITLES = {"all_reduce": ("Allreduce", 1), "all_gather": ("Allgather", 16)}
"""What OSU calls a test of nccl-tests, and into how many parts it divides a size."""


def words(folder: Path, kind: str, test: str = "all_reduce") -> tuple[str, ...]:
    """The options of both tables, as one of the programs prints them."""
    title, parts = TITLES[test]
    for name, times in TIMES.items():
        rows = (f"{size // parts} {us:.1f} 1.0 {us:.1f} 10" for size, us in times.items())
        text = text_of(title, *rows) if kind == "osu" else table(times, test)
        (folder / f"{kind}-{name}.txt").write_text(text)
    files = {name: folder / f"{kind}-{name}.txt" for name in TIMES}
    return tuple(word for name, file in files.items() for word in ("--measured", f"{name}={file}"))


@pytest.mark.parametrize("to", ["ompi-tuned", "mpich"])
def test_both_tables_give_one_file(tmp_path: Path, to: str) -> None:
    where = ("export", "--to", to, *mpi_cluster(tmp_path, to), "--comms", "2x8")
    osu, nccl = (cli(*where, *words(tmp_path, kind)) for kind in ("osu", "nccl"))
    assert (osu.code, nccl.code) == (0, 0), osu.err
    assert osu.out == nccl.out
    assert osu.out != cli(*where).out


def test_sizes_are_whole_vectors(tmp_path: Path) -> None:
    where = ("export", "--to", "ompi-tuned", *mpi_cluster(tmp_path, "ompi"), "--comms", "2x8")
    done = cli(*where, *words(tmp_path, "osu", "all_gather"))
    sizes = [line.split()[0] for line in done.out.splitlines() if line[:1].isdigit()]
    assert str(1 << 20) in sizes
    assert str((1 << 20) // 16) not in sizes


def test_of_several_communicators_they_tell_none(tmp_path: Path) -> None:
    cluster = mpi_cluster(tmp_path, "ompi")
    where = ("export", "--to", "ompi-tuned", *cluster, "--comms", "2x8,2x4")
    done = cli(*where, *words(tmp_path, "osu"))
    assert (done.code, done.out) == (2, "")
    assert "do not tell where ranks ran; name one communicator" in done.err


def test_between_two_winners_runs_what_gains_at_both_sizes(tmp_path: Path) -> None:
    """At 1 MiB Rabenseifner wins, at 8 MiB the ring, which alone is known to gain between."""
    tables = {
        "own": {1 << 20: 1000.0, 1 << 23: 8000.0},
        "ring": {1 << 20: 800.0, 1 << 23: 4000.0},
        "rabenseifner": {1 << 20: 500.0, 1 << 23: 7900.0},
    }
    asked = ["export", "--to", "ompi-tuned", *mpi_cluster(tmp_path, "ompi"), "--comms", "2x8"]
    for name, times in tables.items():
        rows = (f"{size} {us:.1f} 1.0 {us:.1f} 10" for size, us in times.items())
        (tmp_path / f"{name}.txt").write_text(text_of("Allreduce", *rows))
        asked += ["--measured", f"{name}={tmp_path / name}.txt"]
    made = str(tmp_path / "made.conf")
    assert cli(*asked, "-o", made).code == 0
    said = cli("verify", made, "--comms", "2x8").out
    assert "allreduce: 1048576 B: rabenseifner" in said
    assert "allreduce: 1048577 to 8388608 B: ring" in said
    assert "allreduce: 0 to 1048575 B: the library's own choice" in said

"""Files for MPI libraries from tables of OSU: those that nccl-tests would give."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import cli
from tests.interop.osu.test_osu import text_of
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
    where = ("export", "--to", to, "-t", "dgx-h100:2", "--comms", "2x8")
    osu, nccl = (cli(*where, *words(tmp_path, kind)) for kind in ("osu", "nccl"))
    assert (osu.code, nccl.code) == (0, 0), osu.err
    assert osu.out == nccl.out
    assert osu.out != cli(*where).out


def test_sizes_are_whole_vectors(tmp_path: Path) -> None:
    where = ("export", "--to", "ompi-tuned", "-t", "dgx-h100:2", "--comms", "2x8")
    done = cli(*where, *words(tmp_path, "osu", "all_gather"))
    sizes = [line.split()[0] for line in done.out.splitlines() if line[:1].isdigit()]
    assert str(1 << 20) in sizes
    assert str((1 << 20) // 16) not in sizes


def test_of_several_communicators_they_tell_none(tmp_path: Path) -> None:
    where = ("export", "--to", "ompi-tuned", "-t", "dgx-h100:2", "--comms", "2x8,2x4")
    done = cli(*where, *words(tmp_path, "osu"))
    assert (done.code, done.out) == (2, "")
    assert "do not tell where ranks ran; name one communicator" in done.err

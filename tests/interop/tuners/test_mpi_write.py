"""`export` of files for MPI libraries, from tables to what the library then runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2smt.interop.tuners.choices import Comm, LibraryCall
from p2smt.interop.tuners.formats import judged, tuner_format
from p2smt.interop.tuners.mpi_writers import MPI_WRITERS
from tests.cli.tools import cli
from tests.interop.tuners.tables import HEAD, mpi_cluster

COMMS = (Comm(2, 8), Comm(1, 8), Comm(2, 4))
OWN = {1 << 10: 10.0, 1 << 16: 50.0, 1 << 20: 500.0, 1 << 23: 4000.0}
RING = {1 << 10: 40.0, 1 << 16: 49.0, 1 << 20: 300.0, 1 << 23: 2500.0}
"""Microseconds of an all-reduce by size: a ring gains from 1 MiB to 8 MiB."""


def table(times: dict[int, float], test: str = "all_reduce") -> str:
    devices = [
        f"#  Rank {rank:2d} Group  0 Pid {100 + rank} on  node{rank // 8} device {rank % 8:2d} "
        "[0x00] none"
        for rank in range(16)
    ]
    rows = [_row(size, us) for size, us in times.items()]
    return "\n".join((f"# {test}_perf\n{HEAD}", *devices, "#", *rows)) + "\n"


def _row(size: int, us: float) -> str:
    rate = size / us / 1e3
    figures = f"{us:.1f} {rate:.3f} {rate * 2 * 15 / 16:.3f} 0"
    return f"{size} {size // 4} float sum -1 {figures} {figures}"


@pytest.fixture
def tables(tmp_path: Path) -> tuple[str, ...]:
    for name, times in (("own", OWN), ("ring", RING)):
        (tmp_path / f"{name}.txt").write_text(table(times))
    return tuple(
        word
        for name in ("own", "ring")
        for word in ("--measured", f"{name}={tmp_path / f'{name}.txt'}")
    )


@pytest.mark.parametrize("name", [row.name for row in MPI_WRITERS])
def test_what_gains_runs_and_nothing_else_changes(
    name: str, tables: tuple[str, ...], tmp_path: Path
) -> None:
    made = str(tmp_path / "made.conf")
    where = (*mpi_cluster(tmp_path, name), "--comms", "2x8", "-o", made)
    done = cli("export", "--to", name, *where, *tables)
    assert done.code == 0, done.err
    assert made in done.err
    text = Path(made).read_text()
    found = judged(text, COMMS, tuner_format(name))
    assert found.faults == ()
    sizes = ((1 << 20) - 16, 1 << 20, 1 << 23, (1 << 23) + 16)
    at = [found.choices.at("allreduce", Comm(2, 8), size) for size in sizes]
    own, changed = {
        "ompi-tuned": (None, LibraryCall("ring")),
        "ompi-han": (LibraryCall("han"), LibraryCall("tuned")),
        "mpich": (LibraryCall("reduce_scatter_allgather"), LibraryCall("ring")),
        "mpich-ch4": (LibraryCall("composition_alpha"), LibraryCall("composition_beta")),
    }[name]
    assert at == [own, changed, changed, own]
    plain = cli("export", "--to", name, *where)
    if name == "ompi-han":
        assert plain.code == 2
        assert "nothing to say" in plain.err
        return
    assert plain.code == 0
    other = judged(Path(made).read_text(), COMMS, tuner_format(name)).choices
    for comm in COMMS[1:]:
        for size in sizes:
            mine = found.choices.at("allreduce", comm, size)
            assert mine == other.at("allreduce", comm, size)


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("ompi-tuned", ("--measured", "ring/ll=own.txt"), "must be own=FILE or ALGORITHM=FILE"),
        ("ompi-tuned", ("--measured", "two_proc=own.txt", "--measured", "own=own.txt"), "16 ranks"),
        ("mpich", ("--measured", "brucks=own.txt", "--measured", "own=own.txt"), "allreduce"),
        ("mpich", ("--measured", "ring=own.txt"), "no table of the library's own choice"),
        ("mpich", ("-t", "dgx-h100:2"), "--to mpich: library nccl-2.30 of dgx-h100: is not the"),
        ("ompi-tuned", ("-t", "dgx-h100:2"), "library nccl-2.30 of dgx-h100: is not the one"),
        ("ompi-tuned", ("-t", "cluster-none-2.yaml", "--model-only"), "library none of cluster"),
        ("ompi-han", ("--comms", "4x8"), "does not fit"),
    ],
)
def test_bad_input(
    name: str, words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.txt").write_text(table(OWN))
    mpi_cluster(tmp_path, "", library="none")
    comms = () if "--comms" in words else ("--comms", "2x8")
    where = words if "-t" in words else (*mpi_cluster(tmp_path, name), *words)
    done = cli("export", "--to", name, *comms, *where, "-o", "made.conf")
    assert done.code == 2
    assert said in done.err
    assert [line.startswith("note: ") for line in done.err.splitlines()].count(False) == 1
    assert not Path("made.conf").exists()


def test_communicators_that_cannot_be_told_apart(tables: tuple[str, ...], tmp_path: Path) -> None:
    where = mpi_cluster(tmp_path, "mpich", 4)
    done = cli("export", "--to", "mpich", *where, "--comms", "2x8,4x4", *tables)
    assert done.code == 2
    assert "cannot tell them apart" in done.err


@pytest.mark.parametrize(
    ("library", "comms", "said"),
    [("openmpi-5", "2x8", True), ("openmpi-4", "2x8", False), ("openmpi-5", "1x8,1x4", False)],
)
def test_han_is_told_of_where_it_is_asked(
    library: str, comms: str, said: bool, tmp_path: Path
) -> None:
    where = (*mpi_cluster(tmp_path, "", library=library), "--comms", comms)
    done = cli("export", "--to", "ompi-tuned", *where)
    assert done.code == 0, done.err
    assert ("asks HAN first" in done.err) == said


# What is only predicted.

SLOW = """name: slow
library: {library}
levels:
  - name: node
    size: 4
    link:
      kind: switch
      latency: 1 us
      bandwidth: 12.5 MB/s
      efficiency: {{nearest-first: 0.5, roots-nearest: 0.5}}
  - {{name: rank, size: 2, link: {{kind: switch, latency: 1 us, bandwidth: 1 GB/s}}}}
"""
"""Partners that exchange reach half of a link's rate, so that a ring gains."""


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for library in ("openmpi-5", "mpich-5"):
        (tmp_path / f"{library}.yaml").write_text(SLOW.format(library=library))
    return tmp_path


def predicted(name: str, library: str, *words: str, out: str = "x-model-only.json") -> str:
    where = ("-t", f"{library}.yaml", "--comms", "4x2", "-o", out)
    done = cli("export", "--to", name, *where, "--model-only", "--margin", "10%", *words)
    assert done.code == 0, done.err
    assert "model-only: measure before a job relies on them" in done.err
    return Path(out).read_text()


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("name", ["ompi-tuned", "ompi-han"])
def test_each_line_that_is_only_predicted_says_so(name: str) -> None:
    text = predicted(name, "openmpi-5")
    lines = [line for line in text.splitlines() if line[0].isdigit() and " # " not in line]
    changes = [line for line in text.splitlines() if line.endswith("# model-only")]
    assert changes
    assert all(line.split()[1] in ("0", "han") for line in lines if len(line.split()) > 1)
    found = judged(text, (Comm(4, 2),), tuner_format(name))
    assert found.faults == ()
    told = found.choices.at("allreduce", Comm(4, 2), 1 << 23)
    assert told == LibraryCall("ring" if name == "ompi-tuned" else "tuned")


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("name", ["mpich", "mpich-ch4"])
def test_a_format_without_comments_says_it_in_the_name_of_the_file(name: str) -> None:
    found = judged(predicted(name, "mpich-5"), (Comm(4, 2),), tuner_format(name))
    assert found.faults == ()
    told = found.choices.at("allreduce", Comm(4, 2), 1 << 23)
    assert told == LibraryCall("ring" if name == "mpich" else "composition_beta")
    where = ("-t", "mpich-5.yaml", "--comms", "4x2", "-o", "plain.json")
    done = cli("export", "--to", name, *where, "--model-only", "--margin", "10%")
    assert done.code == 2
    assert "must have model-only in its name" in done.err
    assert not Path("plain.json").exists()


def test_tables_go_before_predictions_where_they_are(slow: Path) -> None:
    """Measured from 1 KiB to 8 MiB; the ring is predicted to gain from far below 8 MiB on."""
    words = osu_tables(slow, "Allreduce", "ring")
    text = predicted("ompi-tuned", "openmpi-5", *words)
    found = judged(text, (Comm(4, 2),), tuner_format("ompi-tuned")).choices
    at = [found.at("allreduce", Comm(4, 2), size) for size in (1 << 19, 1 << 21, (1 << 23) + 1)]
    assert at == [None, LibraryCall("ring"), LibraryCall("ring")]
    rows = [line for line in text.splitlines() if line.startswith((f"{1 << 20} ", "8388609 "))]
    assert [line.endswith("# model-only") for line in rows] == [False, True]


def osu_tables(folder: Path, test: str, name: str) -> list[str]:
    """The library's own times, and those of an algorithm that gains from 1 MiB on."""
    words = []
    for way, times in (("own", OWN), (name, RING)):
        rows = "".join(f"{size} {us:.2f}\n" for size, us in times.items())
        head = f"# OSU MPI {test} Latency Test\n# Size  Avg Latency(us)\n"
        (folder / f"{way}.txt").write_text(head + rows)
        words += ["--measured", f"{way}={folder}/{way}.txt"]
    return words


def test_a_chain_is_written_as_it_runs_where_it_is_forced(tmp_path: Path) -> None:
    made = str(tmp_path / "made.conf")
    where = (*mpi_cluster(tmp_path, "ompi-tuned"), "--comms", "2x8", "-o", made)
    words = osu_tables(tmp_path, "Broadcast", "chain")
    assert cli("export", "--to", "ompi-tuned", *where, *words).code == 0
    found = judged(Path(made).read_text(), COMMS, tuner_format("ompi-tuned")).choices
    told = found.at("bcast", Comm(2, 8), 1 << 20)
    assert told == LibraryCall("chain", settings=(("fan", 4),))

"""Outputs of the OSU micro-benchmarks: columns, what a size means, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2smt import calibrate, load_topology
from p2smt.api.calibrate import read_measurements
from p2smt.calibration.samples import Sample, predicted_s
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.interop.osu import TESTS, parse_osu
from p2smt.programs.program import Grouping

RANKS = 8
FULL = "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations"
HEADINGS = {  # by version: its heading, a row of 1024 bytes, and the time that counts
    "v3.8": ("# Size         Latency (us)", "1024 25.50", 25.5),
    "v5.6.2": ("# Size       Avg Latency(us)", "1024 25.50", 25.5),
    "v5.8": (FULL, "1024 25.50 12.25 50.75 1000", 50.75),
    "v7.3": (f"# Datatype: MPI_CHAR.\n{FULL}", "1024 25.50 12.25 50.75 1000", 50.75),
    "v7.5": (
        "# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)        Validation",
        "1024 25.50 Pass",
        25.5,
    ),
    "v7.5.2": (
        "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations  "
        "P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)",
        "1024 25.50 12.25 50.75 1000 24.00 30.00 31.00",
        50.75,
    ),
}


def text_of(title: str, *rows: str, heading: str = FULL) -> str:
    return "\n".join(["", f"# OSU MPI {title} Latency Test v7.3", heading, *rows, ""])


def cluster() -> Topology:
    return load_topology("dgx-a100:1").under("none")


def read(tmp_path: Path, text: str, ranks: int = RANKS) -> tuple[Sample, ...]:
    path = tmp_path / "a.txt"
    path.write_text(text)
    found = read_measurements(path, topology=cluster(), ranks=ranks, source="osu")
    return found.samples


@pytest.mark.parametrize("version", HEADINGS)
def test_the_columns_of_every_version(version: str) -> None:
    heading, row, microseconds = HEADINGS[version]
    text = f"# OSU MPI Allreduce Latency Test {version}\n{heading}\n{row}\n"
    [(operation, table)] = parse_osu(text, "a.txt")
    assert operation is Collective.ALL_REDUCE
    assert [t.seconds for t in table.timings] == [pytest.approx(microseconds / 1e6)]


@pytest.mark.parametrize(
    ("title", "operation", "whole"),
    [
        ("Allreduce", Collective.ALL_REDUCE, 1024),
        ("Reduce", Collective.REDUCE, 1024),
        ("Broadcast", Collective.BROADCAST, 1024),
        ("Reduce_scatter", Collective.REDUCE_SCATTER, 1024),
        ("Reduce_scatter_block", Collective.REDUCE_SCATTER, 1024),
        ("Allgather", Collective.ALL_GATHER, 1024 * RANKS),
        ("All-to-All Personalized Exchange", RequestKind.ALL_TO_ALL, 1024 * RANKS),
    ],
)
def test_what_a_size_means(tmp_path: Path, title: str, operation: Operation, whole: int) -> None:
    [sample] = read(tmp_path, text_of(title, "1024 25.50 12.25 50.75 1000"))
    assert (sample.operation, sample.payload_bytes) == (operation, whole)
    assert title.lower() in TESTS


def test_several_tables_device_titles_marks_of_launchers_and_wrong_results(tmp_path: Path) -> None:
    rows = "# OSU MPI-CUDA Reduce Latency Test v7.3\n# Size  Avg Latency(us)  Validation\n"
    text = (
        rows
        + "4 3.00 Pass\n8 4.00 Fail\nmpirun: 3 more processes\n"
        + text_of("Allreduce", "16 1.00 1.00 2.00 10")
    )
    marked = "\n".join(f"[1,0]<stdout>:{line}" for line in text.split("\n"))
    for one in (text.replace("mpirun: 3 more processes\n", ""), marked):
        found = read(tmp_path, one)
        assert [(s.operation.value, s.payload_bytes) for s in found] == [
            ("reduce", 4),
            ("all-reduce", 16),
        ]


def test_parts_of_nothing_tell_nothing(tmp_path: Path) -> None:
    rows = ("4 1.00 1.00 1.00 10", "8 2.00 2.00 2.00 10")
    assert [s.payload_bytes for s in read(tmp_path, text_of("Reduce_scatter", *rows))] == [8]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (text_of("Allgatherv", "8 1 1 1 1"), "no blocking collective that is modelled"),
        (text_of("Non-blocking Allreduce", "8 1 1 1 1"), "no blocking collective"),
        (f"{FULL}\n8 1 1 1 1\n", "no title above it"),
        (text_of("Allreduce", "8 1.00"), "2 columns: the table has 5"),
        (text_of("Allreduce", "8 1.0 1.0 -3 10"), "is not a time"),
        (text_of("Allreduce", "8 1.0 1.0 nan 10"), "is not a time"),
        (text_of("Allreduce", f"{2**62} 1.0 1.0 3.0 10"), "below 2^62"),
        (text_of("Allreduce", "8 10.0", heading="# Size  Bandwidth (MB/s)"), "average latency"),
        (text_of("Allreduce"), "has no table"),
        ("", "is empty, and has no table"),
    ],
)
def test_what_is_no_table_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_osu(text, "a.txt")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ranks_and_hosts_are_never_told(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text_of("Allreduce", "8 1.0 1.0 1.0 10"))
    with pytest.raises(InputError, match="does not tell the number of ranks"):
        read_measurements(path, topology=cluster(), source="osu")
    with pytest.raises(InputError, match="does not tell on which hosts"):
        read_measurements(path, ranks=8, source="osu")
    with pytest.raises(InputError, match="1 rank"):
        read_measurements(path, topology=cluster(), ranks=1, source="osu")


SIZES = [2**k for k in range(10, 25, 2)]


def printed(topology: Topology, algorithm: Algorithm) -> str:
    """The table that ranks of the topology would print if they ran by one algorithm."""
    samples = [Sample(Collective.ALL_REDUCE, Grouping(0, 1), n, 1.0) for n in SIZES]
    times = [predicted_s(topology.running((algorithm,)), sample) * 1e6 for sample in samples]
    rows = [f"{n} {us:.6f} {us:.6f} {us:.6f} 10" for n, us in zip(SIZES, times, strict=True)]
    return text_of("Allreduce", *rows)


WAYS = (Algorithm.RING, Algorithm.HALVING_DOUBLING)


def test_tables_of_two_algorithms_give_one_link(tmp_path: Path) -> None:
    """Times by two algorithms, each said of its table, are met; said of all, they cannot be."""
    truth, paths = cluster(), [tmp_path / f"{way.value}.txt" for way in WAYS]
    for path, way in zip(paths, WAYS, strict=True):
        path.write_text(printed(truth, way))
    told = read_measurements(
        *paths, topology=truth, ranks=RANKS, source="osu", algorithms=[(way,) for way in WAYS]
    )
    found = calibrate(told)
    assert max(table.median_error for table in found.tables) < 1e-3
    assert set(found.topology.algorithms) == set(WAYS)
    assert "by ring" in found.sources[0]
    blind = read_measurements(*paths, topology=truth, ranks=RANKS, source="osu")
    assert max(t.median_error for t in calibrate(blind, allow_above_nominal=True).tables) > 0.05


def test_an_algorithm_of_one_table_leaves_the_others_a_ring(tmp_path: Path) -> None:
    truth, paths = cluster(), [tmp_path / f"{way.value}.txt" for way in WAYS]
    for path, way in zip(paths, WAYS, strict=True):
        path.write_text(printed(truth, way))
    told = read_measurements(
        *paths,
        topology=truth,
        ranks=RANKS,
        source="osu",
        algorithms=[None, (Algorithm.HALVING_DOUBLING,)],
    )
    found = calibrate(told)
    assert max(table.median_error for table in found.tables) < 1e-3

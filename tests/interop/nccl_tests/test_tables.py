"""Published tables of nccl-tests and rccl-tests, each read as a person reads it.

``nccl_tables`` holds them as their pages show them; the first line of each names its page.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.calibration_files import RankedTable, read_nccl_tests
from tests.refusals import refusal

FOLDER = Path(__file__).with_name("nccl_tables")
AR, AG, RS = Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER
A2A: Operation = RequestKind.ALL_TO_ALL
SEND: Operation = RequestKind.SEND
KI, MI, GI = 2**10, 2**20, 2**30

# What ran, on how many ranks and how many of a host; rows; first and last: size, microseconds.
Fact = tuple[str, Operation, int, int | None, int, tuple[int, float], tuple[int, float]]
FACTS: tuple[Fact, ...] = (
    ("a100-1n8g-allreduce-mleng", AR, 8, 8, 20, (32 * KI, 43.83), (16 * GI, 127997)),
    ("aws-p4de-2n16g-allreduce", AR, 16, 8, 29, (8, 164.3), (2 * GI, 51406)),
    ("aws-p5-1n8g-batch-allreduce", AR, 8, 8, 32, (8, 12.90), (16 * GI, 62239)),
    ("aws-p5-2n16g-allreduce", AR, 16, 8, 32, (8, 69.12), (16 * GI, 66132)),
    ("b200-gcp-a4-1n8g-allreduce", AR, 8, 8, 12, (8 * MI, 80.32), (16 * GI, 35561)),
    ("b200-gcp-a4-2n16g-allreduce", AR, 16, 8, 12, (8 * MI, 158.8), (16 * GI, 47062)),
    ("b200-lambda-2n16g-allreduce", AR, 16, 8, 29, (8, 36.50), (2 * GI, 5784.75)),
    ("b200-vultr-1n8g-allgather", AG, 8, 8, 23, (4 * KI, 16.88), (16 * GI, 22357.0)),
    ("b200-vultr-1n8g-alltoall", A2A, 8, 8, 23, (4 * KI, 11.25), (16 * GI, 22347.5)),
    ("b200-vultr-1n8g-reducescatter", RS, 8, 8, 23, (4 * KI, 17.00), (16 * GI, 21629.9)),
    ("b200-vultr-1n8g-sendrecv", SEND, 8, 8, 23, (4 * KI, 9.74), (16 * GI, 25904.2)),
    ("b200-vultr-2n16g-allgather", AG, 16, 8, 23, (4 * KI, 35.00), (16 * GI, 52287.3)),
    ("b200-vultr-2n16g-allreduce", AR, 16, 8, 23, (4 * KI, 39.96), (16 * GI, 44870.6)),
    ("b200-vultr-2n16g-alltoall", A2A, 16, 8, 23, (4 * KI, 37.77), (16 * GI, 379707)),
    ("b200-vultr-2n16g-reducescatter", RS, 16, 8, 23, (4 * KI, 35.96), (16 * GI, 52956.4)),
    ("gb200-coreweave-1rack-72g-allreduce", AR, 72, 4, 5, (GI // 2, 1806.7), (8 * GI, 20299)),
    ("gb300-oci-4g-allreduce", AR, 4, 4, 2, (8 * GI, 18920), (16 * GI, 37610)),
    ("gb300-oci-4g-alltoall", A2A, 4, 4, 2, (8 * GI, 10308), (16 * GI, 20527)),
    ("gb300-oci-8g-allreduce", AR, 8, 4, 2, (8 * GI, 17930), (16 * GI, 35722)),
    ("gb300-oci-8g-alltoall", A2A, 8, 4, 2, (8 * GI, 11059), (16 * GI, 21943)),
    ("gcp-a3high-2n16g-allgather-dstack", AG, 16, None, 11, (8 * MI, 784.9), (8 * GI, 160505)),
    ("gcp-a3mega-2n16g-h100-allreduce", AR, 16, 8, 31, (8, 135.8), (8 * GI, 47535)),
    ("h100-gcp-a3mega-2n16g-allgather", AG, 16, 8, 11, (8 * MI, 166.6), (8 * GI, 42713)),
    ("h100-nebius-2n16g-allreduce", AR, 16, 8, 31, (8, 45.72), (8 * GI, 34448.4)),
    ("issue309-h100-2n16g-allreduce", AR, 16, 8, 32, (8, 68.52), (16 * GI, 68652)),
    ("issue309-h100-4n32g-allreduce", AR, 32, 8, 32, (8, 83.42), (16 * GI, 90986)),
    ("mi300x-1n8g-allreduce", AR, 8, 8, 31, (8, 19.28), (8 * GI, 47617)),
    ("mi300x-aac10-2n16g-allreduce", AR, 16, 8, 32, (8, 256.5), (16 * GI, 90115)),
    ("mi355x-aac14-2n16g-allreduce", AR, 16, 8, 31, (8, 41.16), (8 * GI, 43643)),
    ("mi355x-vultr-2n16g-alltoall", A2A, 16, 8, 18, (64 * KI, 36.97), (8 * GI, 88508.6)),
    ("v100-dgx2-16n256g-allreduce", AR, 256, None, 6, (32 * MI, 1464.2), (GI, 29896)),
)
UNSAID = {"v100-dgx2-16n256g-allreduce": 256}
"""Ranks that a file does not tell: its page does."""
REFUSED = "aws-p4d-1to4n-allreduce-1GiB"


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def only(name: str, ranks: int | None = None) -> RankedTable:
    (found,) = read_nccl_tests(str(path_of(name)), ranks=ranks)
    return found


def first_times(found: RankedTable) -> list[tuple[int, float]]:
    """Size and microseconds of every row, out of place."""
    times = {t.line: t for t in reversed(found.table.timings)}
    return [(times[n].size_bytes, times[n].seconds * 1e6) for n in sorted(times)]


def test_every_file_is_in_the_list() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {fact[0] for fact in FACTS} | {REFUSED}


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: str(fact[0]))
def test_a_published_table_is_read_rightly(fact: Fact) -> None:
    name, operation, ranks, per_host, rows, first, last = fact
    found = only(name, UNSAID.get(name))
    assert (found.operation, found.ranks, found.per_host) == (operation, ranks, per_host)
    times = first_times(found)
    assert len(times) == rows
    assert (times[0][0], times[-1][0]) == (first[0], last[0])
    assert (times[0][1], times[-1][1]) == pytest.approx((first[1], last[1]), rel=1e-9)
    assert not found.table.wrong


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: str(fact[0]))
def test_sizes_are_whole_vectors(fact: Fact) -> None:
    """algbw is size / time in every table, so the size that is read is what it is of."""
    for timing in only(fact[0], fact[2]).table.timings:
        shown = timing.size_bytes / timing.seconds / 1e9
        assert abs(shown - timing.algbw) <= 0.01 * shown + timing.algbw_error


def test_ranks_that_rounded_bandwidths_leave_open_are_asked_for() -> None:
    (name,) = UNSAID
    with pytest.raises(InputError, match=r"241 to 261 fit its bandwidths\); name it with --ranks"):
        only(name)
    with pytest.raises(InputError, match=r"128 ranks given: its bandwidths .* of 241 to 261 ranks"):
        only(name, 128)


def test_a_row_per_number_of_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 2: nodes '1,2,3,4.*one number of nodes; split"):
        only(REFUSED)
    rows = path_of(REFUSED).read_text().splitlines()[2:]
    assert refused(tmp_path, rows).startswith("line 1: no heading names its columns")
    without_nodes = [row.split(maxsplit=1)[1] for row in rows]
    message = "line 2: bandwidths of 16 ranks: the rows above have 8; split the table by ranks"
    assert refused(tmp_path, without_nodes) == message
    path = tmp_path / "f.txt"
    path.write_text("\n".join(without_nodes[2:3]))
    (found,) = read_nccl_tests(str(path))
    assert (found.operation, found.ranks) == (AR, 24)


def refused(folder: Path, rows: list[str]) -> str:
    """Line and message of the error that some rows give."""
    path = folder / "f.txt"
    path.write_text("\n".join(rows))
    return refusal(read_nccl_tests, str(path)).removeprefix(f"{path}, ")

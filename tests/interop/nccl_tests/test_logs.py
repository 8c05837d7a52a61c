"""Logs as people have them: marked by launchers, of processes that ran alone, of other programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2smt.collectives.names import Collective, RequestKind
from p2smt.errors import InputError
from p2smt.interop.clusters.nodes.rank_headers import read_rank_headers
from p2smt.interop.nccl_tests.calibration_files import measurements_of, read_nccl_tests
from p2smt.interop.nccl_tests.elements import TimingTable
from p2smt.interop.nccl_tests.log_lines import plain_lines
from p2smt.interop.nccl_tests.parse_text import parse_text
from tests.calibration.fixtures import ALL, HEADER, TRUTH, made_samples, printed, report, row

PLAIN = printed(made_samples(TRUTH, ALL, sizes=[2**20, 2**24, 2**28]), 32, 4)
MARKS = [
    "[1,0]<stdout>:",
    "[1,0]<stdout>: ",
    "0: ",
    " 0:",
    "12: ",
    "Mon Jul 22 15:41:{n:02d} 2024<stdout>:",
    "Mon Jul  2 15:41:{n:02d} 2024[1,0]<stdout>:",
    "[prterun-n1-12345@1,0]<stdout>: ",
    "worker-0: ",
    "[worker-0] ",
    "[rank{n}]:",
    "2024-07-18T15:41:05.{n}Z ",
    "2024-07-18T15:41:05.{n}+02:00 [1,0]<stdout>:",
    "2024-07-18T15:41:05.{n}Z stdout F ",
    "[2024-07-18 15:41:05,{n:03d}] [INFO] ",
    "Jul 18 15:41:{n:02d} gpu01 nccl[4242]: ",
    "[pod/nccl-test-worker-0/main] ",
    "nccl-test-launcher-x7k2p mpi ",
    "\x1b[36mworker-1  |\x1b[0m ",
    "1721317265.{n} ",
    "{n} ",
    "> ",
    "log.txt:{n}:",
    "nœud-{n}: ",
]


def marked(text: str, mark: str) -> str:
    """A text with a mark before each line, whose numbers go on."""
    lines = text.splitlines(keepends=True)
    return "".join(mark.format(n=10 + n) + line for n, line in enumerate(lines))


def one(text: str) -> TimingTable:
    """The one table of a text."""
    (table,) = parse_text(text, "f.txt")
    return table


@pytest.mark.parametrize("mark", MARKS)
def test_marks_of_every_launcher_are_left_out(mark: str) -> None:
    """Rows, device list and test are those of the plain log, and each line is where it was."""
    found, plain = one(marked(PLAIN, mark)), one(PLAIN)
    assert found == plain
    assert (found.said[0].ranks, found.said[0].per_host) == (32, 8)


@pytest.mark.parametrize("mark", ["worker-0: ", "2024-07-18T15:41:05.{n}Z ", "[1,0]<stdout>:"])
def test_marks_are_left_out_without_heading_and_of_device_lists(mark: str) -> None:
    rows = "".join(line for line in PLAIN.splitlines(keepends=True) if line[0] != "#")
    assert one(marked(rows, mark)).timings == one(rows).timings
    listed = "".join(f"#  Rank {r} Pid {r} on h{r} device  0 [0x1b] X\n" for r in range(4))
    hosts = read_rank_headers(marked(listed, mark), "f.txt").outside
    assert hosts is not None
    assert hosts.loose == ("h0", "h1", "h2", "h3")


def test_a_log_of_two_launchers_is_read() -> None:
    """Each line has the mark of its own launcher, or none."""
    both = marked(PLAIN, "worker-0: ") + PLAIN + marked(PLAIN, "[1,0]<stdout>:")
    assert [len(table.timings) for table in parse_text(both, "f.txt")] == [6, 6, 6]


def test_numbers_before_a_row_are_no_mark_where_nothing_says_so() -> None:
    """A row is refused that has numbers too many; it does not teach that all have them."""
    lines = PLAIN.splitlines(keepends=True)
    shifted = [*lines[:-4], f"7 {lines[-4]}", *lines[-3:]]
    with pytest.raises(InputError, match="14 columns: the table has 13"):
        parse_text("".join(shifted), "f.txt")
    assert plain_lines("7 8 2 float sum -1\n16 4 float sum -1") == [
        "7 8 2 float sum -1",
        "16 4 float sum -1",
    ]


# Processes that were started together and did not know of each other.


def alone(*processes: str) -> str:
    """What so many processes of one rank print, each all at once."""
    busy = f"{2**30} {2**28} float sum -1 3553.8 302.1 0.00 0 0.29 3702557.8 0.00 0\n"
    return "".join(
        f"# Using devices\n#  Rank  0 Group  0 Pid {9 + n} on {host} device  0 [0x1b] X\n"
        f"{HEADER}{busy}"
        for n, host in enumerate(processes)
    )


def lines_of(text: str, *order: int) -> str:
    """Some lines of a text in this order."""
    lines = text.splitlines(keepends=True)
    return "".join(lines[n] for n in order)


TWO = alone("a", "b")  # 12 lines: each Using, Rank, three of the heading, a row
TOGETHER = [
    TWO,
    lines_of(TWO, 0, 6, 1, 7, 2, 3, 4, 8, 9, 10, 5, 11),
    lines_of(TWO, 0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 5, 11),
    lines_of(TWO, 2, 3, 4, 5),
    lines_of(alone("a", "a"), 0, 6, 1, 7, 2, 3, 4, 5, 11),
    marked(lines_of(TWO, 0, 6, 1, 7, 2, 3, 4, 8, 9, 10, 5, 11), "[1,{n}]<stdout>:"),
]


@pytest.mark.parametrize("text", TOGETHER, ids=range(len(TOGETHER)))
@pytest.mark.parametrize("test", ["", "# Collective test starting: all_gather_perf\n"])
def test_processes_that_ran_alone_are_named(tmp_path: Path, text: str, test: str) -> None:
    path = tmp_path / "f.txt"
    path.write_text(test + text)
    with pytest.raises(InputError, match=r"every process ran alone: .* without MPI.*MPI=1"):
        read_nccl_tests(str(path), Collective.ALL_REDUCE)
    with pytest.raises(InputError, match="MPI=1"):
        read_nccl_tests(str(path), Collective.ALL_REDUCE, 16)
    with pytest.raises(InputError, match="MPI=1"):
        read_nccl_tests(str(path))


def test_the_output_of_one_such_process_is_named(tmp_path: Path) -> None:
    """Whether or not it says what ran, and which devices; small messages stand before the rest."""
    rows = (
        "128 32 float sum -1 5.0 0.03 0.00 0 5.0 0.03 0.00 0\n"
        f"{2**20} {2**18} float sum -1 5.2 201.65 0.00 0 5.2 201.65 0.00 0\n"
    )
    for above in ("", "# Using devices\n#  Rank  0 Pid 1 on a device 0 [0x18] X\n"):
        (tmp_path / "f.txt").write_text(above + HEADER + rows)
        for named in (None, Collective.ALL_REDUCE):
            with pytest.raises(InputError, match=r"busbw 0 at algbw 201\.65 GB/s: every process"):
                read_nccl_tests(str(tmp_path / "f.txt"), named)


def test_a_collective_that_no_file_says_contradicts_them(tmp_path: Path) -> None:
    """It names what files leave open; one of several that leaves it open is enough."""
    rows = f"{2**20} {2**18} float sum -1 {row(2**20, 1e-4, 4)} {row(2**20, 1e-4, 4)}\n"
    title, plain = tmp_path / "a.txt", tmp_path / "b.txt"
    ranks = "".join(f"# Rank {r} Pid {r} on h device {r} [0x0] X\n" for r in range(4))
    title.write_text(f"# Collective test starting: all_reduce_perf\n{ranks}{HEADER}{rows}")
    assert measurements_of([str(title)], operation=Collective.ALL_REDUCE).samples
    with pytest.raises(InputError, match="all-gather, and the files say all-reduce: contradict"):
        measurements_of([str(title)], operation=Collective.ALL_GATHER)
    side = "100.0 10.49 7.86 0"
    gathered = f"{2**20} {2**18} float none -1 {side} {side}\n"
    plain.write_text(ranks + HEADER + gathered)
    both = measurements_of([str(title), str(plain)], operation=Collective.ALL_GATHER)
    assert len(both.samples) > 2


def test_rows_without_bytes_alone_are_no_missing_table(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text(HEADER + "0 0 float sum -1 5.2 0.00 0.00 0 5.2 0.00 0.00 0\n")
    with pytest.raises(InputError, match="has rows without bytes or time alone"):
        read_nccl_tests(str(tmp_path / "f.txt"))


def test_processes_of_one_host_are_told_by_their_numbers_alone() -> None:
    """A broadcast of one rank has busbw = algbw, as one of several has."""
    text = lines_of(alone("a", "a"), 0, 6, 1, 7, 2, 3, 4, 5, 11)
    text = text.replace("302.1 0.00", "302.1 302.1").replace(
        "3702557.8 0.00", "3702557.8 3702557.8"
    )
    with pytest.raises(InputError, match="more than one rank 0: every process ran alone"):
        parse_text(f"# Collective test starting: broadcast_perf\n{text}", "f.txt")


def test_processes_of_several_ranks_that_ran_alone_are_named() -> None:
    """Each has the ranks of its own devices; a list printed again by a second start has not."""
    ranks = range(4)
    lists = {
        host: "".join(f"# Rank {r} Pid {pid + r} on {host} device {r} [0x0] X\n" for r in ranks)
        for host, pid in (("a", 1), ("b", 9))
    }
    table = f"{HEADER}{2**20} {2**18} float sum -1 {row(2**20, 1e-4, 4)} {row(2**20, 1e-4, 4)}\n"
    with pytest.raises(InputError, match="more than one rank 0: every process ran alone"):
        parse_text(lists["a"] + lists["b"] + table, "f.txt")
    with pytest.raises(InputError, match="every process ran alone"):
        read_rank_headers(lists["a"] + lists["b"] + table, "f.txt")
    again = lists["a"] + lists["a"].replace("Pid ", "Pid 7") + table
    assert parse_text(again, "f.txt")[0].said[0].ranks == 4
    spread = "".join(f"# Rank {r} Pid {r} on h{r} device 0 [0x0] X\n" for r in ranks)
    moved = spread + spread.replace("on h", "on g") + table
    assert parse_text(moved, "f.txt")[0].said[0].ranks == 4


def test_one_rank_without_mpirun_is_told_both(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    bare = alone("a").replace(" 0.00 0", " 302.1 0", 1).replace(" 0.00 0", " 3702557.8 0")
    path.write_text("# Collective test starting: broadcast_perf\n" + bare)
    with pytest.raises(InputError, match=r"1 rank: .* more devices; if mpirun .* MPI=1"):
        read_nccl_tests(str(path))


# Tables of other programs of the kind.

MSCCLPP = """\
# Initializing MSCCL++
#                                    in-place                       out-of-place
#       size         count     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        131072                                      20.0   52.43   45.88      0
     8388608       1048576     60.0  139.81  122.33      0
"""


def test_rows_of_mscclpp_test_have_one_time_of_two(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_text(marked(MSCCLPP, "[1,0]<stdout>:"))
    (found,) = read_nccl_tests(str(path), RequestKind.ALL_TO_ALL)
    assert [t.seconds for t in found.table.timings] == [20e-6, 60e-6]
    assert found.ranks == 8
    with pytest.raises(InputError, match="5 columns: the table has 10"):
        parse_text(MSCCLPP.replace("45.88      0", "45.88"), "f.txt")


NCCOM = """\
     size(B)    count(elems)     type    time(us)    algbw(GB/s)    busbw(GB/s)
    33554432        33554432    uint8         768          40.69          40.69
    67108864        67108864    uint8        1500          41.67          41.67
Avg bus bandwidth:      41.1800GB/s
"""


def test_headings_with_units_in_them_are_read(tmp_path: Path) -> None:
    """Those of AWS's nccom-test, whose times are in us as well, or else refused."""
    path = tmp_path / "f.txt"
    path.write_text(marked(NCCOM, "2024-07-18T15:41:05.{n}Z "))
    (found,) = read_nccl_tests(str(path), Collective.ALL_REDUCE)
    assert [t.seconds for t in found.table.timings] == [768e-6, 1500e-6]
    assert found.ranks == 2
    with pytest.raises(InputError, match=r"times must be in \(us\), not \(ms\)"):
        parse_text(NCCOM.replace("(us)", "(ms)"), "f.txt")


def in_markdown(heading: str, columns: int) -> str:
    """The first columns of PLAIN's rows in bars, under the lines that stand above the table."""
    above = [line for line in PLAIN.splitlines() if line.startswith("#") and "time" not in line]
    rows = [words for words in map(str.split, PLAIN.splitlines()) if words and words[0].isdigit()]
    barred = ["| " + " | ".join(words[:columns]) + " |" for words in rows]
    return "\n".join([*above, heading, "|" + ":--|---:|" * columns, *barred]) + "\n"


def test_tables_in_markdown_are_read() -> None:
    """Units beside names, names in capitals; a whole log in bars; other columns get a remedy."""
    names = ["size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong"]
    plain = "| " + " | ".join(names) + " |"
    expected = [t.seconds for t in one(PLAIN).timings][::2]
    units = plain.replace("size", "Size (B)").replace("time", "Time (us)")
    for heading in (plain, units.replace("algbw", "algbw (GB/s)"), plain.replace(" ", "")):
        found = one(in_markdown(heading, 9))
        assert [t.seconds for t in found.timings] == expected
    whole = "\n".join(f"| {line} |" for line in PLAIN.splitlines())
    assert one(whole).timings == one(PLAIN).timings
    with pytest.raises(InputError, match=r"times must be in \(us\), not \(ms\)"):
        parse_text(in_markdown(units.replace("us", "ms"), 9), "f.txt")
    with pytest.raises(InputError, match=r"head the columns of this table size and time \(us\)"):
        parse_text("| bytes | latency |\n|---|---|\n| 8 | 10 |\n", "f.txt")


@pytest.mark.parametrize("key", ["log", "message", "msg", "textPayload"])
def test_logs_of_a_json_object_a_line_are_read(tmp_path: Path, key: str) -> None:
    """With the marks of a launcher inside; a report of nccl-tests on one line is none."""
    lines = marked(PLAIN, "[1,0]<stdout>:").splitlines(keepends=True)
    records = [{"stream": "stdout", key: line, "time": "2024-07-18"} for line in lines]
    path = tmp_path / "f.txt"
    path.write_text("\n".join(map(json.dumps, records)))
    (found,) = read_nccl_tests(str(path))
    assert found.table.timings == one(PLAIN).timings
    assert (found.ranks, found.per_host) == (32, 8)
    path.write_text(json.dumps(report(made_samples(TRUTH, ALL), 32, 4)))
    assert read_nccl_tests(str(path))[0].ranks == 32


@pytest.mark.parametrize("name", ["alltoall_test_perf", "alltoall_perf_mpi"])
def test_names_of_programs_are_the_tests(name: str) -> None:
    title = f"$ mpirun -np 8 ./build/{name} -b 1M\n"
    assert one(title + MSCCLPP).test == "alltoall"

"""Readers of nccl-tests: every way its tables look, and files that are wrong or hostile."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.trimmed import trimmed
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.calibration_files import (
    MAX_BYTES,
    RankedTable,
    derived_topology,
    measurements_of,
    parse_json,
    ranks_of,
    read_nccl_tests,
    samples_of,
)
from p2smt.interop.nccl_tests.elements import TimingTable, version_of
from p2smt.interop.nccl_tests.parse_text import parse_text
from p2smt.programs.program import Grouping
from tests.calibration.fixtures import (
    ALL,
    HEADER,
    INSIDE,
    START,
    TRUTH,
    as_json,
    made_samples,
    printed,
    report,
    row,
)
from tests.refusals import found_or_refusal
from tests.strategies.json_values import LEAVES, json_values
from tests.tiers import examples_of

FEW = made_samples(TRUTH, INSIDE, sizes=[2**20, 2**24, 2**28])
TABLE = printed(FEW, 8)


def one(text: str) -> TimingTable:
    """The one table of a text."""
    (table,) = parse_text(text, "f.txt")
    return table


def measured(tmp_path: Path, text: str, **options: object) -> RankedTable:
    """The one table of a file."""
    path = tmp_path / "f.txt"
    path.write_text(text)
    (found,) = read_nccl_tests(str(path), **options)  # type: ignore[arg-type]
    return found


def test_both_times_of_a_row_are_read() -> None:
    table = one(TABLE)
    assert table.test == "all_reduce"
    assert [t.size_bytes for t in table.timings] == [2**20, 2**20, 2**24, 2**24, 2**28, 2**28]
    assert table.timings[0].seconds == pytest.approx(FEW[0].seconds, rel=1e-3)


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "0: ", " 0:", "[1,0]<stdout>: "])
def test_prefixes_of_launchers_are_passed_over(prefix: str) -> None:
    text = "".join(f"{prefix}{line}\n" for line in TABLE.splitlines())
    assert one(text).timings == one(TABLE).timings


def test_trimmed_columns_underscores_and_markdown() -> None:
    text = (
        "$ ./build/all_reduce_perf -b 32k -g 8\n[...]\n"
        "  size    time   algbw   busbw\n   (B)    (us)  (GB/s)  (GB/s)\n"
        "1_048_576   101.9   10.29   18.00\n16_777216  276.6   60.66  106.16\n```\n"
    )
    table = one(text)
    assert [(t.line, t.size_bytes) for t in table.timings] == [(5, 2**20), (6, 2**24)]
    assert ranks_of(table, Collective.ALL_REDUCE) == 8


def test_older_and_newer_columns() -> None:
    old = "# size count type time algbw busbw error time algbw busbw error\n"
    assert len(
        one(f"{old}1048576 2048 float 100.0 10.49 9.18 0e+00 99.0 10.59 9.27 1e-7\n").timings
    )
    blank = "# size count type redop root time algbw busbw #wrong\n"
    assert one(f"{blank}1048576 2048 float 100.0 10.49 9.18 N/A\n").timings[0].seconds == 1e-4
    stamped = "# size count type redop root time algbw busbw #wrong timestamp\n"
    line = "1048576 262144 float sum -1 100.0 10.49 18.35 0 2026-01-31 12:00:00\n"
    assert one(stamped + line).timings[0].busbw == 18.35
    per_iteration = "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv%\n"
    line = "1048576 262144 float sum -1 100.0 10.49 18.35 0 90.0 120.0 119.0 3.1\n"
    assert one(per_iteration + line).timings[0].seconds == 1e-4


def test_wrong_results_are_reported_and_left_out() -> None:
    bad = f"1048576 262144 float sum -1 {row(2**20, 1e-4, 8, wrong='3')} {row(2**20, 1e-4, 8)}\n"
    table = one(TABLE + bad)
    assert table.wrong == (len(TABLE.splitlines()) + 1,)
    assert len(table.timings) == 6


def test_rows_without_bytes_or_time_are_skipped() -> None:
    empty = "0 0 float sum -1 5.70 0.00 0.00 0 5.54 0.00 0.00 0\n8 2 float sum -1 0.00 0.00 0.00 0 "
    assert len(one(f"{TABLE}{empty}0.00 0.00 0.00 0\n").timings) == 6


def test_several_tables_in_one_log_have_their_own_test() -> None:
    log = "1 more process has sent help message help-mpi.txt\nhost:12:34 [0] NCCL INFO comm 0x1\n"
    gather = printed(made_samples(TRUTH, INSIDE, Collective.ALL_GATHER)[-3:], 8, 1, "all_gather")
    tables = parse_text(TABLE + log + gather, "f.txt")
    assert [table.test for table in tables] == ["all_reduce", "all_gather"]
    assert [[one.ranks for one in table.said] for table in tables] == [[], [8]]


LOG = """\
# nccl-tests version 2.18.3 nccl-headers=22808 nccl-library=22903
n1:188:188 [0] NCCL INFO NCCL version 2.27.3+cuda12.9
n1:188:585 [0] NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v11 symbol.
n1:188:585 [0] NCCL INFO NET/Plugin: Loaded net plugin Libfabric (v10)
n1:188:585 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.16.2
n1:188:585 [0] NCCL INFO Using network Libfabric
n2:190:590 [0] NCCL INFO NET/Plugin: Loaded net plugin Libfabric (v10)
"""
RAN = (
    *("NCCL 2.29.3", "NCCL 2.27.3+cuda12.9", "net plugin Libfabric (v10)", "aws-ofi-nccl 1.16.2"),
    "network Libfabric",
)


def test_a_log_says_what_ran(tmp_path: Path) -> None:
    """Library and plugins, each once; nothing where it names none."""
    assert one(LOG + TABLE).ran == one(TABLE + LOG).ran == RAN
    assert one(TABLE).ran == ()
    assert one("NCCL version 2.28.7+cuda13.0\n# nccl-library=22807\n" + TABLE).ran == (
        "NCCL 2.28.7+cuda13.0",
    )
    assert one(TABLE + "RCCL version 2.22.3+hip6.3 HEAD:1\n").ran == ("RCCL 2.22.3+hip6.3",)
    assert len(one(TABLE + "".join(f"Using network n{n}\n" for n in range(99))).ran) == 12
    path = tmp_path / "log.txt"
    path.write_text(LOG + TABLE)
    (source,) = measurements_of([str(path)], START, ranks=8).sources
    assert ", ".join(RAN) in source


@pytest.mark.parametrize(
    ("code", "version"), [(22808, "2.28.8"), (2804, "2.8.4"), (21005, "2.10.5"), (23007, "2.30.7")]
)
def test_the_number_of_a_library_is_its_version(code: int, version: str) -> None:
    assert version_of(code) == version


@pytest.mark.parametrize(
    ("code", "ran"), [(22903, ("NCCL 2.29.3",)), (7, ()), ("x", ()), (True, ())]
)
def test_a_report_says_what_ran(code: object, ran: tuple[str, ...]) -> None:
    (table,) = parse_json(as_json({**report(FEW, 8, 1), "nccl_version": code}), "f.json")
    assert table.ran == ran


def test_a_remark_says_what_a_trimmed_file_does_not(tmp_path: Path) -> None:
    meta = '# meta: {"nodes": 2, "gpus": 16, "collective": "all_gather"}\n'
    text = meta + "size time algbw busbw\n1048576 100.0 10.49 9.83\n"
    found = measured(tmp_path, text)
    assert (found.operation, found.ranks, found.hosts) == (Collective.ALL_GATHER, 16, 2)


@pytest.mark.parametrize(
    ("test", "operation"),
    [
        ("all_reduce", Collective.ALL_REDUCE),
        ("all_gather", Collective.ALL_GATHER),
        ("reduce_scatter", Collective.REDUCE_SCATTER),
        ("alltoall", RequestKind.ALL_TO_ALL),
    ],
)
@pytest.mark.parametrize("ranks", [2, 3, 8, 16, 32, 64])
def test_ranks_come_from_the_bandwidths(
    tmp_path: Path, test: str, operation: Operation, ranks: int
) -> None:
    found = measured(tmp_path, printed(FEW, ranks, test=test))
    assert (found.operation, found.ranks, found.per_host) == (operation, ranks, None)


def test_broadcast_tells_its_ranks_by_devices_or_option(tmp_path: Path) -> None:
    assert measured(tmp_path, printed(FEW, 8, 1, "broadcast")).ranks == 8
    text = printed(FEW, 8, 0, "broadcast")
    assert measured(tmp_path, text, ranks=4).ranks == 4
    with pytest.raises(InputError, match="--ranks"):
        measured(tmp_path, text)


def test_rounded_bandwidths_of_many_ranks_leave_them_open(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\d+ to \d+ fit its bandwidths\); name it with --ranks"):
        measured(tmp_path, printed(FEW, 4096))
    assert measured(tmp_path, printed(FEW, 4096), ranks=4096).ranks == 4096


def test_the_collective_comes_from_figures_or_option(tmp_path: Path) -> None:
    untitled = "size time algbw busbw\n1048576 100.0 10.49 {}\n"
    assert measured(tmp_path, untitled.format(18.35)).operation is Collective.ALL_REDUCE
    with pytest.raises(InputError, match="--collective"):
        measured(tmp_path, untitled.format(9.18))
    found = measured(tmp_path, untitled.format(9.18), operation=Collective.ALL_GATHER)
    assert (found.operation, found.ranks) == (Collective.ALL_GATHER, 8)


def test_json_reports(tmp_path: Path) -> None:
    samples = made_samples(TRUTH, ALL, sizes=[2**20, 2**28])
    found = measured(tmp_path, as_json(report(samples, 32, 4)))
    assert (found.operation, found.ranks, found.hosts) == (Collective.ALL_REDUCE, 32, 4)
    assert found.table.timings[0].seconds == pytest.approx(samples[0].seconds, rel=1e-6)
    assert "secret" not in repr(found)


def test_json_rows_of_another_type_or_number_of_ranks_are_named(tmp_path: Path) -> None:
    data = report(FEW, 8, 1)
    data["results"][1]["type"] = "half"
    with pytest.raises(InputError, match=r"results\[2\]: type half: the report has float above"):
        parse_json(as_json(data), "f")
    data = report(FEW, 8, 1)
    data["results"][2] = report(FEW, 16, 1)["results"][2]
    message = r"f.txt: results\[3\]: bandwidths of 16 ranks: the rows above have 8; split"
    with pytest.raises(InputError, match=message):
        measured(tmp_path, as_json(data))


def test_json_rows_with_wrong_results_are_left_out() -> None:
    data = report(FEW, 8, 1)
    data["results"][1]["out_of_place"]["nwrong"] = 2.0
    data["results"][2]["out_of_place"]["nwrong"] = None
    (table,) = parse_json(as_json(data), "f")
    assert (table.wrong, len(table.timings)) == ((2,), 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.txt: is empty, and has no table"),
        ("hello\n8 2 float", "has no table"),
        (HEADER, "f.txt, line 2: heading: has no row under it: the table is cut off"),
        (TABLE + HEADER, "heading: has no row under it"),
        (f"{HEADER}8 2 float sum -1 5.0 0.00\n", "f.txt, line 4: 7 columns: the table has 13"),
        (f"{HEADER}1048576\n", "line 4: 1 columns"),
        (TABLE.replace(" (us)", " (ms)"), r"times must be in \(us\)"),
        ("size time\n8 x\n16 nan\n", "has no table"),
        ("size time\n8 5.0.0\n9 1.5\n8 1e99", "line 4: '1e99': is not a number"),
        ("size cputime\n8 5.0\n", "CPU times"),
        (f"size time\n{'9' * 24} 5.0\n", "below 2\\^62"),
        ("size time algbw busbw\n1048576 5.0 10.0 10.0\n", "do not belong to 1048576 bytes"),
        ("#  Rank  1 Group  1 Pid 9 on h device  0 [0x0] X\n" + TABLE, "several groups"),
        ("# meta: {nope}\n" + TABLE, "line 1: meta: is not one JSON object"),
        ("size time\n" + "8 5.0\n" * 100_001, "more than 100000 rows"),
    ],
)
def test_bad_text_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_text(text, "f.txt")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "f, line 1: is not complete JSON"),
        (as_json(report(FEW, 8, 1))[:-9], "is not complete JSON"),
        ("[" * 100_000, "is not"),
        ("[1]", "must be a JSON object"),
        ("{}", "results: must be a list"),
        ('{"results": [{"size": "8"}]}', r"results\[1\].size '8'"),
        ('{"results": [{"size": true}]}', "is not a number"),
        ('{"results": [{"size": 8, "in_place": {"cpu_time": 1}}]}', "only cpu_time"),
        (
            '{"results": [{"size": 8, "in_place": {"time": NaN}}]}',
            "has NaN, which is no number of JSON",
        ),
        ('{"results": [{"size": 8, "in_place": {"time": ' + "9" * 5000 + "}}]}", "not a report"),
        ('{"results": [], "config": {"devices": [{"group": 1}]}}', "several groups"),
        ('{"results": [], "config": {"devices": [3]}}', r"devices\[0\]: must be a JSON"),
    ],
)
def test_bad_json_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_json(text, "f")
    assert "\n" not in str(caught.value)


def test_unfit_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a regular file"):
        read_nccl_tests(str(tmp_path))
    large = tmp_path / "large"
    large.write_bytes(b"8 " * MAX_BYTES)
    with pytest.raises(InputError, match="is larger than"):
        read_nccl_tests(str(large))
    with pytest.raises(InputError, match="test 'gather': a calibration uses"):
        measured(tmp_path, printed(FEW, 8, 1, "gather"))
    with pytest.raises(InputError, match="a collective needs 2"):
        measured(tmp_path, printed(FEW, 8, 0, "broadcast"), ranks=1)
    uneven = printed(FEW, 8, 1).replace(
        "Rank  7 Group  0 Pid    106 on   host-0", "Rank  7 Pid 1 on h"
    )
    with pytest.raises(InputError, match="equally many ranks"):
        measured(tmp_path, uneven)
    with pytest.raises(
        InputError, match="its device list has 8 ranks: its bandwidths are those of 4 ranks"
    ):
        measured(tmp_path, printed(FEW, 4).replace("# Using", printed(FEW, 8, 1).split("#\n")[1]))


@pytest.mark.exhaustive
@pytest.mark.parametrize("unit", ["8 5.0\n", "x" * 4000 + "_perf\n", "{", "# meta: {" * 9, "\n"])
def test_hostile_files_are_refused_before_long(tmp_path: Path, unit: str) -> None:
    path = tmp_path / "f"
    path.write_text("size time\n" + unit * (MAX_BYTES // len(unit) - 9))
    with pytest.raises(InputError):
        read_nccl_tests(str(path))


@settings(max_examples=examples_of(150))
@given(st.lists(st.one_of(st.sampled_from(TABLE.splitlines()), st.text(max_size=40)), max_size=12))
def test_any_mixture_of_lines_is_read_or_refused(lines: list[str]) -> None:
    tables, _ = found_or_refusal(parse_text, "\n".join(lines), "f")
    timings = [timing for table in tables or () for timing in table.timings]
    assert all(t.seconds > 0 and t.size_bytes > 0 for t in timings)


KEYS = (
    *("results", "config", "devices", "args", "size", "in_place", "time", "ngpus"),
    *("alg_bw", "bus_bw", "nwrong", "hostname", "group"),
)
JSON = json_values(*KEYS, leaves=LEAVES | st.floats())


@settings(max_examples=examples_of(150))
@given(JSON)
def test_any_json_is_read_or_refused(data: object) -> None:
    for whole in (data, {"results": [data], "config": data}):
        found_or_refusal(parse_json, as_json(whole), "f")


@settings(max_examples=examples_of(100))
@given(st.binary(max_size=300), st.integers(0, 2000), st.integers(0, 40))
def test_damaged_files_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int, cut: int
) -> None:
    raw = TABLE.encode()
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(raw[:at] + junk + raw[at + cut :])
    found_or_refusal(read_nccl_tests, str(path))


@pytest.mark.parametrize(
    ("ranks", "hosts", "grouping", "outermost"),
    [
        (8, 0, INSIDE, None),
        (8, 1, INSIDE, None),
        (16, 2, ALL, 2),
        (32, 0, ALL, 4),
        (4, 4, Grouping(0, 1, master=True), 4),
    ],
)
def test_runs_are_placed_on_the_topology(
    tmp_path: Path, ranks: int, hosts: int, grouping: Grouping, outermost: int | None
) -> None:
    found = samples_of(measured(tmp_path, printed(FEW, ranks, hosts)), START)
    assert {(s.grouping, s.outermost) for s in found} == {(grouping, outermost)}
    assert found[0].source == f"f.txt:{9 + (ranks if hosts else 0)}"


@pytest.mark.parametrize(("ranks", "hosts"), [(8, 2), (12, 0), (16, 1)])
def test_parts_of_nodes_are_refused(tmp_path: Path, ranks: int, hosts: int) -> None:
    with pytest.raises(InputError, match="measure whole nodes"):
        samples_of(measured(tmp_path, printed(FEW, ranks, hosts)), START)


def test_a_part_of_every_node_is_named(tmp_path: Path) -> None:
    """As racks are run: 64 of 72, here 4 of 8 of each node."""
    table = measured(tmp_path, printed(FEW, 16, 4))
    with pytest.raises(InputError, match="name the part that was measured, such as --use gpu=4"):
        samples_of(table, START.with_outermost(4))
    used = trimmed(START.with_outermost(4), {"gpu": 4})
    (place,) = {(one.grouping, one.outermost) for one in samples_of(table, used)}
    assert place == (Grouping(0, 2), 4)


def test_device_lists_tell_a_topology(tmp_path: Path) -> None:
    inside = measured(tmp_path, printed(FEW, 8, 1))
    across = measured(tmp_path, printed(FEW, 16, 2))
    found = derived_topology([inside, across])
    assert (found.names, found.sizes) == (("node", "gpu"), (2, 8))
    assert derived_topology([inside]).sizes == (8,)
    assert derived_topology([measured(tmp_path, printed(FEW, 4, 4))]).names == ("node",)
    with pytest.raises(InputError, match="inside a node were not measured"):
        derived_topology([across])
    with pytest.raises(InputError, match="--topology"):
        derived_topology([measured(tmp_path, TABLE)])

"""What a file says of its ranks, against its rows and against itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from p2smt.calibration.samples import usages
from p2smt.collectives.names import Collective, RequestKind
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.calibration_files import (
    RankedTable,
    derived_topology,
    measurements_of,
    read_nccl_tests,
    samples_of,
)
from p2smt.programs.program import Grouping
from tests.calibration.fixtures import ALL, INSIDE, START, TRUTH, made_samples, printed
from tests.refusals import refusal

FEW = made_samples(TRUTH, INSIDE, sizes=[2**20, 2**24, 2**28])


def read(tmp_path: Path, text: str, **options: object) -> list[RankedTable]:
    path = tmp_path / "f.txt"
    path.write_text(text)
    return read_nccl_tests(str(path), **options)  # type: ignore[arg-type]


def one(tmp_path: Path, text: str, **options: object) -> RankedTable:
    (found,) = read(tmp_path, text, **options)
    return found


def devices(ranks: list[int], each: int, host: str = " on h{}") -> str:
    """A list of some ranks, ``each`` on a host."""
    return "".join(
        f"#  Rank {r:2} Group  0 Pid {9 + r}{host.format(r // each)} device {r % each:2} [0x1] X\n"
        for r in ranks
    )


@pytest.mark.parametrize(
    ("listed", "ranks", "hosts"),
    [
        (devices([0, 1, 6, 7], 4), 8, 2),
        (devices([0, 1], 4) + "...\n" + devices([6, 7], 4), 8, 2),
        (devices([15], 8, ""), 16, 2),
        (devices([71], 4), 72, 18),
        (devices(list(range(8)), 8, ""), 8, 1),
        (devices(list(range(16)), 8, ""), 16, 2),
        (devices([0, 1, 2, 3], 8) + "#  ...\n", 16, None),  # 4, 8 or 16 of a host
        (devices([0, 15], 1), 16, None),  # every rank has a device 0
    ],
)
def test_shortened_lists_leave_the_ranks_to_the_rows(
    tmp_path: Path, listed: str, ranks: int, hosts: int | None
) -> None:
    found = one(tmp_path, listed + printed(FEW, ranks))
    assert (found.ranks, found.hosts) == (ranks, hosts)


def test_a_remark_goes_with_a_shortened_list(tmp_path: Path) -> None:
    meta = '# meta: {"nodes": 2, "gpus": 16}\n'
    found = one(tmp_path, meta + devices([0, 1, 2, 3], 8) + "# ...\n" + printed(FEW, 16))
    assert (found.ranks, found.hosts) == (16, 2)


@pytest.mark.parametrize(
    ("above", "ranks", "message"),
    [
        (devices(list(range(8)), 8), 16, "line 1: its device list has 8 ranks: its bandwidths are"),
        ('# meta: {"gpus": 8}\n', 16, "line 1: its meta line has 8 ranks: its bandwidths are"),
        (devices([0, 23], 8), 16, "shortened, has 24 or more ranks: its rows 16; correct one"),
        (
            '# meta: {"gpus": 8}\n' + devices([0, 1], 8),
            0,
            "line 2: its device list has 2 ranks: its meta line 8; correct one",
        ),
        (
            '# meta: {"gpus": 16, "nodes": 4}\n' + devices([7, 8], 8),
            16,
            "which is shortened, has 2 hosts: its meta line 4; correct one",
        ),
        ('# meta: {"gpus": 16, "nodes": 3}\n', 16, "16 gpus: cannot be spread evenly over 3 nodes"),
        ('# meta: {"gpus": "16"}\n', 16, "gpus '16': must be one whole number"),
        ('# meta: {"collective": "any"}\n', 16, "collective 'any': is none of nccl-tests: all_"),
    ],
)
def test_disagreement_is_named(tmp_path: Path, above: str, ranks: int, message: str) -> None:
    table = printed(FEW, ranks or 8, 0, "all_reduce" if ranks else "broadcast")
    said = refusal(read, tmp_path, above + table)
    assert message in said
    assert "f.txt, line" in said


@pytest.mark.parametrize(
    ("said", "ran", "message"),
    [
        ("all_gather", "all_reduce", "line 9: busbw .* is no row of all-gather"),
        ("all_reduce", "all_gather", "line 9: busbw .* is no row of all-reduce"),
        ("broadcast", "all_gather", "line 9: busbw .* is no row of broadcast"),
        ("sendrecv", "alltoall", "line 9: busbw .* is no row of send"),
        ("alltoall", "sendrecv", "line 9: busbw .* is no row of all-to-all"),
        ("alltoallv", "alltoall", "line 7: test 'alltoallv': a calibration uses all_reduce"),
        ("hypercube", "sendrecv", "line 7: test 'hypercube': a calibration uses"),
    ],
)
def test_rows_of_another_collective_are_named(
    tmp_path: Path, said: str, ran: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, printed(FEW, 8, 0, ran).replace(f"{ran}_perf", f"{said}_perf"))


def test_tables_of_one_file_have_their_own_ranks(tmp_path: Path) -> None:
    untitled = printed(FEW, 16).split("# Using devices\n")[1]
    found = read(tmp_path, printed(FEW, 8, 1) + printed(FEW, 8, 0, "alltoall") + untitled)
    assert [one.operation for one in found] == [
        Collective.ALL_REDUCE,
        RequestKind.ALL_TO_ALL,
        Collective.ALL_REDUCE,
    ]
    assert [(one.ranks, one.per_host) for one in found] == [(8, 8), (8, None), (16, None)]
    with pytest.raises(InputError, match="line 39: 8 ranks given: its bandwidths are those of 16"):
        read(tmp_path, printed(FEW, 8, 1) + printed(FEW, 8, 0, "alltoall") + untitled, ranks=8)


def test_rows_without_a_heading_are_those_of_nccl_tests(tmp_path: Path) -> None:
    lines = printed(FEW, 8).splitlines(keepends=True)
    rows = [line for line in lines if line[0] != "#"]
    again = ["# alltoall_perf\n", *printed(FEW, 4, 0, "alltoall").splitlines(keepends=True)[-6:-3]]
    found = read(tmp_path, "".join([*rows, *again]))
    assert [(one.operation.value, one.ranks) for one in found] == [
        ("all-reduce", 8),
        ("all-to-all", 4),
    ]
    (headed,) = read(tmp_path, "".join(lines))
    assert [t.seconds for t in found[0].table.timings] == [t.seconds for t in headed.table.timings]


def test_old_versions_print_the_busbw_twice(tmp_path: Path) -> None:
    text = (
        "# all_gather_perf\n# size count type time algbw busbw error\n"
        "1048576 32768 float 100.0 9.18 9.18 0e+00\n"
    )
    assert one(tmp_path, text).ranks == 8


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("half", r"line 10: type half: the table has float above; split it by type"),
        ("7", r"line 10: type '7': is no data type"),
    ],
)
def test_rows_of_another_type_are_named(tmp_path: Path, word: str, message: str) -> None:
    lines = printed(FEW, 8).splitlines(keepends=True)
    lines[9] = lines[9].replace("float", word)
    with pytest.raises(InputError, match=message):
        read(tmp_path, "".join(lines))


@pytest.mark.parametrize("root", ["-1", "0"])
def test_a_row_cut_short_is_named(tmp_path: Path, root: str) -> None:
    *lines, last = printed(FEW, 8).replace("sum -1", f"sum {root}").splitlines()[:10]
    words = last.split()
    (two,) = read(tmp_path, "\n".join([*lines, last]))
    for kept in range(1, len(words)):
        with pytest.raises(InputError, match=rf"f\.txt, line 10: {kept} columns: the table has 13"):
            read(tmp_path, "\n".join([*lines, " ".join(words[:kept])]))
    (without,) = read(tmp_path, "\n".join(lines))
    assert without.table.timings == two.table.timings[:2]


def test_ranks_are_given_per_file(tmp_path: Path) -> None:
    text = printed(FEW, 8, 0, "broadcast")
    names = [str(tmp_path / name) for name in ("a.txt", "b.txt", "c.txt")]
    for name in names[:2]:
        Path(name).write_text(text)
    Path(names[2]).write_text(printed(FEW, 16))
    found = measurements_of(names, START, ranks=[8, 32, None])
    assert [source.split(": ")[1].split(",")[1] for source in found.sources] == [
        " 8 ranks",
        " 32 ranks",
        " 16 ranks",
    ]
    with pytest.raises(InputError, match="2 numbers of ranks for 3 files: give one for all"):
        measurements_of(names, START, ranks=[8, 32])


def test_more_nodes_than_the_topology_has_are_refused(tmp_path: Path) -> None:
    for found in (one(tmp_path, printed(FEW, 64)), one(tmp_path, printed(FEW, 8, 8))):
        with pytest.raises(InputError, match=r"ranks are 8 of level node: start has 4; name .*:8"):
            samples_of(found, START)


def test_some_devices_of_a_node_are_a_smaller_node(tmp_path: Path) -> None:
    (sample, *_) = samples_of(one(tmp_path, printed(FEW, 4, 1)), START)
    assert (sample.grouping, sample.outermost, sample.members) == (Grouping(0, 1), None, 4)
    assert sample.cluster(START).sizes == (1, 4)
    found = measurements_of([str(tmp_path / "f.txt")], START)
    assert found.sources == (
        "nccl-tests f.txt: all-reduce, 4 ranks (4 of gpu 8; hosts: 1), 6 times",
    )


def test_hosts_do_not_count_without_a_level_of_hosts(tmp_path: Path) -> None:
    rack = replace(START, levels=(replace(START.levels[0], name="rack"), START.levels[1]))
    (sample, *_) = samples_of(one(tmp_path, printed(FEW, 8, 2)), rack)
    assert (sample.grouping, sample.members) == (Grouping(1, 2), None)
    (sample, *_) = samples_of(one(tmp_path, printed(FEW, 4, 2)), rack)
    assert sample.members == 4
    (sample, *_) = samples_of(one(tmp_path, printed(FEW, 16, 4)), rack)
    assert (sample.grouping, sample.outermost) == (ALL, 2)


def test_no_device_of_a_derived_topology_has_all_cards(tmp_path: Path) -> None:
    inside, across = one(tmp_path, printed(FEW, 8, 1)), one(tmp_path, printed(FEW, 16, 2))
    assert [level.link.ports for level in derived_topology([inside, across]).levels] == [8, 1]


@pytest.mark.parametrize(("ranks", "hosts"), [(8, 1), (16, 2), (32, 4)])
def test_a_ring_of_sends_is_a_send(tmp_path: Path, ranks: int, hosts: int) -> None:
    """One message leaves a node, by the port of the device that sends it: no port carries two."""
    found = one(tmp_path, printed(FEW, ranks, hosts, "sendrecv"))
    (sample, *_) = samples_of(found, START)
    assert sample.operation is RequestKind.SEND
    (usage,) = usages(START, sample)
    assert usage.level == (1 if hosts == 1 else 0)
    assert usage.loads[usage.level] == sample.payload_bytes
    assert usage.steps[usage.level] == 1

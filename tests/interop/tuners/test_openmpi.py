"""Rule files of Open MPI: what they make the library do, and every fault by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.interop.tuners.choices import ChoiceTable, Chosen, Comm, LibraryCall, representatives
from p2smt.interop.tuners.formats import judged, recognised
from p2smt.interop.tuners.openmpi import ALGORITHMS, SIZED, judge_tuned, write_tuned
from p2smt.interop.tuners.openmpi_han import SIZED as HAN_SIZED
from p2smt.interop.tuners.openmpi_han import judge_han, write_han

COMM = Comm(4, 2)
TUNED = "1 # collectives\n2\n1\n8\n2\n0 6 0 0\n131072 4 0 0\n"
"""An all-reduce of 8 ranks: Rabenseifner's, and from 128 KiB on a ring."""
HAN = "1\nallreduce\n1\n2\n2\n1\n1\n0 han\n8\n2\n0 han\n131072 tuned\n"


def test_a_rule_holds_up_to_the_next() -> None:
    found = judge_tuned(TUNED, [COMM])
    assert found.faults == ()
    assert [found.choices.at("allreduce", COMM, n) for n in (0, 131071, 131072, 2**40)] == [
        *(LibraryCall("rabenseifner"),) * 2,
        *(LibraryCall("ring"),) * 2,
    ]
    assert "^han" in found.notes[0]
    assert judge_tuned(TUNED, [Comm(1, 8)]).notes == ()


def test_ranks_hold_up_to_the_next_and_the_least_for_all_below() -> None:
    """As Open MPI 5.0.11 did with 4 and 6 listed: 2, 3 and 5 took the rules of 4."""
    text = "1\n2\n2\n4\n1\n0 3 0 0\n6\n1\n0 4 0 0\n"
    comms = [Comm(1, n) for n in (2, 3, 4, 5, 6, 9)]
    found = judge_tuned(text, comms)
    taken = [str(found.choices.at("allreduce", comm, 9)) for comm in comms]
    assert taken == ["recursive_doubling"] * 4 + ["ring"] * 2


def test_han_leaves_to_tuned_what_its_file_says() -> None:
    found = judge_han(HAN, [COMM, Comm(1, 8), Comm(2, 2)])
    assert found.faults == ()
    sizes = (131071, 131072)
    assert [str(found.choices.at("allreduce", COMM, n)) for n in sizes] == ["han", "tuned"]
    assert [found.choices.at("allreduce", Comm(1, 8), n) for n in sizes] == [None, None]
    assert [str(found.choices.at("allreduce", Comm(2, 2), n)) for n in sizes] == ["han", "han"]


def test_numbers_are_read_as_c_reads_them() -> None:
    found = judge_tuned(TUNED.replace("131072", "0x20000"), [COMM])
    assert str(found.choices.at("allreduce", COMM, 131072)) == "ring"
    assert [fault.name for fault in found.faults] == ["suffix"]
    found = judge_tuned(TUNED.replace("131072", "0131072"), [COMM])
    assert str(found.choices.at("allreduce", COMM, 0o131072)) == "ring"


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("131072 4 0 0\n", "131072 4 0\n", {"ignored-whole"}),
        ("0 6 0 0", "1 6 0 0", {"ignored-whole"}),
        ("8\n2\n", "8\n-2\n", {"ignored-whole"}),
        ("1 #", "30 #", {"ignored-whole"}),
        ("1 #", "2 #", {"ignored-whole"}),
        ("s\n2\n1", "s\n22\n1", {"ignored-whole"}),
        ("0 6 0 0", "0 6 0 0 0", {"version-line", "counts", "same-key", "version-ids"}),
        ("1 #", "# mine\nrule-file-version-2\n1 #", {"version-line"}),
        ("131072 4", "131072 7", {"version-ids"}),
        ("s\n2\n1", "s\n0\n1", {"two-ranks-only"}),
        ("s\n2\n1", "s\n5\n1", {"unreachable"}),
        ("131072 4", "64K 4", {"suffix"}),
        ("131072 4", "0 4", {"same-key"}),
        ("131072 4 0 0\n", "131072 4 0 0\n65536 3 0 0\n", {"counts"}),
        ("2\n0 6 0 0\n131072 4 0 0", "3\n0 6 0 0\n9 4 0 0\n7 3 0 0", {"not-ascending"}),
        ("1\n8\n2\n", "2\n16\n1\n0 3 0 0\n8\n2\n", {"not-ascending"}),
        ("1 # collectives\n2\n", "2\n2\n1\n8\n1\n0 3 0 0\n2\n", {"same-key"}),
        ("s\n2\n1\n8\n2\n0 6", "s\n3\n1\n8\n2\n0 5", {"two-ranks-only"}),
    ],
)
def test_faults_of_tuned(old: str, new: str, names: set[str]) -> None:
    assert TUNED.count(old) == 1
    found = judged(TUNED.replace(old, new), [COMM])
    assert {fault.name for fault in found.faults} == names


def test_two_ranks_may_take_what_is_theirs() -> None:
    text = "1\n3\n2\n2\n1\n0 5 0 0\n3\n1\n0 0 0 0\n"
    assert judge_tuned(text, []).faults == ()


def test_requests_want_a_version_and_are_read_with_it() -> None:
    found = judge_tuned("rule-file-version-2\n1\n3\n1\n8\n2\n0 4 0 0 3\n9 1 0 0\n", [COMM])
    assert found.faults == ()
    assert found.choices.at("alltoall", COMM, 0) == LibraryCall(
        "linear_sync", "", (("requests", 3),)
    )
    assert any("4.1.8 and 5.0.7" in note for note in found.notes)


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("\n1\n1\n0 han\n8", "\n2\n1\n0 han\n8", {"ignored-whole"}),
        ("131072 tuned\n", "131072\n", {"ignored-whole"}),
        ("\n8\n2\n0 han", "\n8\n2\n2 han", {"ignored-whole"}),
        ("allreduce", "all-reduce", {"unknown-name"}),
        ("allreduce", "alltoall", {"unreachable"}),
        ("131072 tuned", "131072 tunde", {"unknown-name"}),
        ("131072 tuned", "131072 han@simple", {"unknown-name"}),
        ("131072 tuned", "131072 han @simpel", {"unknown-name"}),
        ("131072 tuned", "131072 han @simple", set()),
        ("131072 tuned", "131072 sm", {"unreachable"}),
        ("allreduce\n1\n2\n", "allreduce\n1\n1\n", {"unreachable"}),
        ("131072 tuned", "0 tuned", {"same-key"}),
        ("131072 tuned\n", "131072 tuned\n9 tuned\n", {"counts"}),
        ("1\nallreduce", "0\nallreduce", {"ignored-whole"}),
    ],
)
def test_faults_of_han(old: str, new: str, names: set[str]) -> None:
    assert HAN.count(old) == 1
    assert {fault.name for fault in judge_han(HAN.replace(old, new), [COMM]).faults} == names


def test_each_is_told_from_the_other() -> None:
    assert [getattr(recognised(text), "name", None) for text in (TUNED, HAN)] == [
        "ompi-tuned",
        "ompi-han",
    ]


ROWS = st.lists(st.tuples(st.integers(1, 2**34), st.integers(0, 4)), max_size=4)
NAMES = ("allgather", "allreduce", "alltoall", "reduce_scatter_block")
TABLES = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(2, 5), ROWS), max_size=5)


def table_of(drawn: list[tuple[str, int, list[tuple[int, int]]]]) -> ChoiceTable:
    """A table of two nodes each, with the numbers drawn as algorithms (0: the library's own)."""
    rows = list[Chosen]()
    for name, each, changes in {
        (name, each): (name, each, of) for name, each, of in drawn
    }.values():
        numbers = {0: 0} | dict(changes)
        for first, last in representatives(numbers):
            number = numbers[first]
            call = LibraryCall(ALGORITHMS[name][number - 1]) if number else None
            rows.append(Chosen(name, Comm(2, each), first, last, call))
    return ChoiceTable(tuple(rows))


@given(TABLES)
def test_what_is_written_is_what_is_chosen(
    drawn: list[tuple[str, int, list[tuple[int, int]]]],
) -> None:
    table = table_of(drawn)
    comms = [Comm(2, each) for each in range(1, 7)] + [Comm(1, 3)]
    tuned = judge_tuned(write_tuned(table), comms)
    says = any(row.call is not None and row.collective in HAN_SIZED for row in table.rows)
    han = judge_han(write_han(table), comms) if says else None
    assert tuned.faults == ()
    assert han is None or han.faults == ()
    sizes = sorted({row.first + n for row in table.rows for n in (0, -1, 17)} - {-1})
    for name in NAMES:
        for comm in comms:
            for size in sizes:
                assert tuned.choices.at(name, comm, size) == table.at(name, comm, size)
                left = table.at(name, comm, size - size % comm.ranks)
                if (
                    han is not None
                    and name in HAN_SIZED
                    and comm.nodes > 1
                    and size % comm.ranks == 0
                ):
                    said = str(han.choices.at(name, comm, size) or "han")
                    assert said == ("han" if left is None else "tuned")


def test_the_collectives_are_known() -> None:
    assert set(SIZED) <= set(ALGORITHMS)

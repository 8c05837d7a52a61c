"""Selection files of MPICH: what they make the library do, and every fault by name."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.interop.tuners.choices import ChoiceTable, Chosen, Comm, LibraryCall, representatives
from p2smt.interop.tuners.formats import recognised
from p2smt.interop.tuners.mpich import (
    CH4,
    MPIR,
    MpichCall,
    found_leaf,
    judge_ch4,
    judge_mpich,
    mpich_known,
    parsed,
    write_ch4,
    write_mpich,
)

COMMS = (Comm(4, 2), Comm(1, 8), Comm(2, 3), Comm(1, 4))
RING: dict[str, Any] = {"algorithm=MPIR_Allreduce_intra_ring": {}}


def own(form: str = MPIR) -> dict[str, Any]:
    """MPICH's own table, to be changed."""
    found: dict[str, Any] = json.loads(json.dumps(mpich_known().own[form]))
    return found


@cache
def plain_choices() -> ChoiceTable:
    """What MPICH's own table chooses."""
    return judge_mpich(json.dumps(own()), COMMS).choices


def told(change: dict[str, Any]) -> str:
    """MPICH's table of algorithms with another entry for the all-reduce."""
    return json.dumps(own() | {"collective=allreduce": {"comm_type=intra": change}})


def guarded(tree: dict[str, Any]) -> dict[str, Any]:
    """A ring where sums commute."""
    other: dict[str, Any] = {"algorithm=MPIR_Allreduce_intra_recursive_doubling": {}}
    return {"is_commutative=yes": tree, "is_commutative=no": other}


@pytest.mark.parametrize("form", [MPIR, CH4])
def test_its_own_tables_are_right(form: str) -> None:
    judge = judge_mpich if form == MPIR else judge_ch4
    text = json.dumps(own(form))
    assert judge(text, COMMS).faults == ()
    assert getattr(recognised(text), "name", None) == form


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (guarded(RING), set()),
        (RING, {"missing-guard"}),
        ({"is_commutative=yes": RING}, {"gap"}),
        (guarded({"avg_msg_size<=8": RING}), {"gap"}),
        (guarded({"avg_msg_size<=8": {}, "avg_msg_size=any": RING}), {"gap"}),
        (guarded({"avg_msg_size<=3000000000": RING, "avg_msg_size=any": RING}), {"overflow"}),
        (guarded({"avg_msg_size<=64K": RING, "avg_msg_size=any": RING}), {"suffix"}),
        (guarded({"avg_msg_size=any": RING, "avg_msg_size<=8": RING}), {"unreachable"}),
        (guarded({"message<=8": RING, "avg_msg_size=any": RING}), {"unknown-name"}),
        (guarded({"is_sendbuf_inplace=no": RING, "count=any": RING}), {"aborts"}),
        (guarded({"algorithm=MPIR_Allreduce_intra_rings": {}}), {"unknown-name"}),
        (guarded({"algorithm=MPIR_Reduce_intra_binomial": {}}), {"aborts"}),
        ({"algorithm=MPIR_Allreduce_intra_reduce_scatter_allgather": {}}, {"missing-guard"}),
        (guarded({"comm_size<=7": RING}), {"gap"}),
    ],
)
def test_faults(change: dict[str, Any], names: set[str]) -> None:
    assert {fault.name for fault in judge_mpich(told(change), COMMS).faults} == names


def test_what_is_known_of_an_all_gather() -> None:
    ring: dict[str, Any] = {"algorithm=MPIR_Allgather_intra_ring": {}}
    for what, names in (("avg_msg_size", {"aborts"}), ("total_msg_size", set())):
        change = {f"{what}<=8": ring, f"{what}=any": ring}
        text = json.dumps(own() | {"collective=allgather": {"comm_type=intra": change}})
        assert {fault.name for fault in judge_mpich(text, COMMS).faults} == names


def test_a_collective_left_out_and_a_key_twice() -> None:
    less = own()
    del less["collective=iscan"]
    assert [fault.name for fault in judge_mpich(json.dumps(less), COMMS).faults] == ["gap"]
    twice = json.dumps(own())[:-1] + ', "collective=scan": {"algorithm=MPIR_Scan_intra_smp": {}}}'
    assert "same-key" in {fault.name for fault in judge_mpich(twice, COMMS).faults}
    assert judge_ch4("{}", COMMS).faults[0].name == "gap"


@pytest.mark.parametrize("text", ["", "[]", '{"collective=a": 1}', '{"a"', "[" * 10**5])
def test_no_objects(text: str) -> None:
    assert [fault.name for fault in judge_mpich(text, COMMS).faults] == ["aborts"]


def test_below_is_up_to_once_a_message_was_looked_at() -> None:
    """csel.c prunes by < and searches by <=."""
    small: dict[str, Any] = {"algorithm=MPIR_Alltoall_intra_pairwise": {}}
    large: dict[str, Any] = {"algorithm=MPIR_Alltoall_intra_scattered": {}}
    sizes = {"comm_size<8": small, "comm_size=any": large}
    for inside, name in ((sizes, "scattered"), ({"avg_msg_size<=9": sizes}, "pairwise")):
        tree = parsed(json.dumps({"collective=alltoall": inside}))
        assert tree is not None
        leaf = found_leaf(tree, MpichCall("alltoall", Comm(1, 8), 8))
        assert leaf == f"MPIR_Alltoall_intra_{name}"


WAYS = {
    "allreduce": ("ring", "recursive_doubling", "reduce_scatter_allgather"),
    "allgather": ("ring", "brucks"),
    "alltoall": ("pairwise", "scattered", "brucks"),
    "reduce_scatter_block": ("pairwise", "recursive_halving"),
    "bcast": ("binomial",),
}
ROWS = st.lists(st.tuples(st.integers(1, 2**30), st.integers(0, 3)), max_size=3)
TABLES = st.lists(
    st.tuples(st.sampled_from(tuple(WAYS)), st.sampled_from(COMMS[1:]), ROWS), max_size=3
)


@settings(max_examples=15)
@given(TABLES)
def test_what_is_written_is_what_is_chosen(
    drawn: list[tuple[str, Comm, list[tuple[int, int]]]],
) -> None:
    rows = list[Chosen]()
    for name, comm, changes in {
        (name, comm): (name, comm, of) for name, comm, of in drawn
    }.values():
        numbers = {0: 0} | dict(changes)
        for first, last in representatives(numbers):
            ways = WAYS[name]
            number = min(numbers[first], len(ways))
            rows.append(
                Chosen(name, comm, first, last, LibraryCall(ways[number - 1]) if number else None)
            )
    table = ChoiceTable(tuple(rows))
    text = write_mpich(table)
    assert judge_mpich(text, COMMS).faults == ()
    assert judge_ch4(write_ch4(table), COMMS).faults == ()
    made, plain = judge_mpich(text, COMMS).choices, plain_choices()
    for row in rows:
        whole = row.comm.ranks  # a size is parts of ranks
        for size in {-(-row.first // whole) * whole, row.last // whole * whole}:
            if not row.first <= size <= row.last or size < 256:
                continue
            mine = row.call or plain.at(row.collective, row.comm, size)
            assert made.at(row.collective, row.comm, size) == mine
    others = [comm for comm in COMMS if comm.ranks not in {row.comm.ranks for row in rows}]
    for comm in others:
        for name in WAYS:
            assert [r for r in made.rows if (r.collective, r.comm) == (name, comm)] == [
                r for r in plain.rows if (r.collective, r.comm) == (name, comm)
            ]


def test_flat_where_a_table_says_what_runs() -> None:
    call = LibraryCall("ring")
    table = ChoiceTable(
        (
            Chosen("allreduce", Comm(4, 2), 0, 99, None),
            Chosen("allreduce", Comm(4, 2), 100, 2**64 - 1, call),
        )
    )
    found = judge_ch4(write_ch4(table), (Comm(4, 2), Comm(4, 1), Comm(1, 8)))
    assert found.faults == ()
    at = [str(found.choices.at("allreduce", Comm(4, 2), size)) for size in (99, 100)]
    assert at == ["composition_alpha", "composition_beta"]

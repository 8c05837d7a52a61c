"""NCCL's tuner files: what p2smt says of one is what the example plugin does with it."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.interop.tuners.c_text import integer, unsigned
from p2smt.interop.tuners.choices import Comm, LibraryCall
from p2smt.interop.tuners.nccl import NCCL, judge_nccl, judge_rccl, read_nccl
from p2smt.interop.tuners.rules import COLLECTIVES, TunerQuestion, chosen
from tests.interop.tuners.plugin import VARIABLE, Answer
from tests.interop.tuners.random_files import COMMS, number_of, random_file, random_questions
from tests.interop.tuners.record import FILES, QUESTIONS, RECORD, answers_of, coded

LIBRARY = os.environ.get(VARIABLE, "")
needs_plugin = pytest.mark.skipif(not LIBRARY, reason=f"{VARIABLE} names no built plugin")
WHOLE = "\n".join(f"{name},0,18446744073709551615,ring,simple,0,-1,-1" for name in COLLECTIVES)
SMALL = Comm(1, 8)


def ours(text: str, seed: int) -> list[tuple[int, int]]:
    """The answers to the questions of a seed."""
    rules, found = read_nccl(text).rules, []
    for question, impossible in random_questions(seed, QUESTIONS):
        possible = lambda a, p, bad=impossible: number_of(a, p) not in bad  # noqa: E731
        found.append(coded(chosen(NCCL, rules, question, possible)))
    return found


def test_answers_are_the_plugins() -> None:
    record = json.loads(RECORD.read_text())
    assert len(record) == FILES
    assert sum(pair >= 0 for row in record for pair, _ in row) > 1000
    for seed, row in enumerate(record):
        assert [list(one) for one in ours(random_file(seed), seed)] == row, seed


@needs_plugin
def test_the_record_is_what_the_plugin_answers() -> None:
    assert [[list(one) for one in row] for row in answers_of(LIBRARY)] == json.loads(
        RECORD.read_text()
    )


def in_table(call: LibraryCall | None) -> Answer:
    assert call is not None
    pair = (call.algorithm, call.protocol) if call.algorithm else None
    return pair, call.setting("channels")


def test_the_table_says_what_the_plugin_answers() -> None:
    record, compared = json.loads(RECORD.read_text()), 0
    for seed, row in enumerate(record):
        calls = random_questions(seed, QUESTIONS)
        plain = [n for n, (call, bad) in enumerate(calls) if not bad and call.registered == 0]
        plain = [n for n in plain if calls[n][0].grouped == 1]
        if not plain:
            continue
        table = judge_nccl(random_file(seed), COMMS).choices
        for n in plain:
            call = calls[n][0]
            answer = in_table(table.at(call.collective, call.comm, call.size))
            assert list(coded(answer)) == row[n], (seed, call)
            compared += 1
    assert compared > 500


def faults(text: str, comm: Comm = SMALL) -> list[tuple[str, int]]:
    return [(fault.name, fault.line) for fault in judge_nccl(text, [comm]).faults]


def test_a_whole_file_is_right() -> None:
    assert faults(WHOLE) == []


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("allreduc,0,9,ring,simple,0,-1,-1", "unknown-name"),
        ("allreduce,0,9,Ring,simple,0,-1,-1", "unknown-name"),
        ("allreduce,0,9,tree,LL,0,-1,-1", "unknown-name"),
        ("  # a note,0,9,ring,simple,0,-1,-1", "unknown-name"),
        ("allreduce,0,9,tree,ll,-1,-1,-1", "one-channel"),
        ("allreduce,0,64K,tree,ll,0,-1,-1", "suffix"),
        ("allreduce,0,1e9,tree,ll,0,-1,-1", "suffix"),
        ("allreduce,0,9,tree,,2,2,16,-1,-1", "shifted-columns"),
        ("allreduce,0,9,tree,ll,0,-1", "counts"),
        ("allreduce,0,9,tree,ll,0,-1,-1,-1,-1,7", "counts"),
        ("allreduce,0,9,tree,ll,0,*,-1", "wildcard"),
        ("allreduce,0,9,tree,ll,0,0,-1", "wildcard"),
        ("allreduce,9,3,tree,ll,0,-1,-1", "unreachable"),
        ("allreduce,0,99999999999999999999,tree,ll,0,-1,-1", "overflow"),
        ("allreduce,0,9,tree,ll,0,-1,4294967295", "overflow"),
        ("#" + "x" * 300, "long-line"),
    ],
)
def test_a_bad_row_is_named(row: str, name: str) -> None:
    assert (name, 1) in faults(f"{row}\n{WHOLE}")


def test_what_no_row_matches_is_a_gap() -> None:
    rows = WHOLE.splitlines()
    assert faults("\n".join(rows[1:])) == [("gap", 0)]
    assert faults(WHOLE.replace("18446744073709551615", "1073741824", 1)) == [("top", 0)]
    assert faults(WHOLE.replace(",0,1844", ",1,1844", 1)) == [("gap", 0)]


def test_a_row_whose_pair_may_be_impossible_needs_one_below_it() -> None:
    lone = WHOLE.replace(
        "broadcast,0,18446744073709551615,ring", "broadcast,0,18446744073709551615,nvls"
    )
    assert faults(lone) == [("one-channel", 1)]
    assert faults(f"{lone}\n{WHOLE.splitlines()[0]}") == []


def test_a_row_behind_one_that_takes_all_is_unreachable() -> None:
    row = "allreduce,0,9,tree,ll,0,1,8"
    assert faults(f"{WHOLE}\n{row}") == [("unreachable", 6)]
    assert faults(f"{row}\n{WHOLE}") == []
    halves = "allreduce,0,4,tree,ll,0,-1,-1\nallreduce,5,20,tree,ll,0,-1,-1"
    assert faults(f"{halves}\n{row}\n{WHOLE}") == [("unreachable", 3)]


def test_rccl_falls_back_to_its_own_choice() -> None:
    found = judge_rccl("allreduce,0,9,tree,ll,-1,1,8\n allreduce,3,9,Tree,ll,0,1,8", [SMALL])
    assert [fault.name for fault in found.faults] == ["unknown-name"]
    assert found.choices.at("allreduce", SMALL, 9) == LibraryCall("tree", "ll")
    assert found.choices.at("allreduce", SMALL, 10) is None


SPANS = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted)
ROWS = st.lists(
    st.tuples(SPANS, st.sampled_from(("ring,simple", "tree,ll")), st.sampled_from((-1, 1, 2))),
    min_size=1,
    max_size=5,
)


@given(ROWS)
def test_unreachable_rows_are_those_that_no_call_reaches(
    rows: list[tuple[list[int], str, int]],
) -> None:
    text = "\n".join(f"reduce,{s[0]},{s[1]},{pair},0,{nodes},-1" for s, pair, nodes in rows)
    dead = {line for name, line in faults(text) if name == "unreachable"}
    reached = set()
    rules = read_nccl(text).rules
    for size in range(4):
        for nodes in (1, 2, 3):
            for ring in (False, True):
                for rule in rules:
                    taken = rule.nodes[0] <= nodes <= rule.nodes[1]
                    taken = taken and rule.sizes[0] <= size <= rule.sizes[1]
                    if taken and (rule.algorithm == "ring" or not ring):
                        reached.add(rule.line)
                        break
    assert dead == {rule.line for rule in rules} - reached


@pytest.mark.parametrize(
    ("text", "as_size", "as_count"),
    [
        ("64K", 64, 64),
        ("-1", 2**64 - 1, -1),
        (" +8", 8, 8),
        ("x", 0, 0),
        ("99999999999999999999", 2**64 - 1, -1),
        ("4294967295", 2**32 - 1, -1),
        ("-9999999999999999999999", 2**64 - 1, 0),
    ],
)
def test_numbers_are_read_as_c_reads_them(text: str, as_size: int, as_count: int) -> None:
    assert (unsigned(text), integer(text)) == (as_size, as_count)


def test_bytes_are_counted_not_characters() -> None:
    name = "é" * 130
    assert ("long-line", 1) in faults(f"# {name}\n{WHOLE}")


def test_a_question_of_a_group_is_another() -> None:
    rules = read_nccl("reduce,0,9,tree,ll,0,-1,-1,2").rules
    assert chosen(NCCL, rules, TunerQuestion("reduce", SMALL, 1)) == (None, 1)
    assert chosen(NCCL, rules, TunerQuestion("reduce", SMALL, 1, grouped=2)) == (("tree", "ll"), 0)

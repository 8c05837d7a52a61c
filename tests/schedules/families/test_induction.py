"""Inductive proofs for all sizes: found for right families, never for wrong ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.schedules.families.induction import Induction, prove_all_sizes
from p2smt.schedules.language.instance import instantiate
from p2smt.schedules.language.schedule_file import parse_symbolic
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import verify

FOLDER = Path(__file__).parents[1] / "symbolic"
PROVED = ("ring_all_reduce", "ring_all_gather", "all_pairs")
# What a slip of the pen does to a line: pattern and replacement.
SLIPS = (
    (r"- t\b", "+ t"),
    (r"\+ 1\b", "- 1"),
    (r"- 1\b", "+ 1"),
    (r"\+ 1\b", "+ 2"),
    (r" - 1\b", ""),
    (r"n-2", "n-3"),
    (r"n-2", "n-1"),
    (r"n-1", "n-2"),
    (r"0\.\.n", "1..n"),
    (r"\bd\b", "1"),
    (r"<= t", "< t"),
    (r"<= t", "<= t + 1"),
    (r"receive-reduce-copy [io]\[.*\] from", "receive from"),
    (r"receive from", "receive-reduce-copy i[0] from"),
    (r"(?s)- send.*?(?=- )", ""),
    (r"- (copy|send) i\[0\].*", ""),
    (r"chunk c", "chunk 0"),
    (r"at_least: 2", "at_least: 1"),
    (r"in_place: true", "in_place: false"),
    (r"allgather, chunks: 1", "allgather, chunks: 1, in_place: true"),
    (r"allreduce", "reduce"),
    (r"into o\[0\]", "into i[0]"),
)


def text_of(name: str) -> str:
    """The text of an example file."""
    return (FOLDER / f"{name}.yaml").read_text()


def slipped(text: str) -> Iterator[str]:
    """The text with one slip, at each place where it can happen."""
    for pattern, replacement in SLIPS:
        for found in re.finditer(pattern, text):
            yield text[: found.start()] + replacement + text[found.end() :]


def right_at(text: str, sizes: range) -> bool:
    """Whether the family is right at each of these sizes."""
    family = parse_symbolic(text)
    try:
        reports = [verify(instantiate(family, {"n": n})) for n in sizes]
    except InputError:
        return False
    return all(report.verdict is Verdict.VALID for report in reports)


def induction(text: str, fifo_depth: int = 8) -> Induction:
    """The proof for all sizes of a file's text."""
    return prove_all_sizes(parse_symbolic(text), fifo_depth)


@pytest.mark.parametrize("name", PROVED)
def test_all_sizes(name: str) -> None:
    found = induction(text_of(name))
    assert found.proved
    assert found.scope == "all n >= 2"
    assert right_at(text_of(name), range(2, 7))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PROVED)
def test_no_wrong_family_is_proved(name: str) -> None:
    mutants = sorted(set(slipped(text_of(name))))
    wrong = 0
    for mutant in mutants:
        try:
            first = 1 if "at_least: 1" in mutant else 2
            if right_at(mutant, range(first, 6)):
                continue
            wrong += 1
            assert not induction(mutant).proved, mutant
        except InputError:
            continue
    assert wrong >= 9


def test_a_wrong_invariant_of_a_right_schedule_proves_nothing() -> None:
    text = text_of("ring_all_gather").replace("<= t\n", "<= t + 1\n")
    assert right_at(text, range(2, 6))
    found = induction(text)
    assert not found.proved
    assert found.reason.startswith("no proof of the loop at line 11: first")


def test_doubled_contributions_are_not_joined() -> None:
    """A neighbour's chunk is in the sum already: a union would not notice."""
    again = """\
      - send i[0] to (rank + 1) mod n
      - receive-reduce-copy o[0] from (rank - 1) mod n into o[0]
"""
    text = text_of("all_pairs") + again
    assert not right_at(text, range(2, 3))
    assert induction(text).reason == "no proof of line 19: sum"


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("all_pairs", "ranks: n", "ranks: n + 0", "not a free parameter"),
        ("all_pairs", "rank: each", "rank: 0", "one block of the same template"),
        ("all_pairs", "rank: each", "rank: each\n    block: rank", "blocks that vary"),
        ("all_pairs", "ranks: n", "ranks: n\nbuffers: {output: 1}", "buffer sizes"),
        ("all_pairs", "        holds:", "        when: 1\n        holds:", "has a condition"),
        ("all_pairs", "{d: 1..n-1}", "{d: 1..n-1, e: 0..1}", "more than one name"),
        ("all_pairs", "{d: 1..n-1}", "{d: 1..n-1, e: 0..0}", ""),
        ("all_pairs", "{d: 1..n-1}", "{d: 1..n-1, n: 1}", "a second time"),
        ("all_pairs", "{d: 1..n-1}", "{d: 1..rank}", "unknown name 'rank'"),
        ("all_pairs", "i[c] is", "i[d] is", "a second time"),
        ("all_pairs", "i[0] to", "i[0 // 1] to", "an expression (//) that is not linear"),
        ("all_pairs", "i[0] to", "i[0 mod 2] to", "an expression (mod) that is not linear"),
        ("all_pairs", "i[0] to", "i[x - x] to", "unknown name 'x'"),
        ("all_pairs", "i[0] to", "i[0..0] to", ""),
        ("all_pairs", "i[0] to", "i[0..1] to", "single chunks"),
        ("all_pairs", "i[0] to", "i[0]@(rank + 1) to", "single chunks"),
        ("all_pairs", "copy i[0] into o[0]", "copy i[0] into o[0] post a", "more than chunks"),
        ("all_pairs", "to (rank + d) mod n", "to (rank + d) mod n channel n", "the peer"),
        ("all_pairs", "- send i[0] to (rank + d) mod n", "- nop", "messages to later turns"),
        (
            "all_pairs",
            "into o[0]\n      -",
            "into o[0]\n      - clear into i[0]\n      -",
            "nothing",
        ),
        ("one_sided_all_pairs", "", "", "no invariant"),
        ("halving_doubling", "", "", "not a free parameter"),
        ("chain_broadcast", "", "", "no invariant"),
    ],
)
def test_where_there_is_no_argument(name: str, old: str, new: str, reason: str) -> None:
    text = text_of(name)
    assert old in text
    found = induction(text.replace(old, new, 1))
    assert found.proved == (not reason)
    assert reason in found.reason


def test_the_order_of_a_turn_matters() -> None:
    text = text_of("all_pairs")
    send = "          - send i[0] to (rank + d) mod n\n"
    assert send in text
    found = induction(text.replace(send, "") + send)
    assert found.reason.endswith("receives what a later line of the same turn sends")


def test_the_depth_that_is_needed() -> None:
    text = text_of("all_pairs")
    send = "          - send i[0] to (rank + d) mod n\n"
    drop = "          - drop from (rank - d) mod n\n"
    twice = text.replace(send, send + send) + drop
    assert induction(twice, 2).proved
    assert right_at(twice, range(2, 5))
    assert induction(twice, 1).reason == "the argument needs connections of depth 2"


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("c is chunk c of rank 0", "expected a chunk"),
        ("i[0] is chunk c of rank 0", "must be a name"),
        ("i[c] is chunk c of 0", "expected 'rank'"),
        ("i[c] is chunk c of ranks 0", r"expected '\.\.'"),
        ("i[c] is chunk c of rank 0 if", "expected a number"),
        ("i[c] is chunk c of rank 0 , 1", "expected the end"),
    ],
)
def test_a_wrong_invariant_line(line: str, rule: str) -> None:
    text = text_of("ring_all_gather")
    old = "o[c] is chunk 0 of rank c when (rank - c) mod n <= t"
    assert old in text
    with pytest.raises(InputError, match=f"schedule, line 13: .*{rule}"):
        induction(text.replace(old, f"'{line}'"))

"""Schedules by symmetry are judged as they are when they are written out, and so are mutants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from p2smt.collectives.contract import contract
from p2smt.errors import InputError
from p2smt.fabric.fabric_file import load_fabric
from p2smt.schedules.folded import Folded, Permutation, folded, symmetry_of
from p2smt.schedules.language.instance import fold, instantiate
from p2smt.schedules.language.schedule_file import parse_symbolic, read_symbolic
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.by_symmetry import verify_by_symmetry
from p2smt.schedules.verify.report import Kind, Report, Verdict
from p2smt.schedules.verify.verify import verify
from tests.cli.tools import cli
from tests.schedules.folded.files import EXAMPLE, RING, SMALL, TWO_ORBITS
from tests.schedules.mutations import mutants
from tests.tiers import but_the_first


def told_in(text: str) -> Folded:
    return fold(parse_symbolic(text), {})


def written_out(told: Folded) -> Schedule:
    what = told.what
    whole = contract(what.kind, what.ranks, what.chunks, in_place=what.in_place)
    return replace(told.programs, contract=whole, steps=told.told(10_000))


def example(nodes: int, size: int) -> Folded:
    return fold(read_symbolic(str(EXAMPLE)), {"m": nodes, "g": size})


@pytest.mark.parametrize("name", SMALL)
def test_small_ones_are_right_and_so_are_they_written_out(name: str) -> None:
    report, whole = verify_by_symmetry(told_in(SMALL[name])), verify(written_out_of(name))
    assert (report.verdict, report.min_depth) == (whole.verdict, whole.min_depth)
    assert report.verdict is Verdict.VALID


def written_out_of(name: str) -> Schedule:
    found = instantiate(parse_symbolic(SMALL[name]), {})
    assert found == written_out(told_in(SMALL[name]))
    return found


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("name", but_the_first(*SMALL))
def test_a_program_with_a_mistake_is_judged_as_written_out(name: str, depth: int) -> None:
    told = told_in(SMALL[name])
    verdicts = dict.fromkeys(Verdict, 0)
    for kind, change, programs in mutants(told.programs):
        try:
            wrong = folded(told.what, programs, told.generators)
        except InputError:
            continue
        report = verify_by_symmetry(wrong, depth)
        verdicts[report.verdict] += 1
        if report.verdict is not Verdict.UNKNOWN:
            whole = verify(written_out(wrong), depth)
            assert report.verdict is whole.verdict, f"{kind}: {change}: {report}: {whole}"
    assert verdicts[Verdict.INVALID] > verdicts[Verdict.UNKNOWN]


def test_chunks_that_a_generator_takes_elsewhere_are_judged_as_written_out() -> None:
    """Every permutation of four chunks is one of an all-reduce; few make a ring of the program."""
    told, right = told_in(RING), 0
    ranks, nothing = told.generators[0].ranks, np.arange(0)
    for number in range(256):
        chunks = np.array([number >> shift & 3 for shift in (0, 2, 4, 6)])
        if len(set(chunks.tolist())) < 4:
            continue
        try:
            other = folded(
                told.what, told.programs, [symmetry_of(told.what, ranks, chunks, nothing)]
            )
        except InputError:  # in two ways
            continue
        report = verify_by_symmetry(other)
        assert report.verdict is verify(written_out(other)).verdict
        right += report.verdict is Verdict.VALID
    assert right == 1


def test_messages_whose_chunks_turn_round_at_one_end_are_refused() -> None:
    text = (
        SMALL["halving"]
        .replace("buffers", "")
        .replace("receive from 2 into i[2..3]", "receive from 2 into s[0..1]")
    )
    text = text.replace("ranks: 4\n", "ranks: 4\nbuffers: {scratch: 2}\n", 1)
    report = verify_by_symmetry(told_in(text))
    assert report.verdict is Verdict.INVALID
    assert "come in two orders" in report.violations[0].message


def test_a_circle_through_all_ranks_is_a_deadlock() -> None:
    send, add = "        - send i[(4 - t) mod 4] to 1\n", "into i[3 - t]\n"
    assert send in RING
    assert add in RING
    dropped = verify_by_symmetry(told_in(RING.replace(send, "", 1)))
    assert first_kind(dropped) is Kind.UNMATCHED
    told = told_in(RING.replace(send, "", 1).replace(add, add + send, 1))
    report = verify_by_symmetry(told)
    assert first_kind(report) is Kind.DEADLOCK
    assert "wait for each other" in report.violations[0].message
    assert verify(written_out(told)).violations[0].kind is Kind.DEADLOCK


def first_kind(report: Report) -> Kind:
    assert report.verdict is Verdict.INVALID
    return report.violations[0].kind


def test_an_order_that_other_ranks_decide_is_left_open() -> None:
    text = SMALL["two blocks"].replace(" wait for 0.1", "")
    report = verify_by_symmetry(told_in(text))
    assert report.verdict is Verdict.UNKNOWN
    assert "s[0] of rank 0" in report.reason


def test_a_thousand_ranks() -> None:
    report = verify_by_symmetry(told := example(128, 8))
    assert (report.verdict, told.orbits, told.steps) == (Verdict.VALID, 1, 548_864)


@pytest.mark.parametrize(("nodes", "size"), [(2, 2), (3, 2), (2, 4), (4, 3)])
def test_the_example_at_small_sizes_written_out(nodes: int, size: int) -> None:
    assert verify(written_out(example(nodes, size))).verdict is Verdict.VALID


def test_a_fabric_has_the_symmetries_and_the_edges() -> None:
    told = example(2, 8)
    assert verify_by_symmetry(told, fabric=load_fabric("dgx-h100:2")).verdict is Verdict.VALID
    with pytest.raises(InputError, match="is not that of a schedule of 16"):
        verify_by_symmetry(told, fabric=load_fabric("dgx-h100"))
    with pytest.raises(InputError, match="ways between them"):
        verify_by_symmetry(told, fabric=load_fabric("ring:16"))
    ring = load_fabric("ring:4")
    assert verify_by_symmetry(told_in(RING), fabric=ring).verdict is Verdict.VALID
    across = verify_by_symmetry(told_in(TWO_ORBITS), fabric=ring)
    assert first_kind(across) is Kind.PEER
    assert "the fabric has no edge" in across.violations[0].message


REFUSED = {
    "of one orbit": ("shift 2", "shift 1"),
    "is in no orbit": ("ranks: 4\n", "ranks: 6\n", "shift 2", "shift 3"),
    "is no permutation": ("shift 2", "rank // 2"),
    "names rank 4 of 4": ("shift 2", "(0 4)"),
    "names rank 9 of 0 to 3": ("send i[0] to 2", "send i[0] to 9"),
    "names a rank twice": ("shift 2", "(0 2)(2 1)"),
    "must be in runs that divide": ("shift 2", "shift 1 in 3"),
    "in two ways": ("[{ranks: shift 2}]", "[{ranks: (0 2)(1 3)}, {ranks: (1 3)}]"),
    "keep rank 1 and move rank 0": ("shift 2", "(0 2)"),
    "a block of each rank": ("- rank: 1", "- rank: each"),
    "it has a root": ("allreduce", "reduce"),
    "of its own rank": ("send i[0] to 2", "send i[0] to 2 post x"),
    "are alike under a symmetry": ("ranks: 4\n", "ranks: 4\nbuffers: {input: 1}\n"),
    "which has 1 chunks": ("send i[0] to 2", "send i[1] to 2"),
    "have no images": ("ranks: 4\n", "ranks: 4\ninitial: [x = 1]\n"),
}


@pytest.mark.parametrize("rule", REFUSED)
def test_what_is_no_schedule_by_symmetry_is_refused_in_a_line(rule: str) -> None:
    text, changes = TWO_ORBITS, REFUSED[rule]
    for before, after in zip(changes[::2], changes[1::2], strict=True):
        assert before in text
        text = text.replace(before, after, 1)
    with pytest.raises(InputError, match=rule) as caught:
        told_in(text)
    assert str(caught.value).startswith("schedule, line ")
    assert "\n" not in str(caught.value)


def test_a_symmetry_of_the_ranks_that_is_none_of_the_collective() -> None:
    text = SMALL["exchange"].replace("shift 1", "(0 2)", 1)
    with pytest.raises(InputError, match="is none of sendrecv: what rank 0 must end with"):
        told_in(text)


def test_chunks_that_are_no_run_are_refused() -> None:
    text = SMALL["halving"].replace("(0 1)(2 3)", "(1 2)").replace("chunk xor 2", "chunk")
    with pytest.raises(InputError, match="a symmetry does not take it to a run"):
        told_in(text)


def test_products_are_taken_from_right_to_left() -> None:
    turn, swap = (np.array(images) for images in ([1, 2, 0], [1, 0, 2]))
    first, second = (Permutation(one, one, one, one) for one in (turn, swap))
    assert second.after(first).ranks.tolist() == [0, 2, 1]


def test_what_is_too_large_to_list() -> None:
    with pytest.raises(InputError, match="take fewer ranks or chunks"):
        told_in(RING.replace("ranks: 4\n", "ranks: 65536\n"))


def test_the_page_shows_what_is_said_of_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    root = EXAMPLE.parents[1]
    monkeypatch.chdir(root)
    page = (root / "docs" / "verifying.md").read_text()
    asked = "verify examples/hierarchical_all_reduce.yaml --set m=128 --set g=8 --details"
    done = cli(*asked.split())
    assert done.code == 0
    assert f"$ p2smt {asked}\n{done.out}```" in page

"""Families of schedules: every size up to a bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2smt.collectives.contract import contract
from p2smt.errors import InputError, TooLarge
from p2smt.schedules.families.family import prove_family, sizes_of
from p2smt.schedules.language.schedule_file import Symbolic, parse_symbolic, read_symbolic
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span, Step
from p2smt.schedules.verify.report import Verdict

FOLDER = Path(__file__).parents[1] / "symbolic"


def example(name: str) -> Symbolic:
    """One of the example files."""
    return read_symbolic(str(FOLDER / f"{name}.yaml"))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_are_right_at_every_small_size(path: Path) -> None:
    report = prove_family(read_symbolic(str(path)), 6)
    assert report.verdict is Verdict.VALID
    assert {instance.report.verdict for instance in report.instances} == {Verdict.VALID}


@pytest.mark.parametrize(
    ("name", "upto", "sizes"),
    [
        ("ring_all_reduce", 5, [{"n": 2}, {"n": 3}, {"n": 4}, {"n": 5}]),
        ("halving_doubling", 16, [{"k": 1}, {"k": 2}, {"k": 3}, {"k": 4}]),
        ("halving_doubling", 15, [{"k": 1}, {"k": 2}, {"k": 3}]),
        ("chain_broadcast", 2, [{"n": 2, "m": 1}, {"n": 2, "m": 2}]),
    ],
)
def test_the_sizes_up_to_a_bound(name: str, upto: int, sizes: list[dict[str, int]]) -> None:
    assert sizes_of(example(name), upto) == sizes


def test_what_is_claimed_is_said() -> None:
    ring = prove_family(example("ring_all_reduce"), 4)
    assert ring.claims()[0] == "valid (each instance checked): n = 2..4"
    assert ring.claims()[1].startswith("valid (inductive proof, ")
    assert ring.claims()[1].endswith(": all n >= 2")
    halving = prove_family(example("halving_doubling"), 8)
    assert halving.claims()[0] == "valid (each instance checked): k = 1..3"
    assert halving.claims()[1].startswith("nothing is claimed about other sizes: ")
    chain = prove_family(example("chain_broadcast"), 2)
    assert chain.claims()[0].endswith(": n = 2, m = 1; n = 2, m = 2")


def test_the_first_invalid_size_is_the_last() -> None:
    text = (FOLDER / "ring_all_reduce.yaml").read_text()
    text = text.replace("{t: 0..n-2}", "{t: 0..(n if n < 4 else 4) - 2}")
    report = prove_family(parse_symbolic(text), 9)
    assert report.verdict is Verdict.INVALID
    assert [i.report.verdict for i in report.instances] == [Verdict.VALID] * 3 + [Verdict.INVALID]
    assert str(report.instances[-1]) == "n = 5"
    assert not report.induction.proved
    assert report.claims() == (
        "valid (each instance checked): n = 2..4",
        "invalid (each instance checked): n = 5",
    )


def test_a_function_is_a_family_too() -> None:
    def pairs_only(ranks: int) -> Schedule | None:
        if ranks % 2:
            return None
        wanted = contract("broadcast", ranks, 1, in_place=True)
        span = [Span(rank, Buffer.INPUT, 0, 1) for rank in range(ranks)]
        peers = range(1, ranks)
        out = [Step(0, 0, r - 1, "send", 1, (span[0],), send=Connection(0, r, 0)) for r in peers]
        into = [Step(r, 0, 0, "receive", 1, (), (span[r],), Connection(0, r, 0)) for r in peers]
        return Schedule("x", wanted, (Sizes(1, 1, 0),) * ranks, (*out, *into))

    report = prove_family(pairs_only, 6)
    assert [instance.ranks for instance in report.instances] == [2, 4, 6]
    assert report.verdict is Verdict.VALID
    assert report.claims()[0] == "valid (each instance checked): n = 2; n = 4; n = 6"
    assert not report.induction.proved


def test_a_size_without_a_schedule_is_named() -> None:
    text = (FOLDER / "all_pairs.yaml").read_text().replace("i[0] to", "i[0 // (3 - n)] to")
    with pytest.raises(InputError, match=r"^with n = 3: .*line 16: .*divisor"):
        prove_family(parse_symbolic(text), 4)


def test_no_size_in_the_bound() -> None:
    with pytest.raises(InputError, match="no schedule of such a size"):
        prove_family(example("ring_all_reduce"), 1)


def test_too_many_sizes() -> None:
    with pytest.raises(TooLarge, match="more than 1000 sizes"):
        sizes_of(example("ring_all_reduce"), 1002)
    text = (FOLDER / "all_pairs.yaml").read_text().replace("{at_least: 2}", "{}\n  m: {}\n  l: {}")
    with pytest.raises(TooLarge, match="more than 1000 sizes"):
        sizes_of(parse_symbolic(text), 500)

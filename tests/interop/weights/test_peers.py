"""Rules of other tools: who sends what to whom, by hand, and what that takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import pytest

from p2smt.errors import InputError
from p2smt.interop.weights.peers import RULES, compared_rules, rule_names
from p2smt.transfer.answer import ComparedRule
from p2smt.transfer.layouts import Shards, Tensor, WeightLayout
from p2smt.transfer.ports import IN, OUT
from p2smt.transfer.question import TransferQuestion
from tests.transfer.cases import cluster

ROWS = 8
BYTES = 2 * ROWS
CARD, INSIDE = 50 * 10**9, 450 * 10**9


def layout(*holders: Sequence[int]) -> WeightLayout:
    """Rows in equal parts, each on these ranks."""
    step = ROWS // len(holders)
    boxes = tuple((((step * i, step * (i + 1)),), tuple(own)) for i, own in enumerate(holders))
    count = len({rank for own in holders for rank in own})
    return WeightLayout(count, {"w": Tensor("w", (ROWS,))}, {"w": Shards(boxes)})


def taken(
    before: WeightLayout, after: WeightLayout, sources: Sequence[int], targets: Sequence[int]
) -> Mapping[str, Fraction]:
    """By rule, how many times all the bytes its busiest card passes; nodes are of two devices."""
    asked = TransferQuestion(cluster(4, 2), before, after, sources, targets, 2, nominal=True)
    found = compared_rules(asked, tuple(RULES))
    return {one.rule: one.seconds * CARD / BYTES for one in found}


def test_two_replicas_on_nodes_of_their_own() -> None:
    found = taken(layout((0, 1)), layout((0, 1)), [0, 2], [4, 6])
    assert found == {
        "Megatron's planner": 2,  # one data-parallel group: the first owner
        "awex": 1,
        "Alpa's sends": 1,
        "Alpa's broadcasts": 1,
        "NCCL's m2n": 1,
        "gather and broadcast": 1,
        "the first holder": 2,
    }


def test_two_replicas_in_a_node() -> None:
    """m2n brings each of two source shards in by a replica of its own."""
    found = taken(layout((0,), (1,)), layout((0, 1)), [0, 2], [4, 5])
    assert found["NCCL's m2n"] == Fraction(1, 2)
    assert found["Alpa's broadcasts"] == 1
    assert found["the first holder"] == 1
    whole = taken(layout((0,)), layout((0, 1)), [0], [4, 5])
    assert whole["NCCL's m2n"] == 1
    assert whole["the first holder"] == 2


def test_the_planner_goes_round_its_data_parallel_groups() -> None:
    """Ranks 0 and 1 are one copy, 2 and 3 the other; receivers 4 and 5 take the first of them."""
    found = taken(layout((0, 2), (1, 3)), layout((0, 1, 2, 3)), range(4), range(4, 8))
    assert found["Megatron's planner"] == 1
    assert found["the first holder"] == 2


def test_a_receiver_takes_its_own_copy_of_the_model() -> None:
    """It holds a half, and the other half is that of the holder beside it, inside the node."""
    found = taken(layout((0, 2), (1, 3)), layout((0, 1)), range(4), [2, 3])
    assert found["Megatron's planner"] == Fraction(CARD, 2 * INSIDE)
    assert found["the first holder"] == Fraction(1, 2)


def test_runs_of_nodes_for_fewer_replicas() -> None:
    """One source serves three nodes along a chain: it sends once."""
    found = taken(layout((0,)), layout((0, 1, 2)), [0], [2, 4, 6])
    assert found["NCCL's m2n"] == 1
    assert found["awex"] == 3


def test_roots_send_one_after_the_other() -> None:
    both = WeightLayout(
        2,
        {name: Tensor(name, (ROWS,)) for name in "vw"},
        {name: Shards(((((0, ROWS),), (rank,)),)) for rank, name in enumerate("vw")},
    )
    after = WeightLayout(1, both.tensors, {name: Shards(((((0, ROWS),), (0,)),)) for name in "vw"})
    found = taken(both, after, [0, 2], [4])
    assert found["gather and broadcast"] == found["awex"] == 2
    apart = WeightLayout(
        2, both.tensors, {n: Shards(((((0, ROWS),), (r,)),)) for r, n in enumerate("vw")}
    )
    found = taken(both, apart, [0, 2], [4, 6])
    assert found["gather and broadcast"] == 2
    assert found["awex"] == 1


def test_what_binds_is_a_port() -> None:
    asked = TransferQuestion(
        cluster(4, 2), layout((0,)), layout((0, 1)), [0], [4, 6], 2, nominal=True
    )
    (found,) = compared_rules(asked, ("first",))
    assert found.port is not None
    assert (found.port.entity, found.port.number, found.port.way) == (0, 0, OUT)
    (found,) = compared_rules(asked, ("awex",))
    assert found.port is not None
    assert found.port.way in (IN, OUT)


def test_nothing_moves() -> None:
    same = layout((0, 1))
    asked = TransferQuestion(cluster(4, 2), same, same, [0, 1], [0, 1], 2)
    assert compared_rules(asked, ("awex",)) == (ComparedRule("awex", Fraction(0), None),)


@pytest.mark.parametrize(
    ("text", "said"),
    [("meganton", "did you mean"), ("awex,awex", "is there twice"), ("", "is none of")],
)
def test_unknown_rules_are_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        rule_names(text, "rules")


def test_a_gatherer_sends_whole_tensors() -> None:
    """To who needs a half, too, so that two tensors are two steps where others go in one."""
    both = {name: Tensor(name, (ROWS,)) for name in "vw"}
    whole, half = ((0, ROWS),), ROWS // 2
    halves = Shards(((((0, half),), (0,)), (((half, ROWS),), (1,))))
    before = WeightLayout(1, both, dict.fromkeys("vw", Shards(((whole, (0,)),))))
    after = WeightLayout(2, both, {"v": Shards(((whole, (0,)),)), "w": halves})
    for cap, more in ((2 * BYTES, 0), (BYTES + BYTES // 2, 1)):
        places = before, after, [0], [1, 4]
        asked = TransferQuestion(cluster(4, 2), *places, 2, nominal=True, memory_bytes=cap)
        found = compared_rules(asked, ("gather", "first"))
        assert found[0].seconds == Fraction(BYTES, CARD) + more * Fraction(BYTES, INSIDE)
        assert found[1].seconds == Fraction(BYTES, 2 * CARD)


def test_under_a_cap_tensors_go_in_order() -> None:
    """Two senders that would work at once work one after the other, unless the cap has room."""
    both = {name: Tensor(name, (ROWS,)) for name in "vw"}
    before = WeightLayout(2, both, {n: Shards(((((0, ROWS),), (r,)),)) for r, n in enumerate("vw")})
    after = WeightLayout(2, both, {n: Shards(((((0, ROWS),), (0, 1)),)) for n in "vw"})
    places = before, after, [0, 2], [4, 6]
    for cap, wanted in ((None, 2), (2 * BYTES, 2), (2 * BYTES - 1, 4), (1, 4)):
        asked = TransferQuestion(cluster(4, 2), *places, 2, nominal=True, memory_bytes=cap)
        (found,) = compared_rules(asked, ("first",))
        assert found.seconds * CARD / BYTES == wanted

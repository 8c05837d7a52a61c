"""The interpreter of orders: what it computes, and the orders that it refuses."""

from __future__ import annotations

from collections import Counter

import pytest

from p2smt.collectives import contract as contracts
from p2smt.collectives.contract import Contribution
from p2smt.schedules.model import Connection, Schedule, StepRef
from p2smt.schedules.races.replay import ImpossibleOrder, ItemKind, OrderItem, replay
from tests.schedules.building import Blocks, at


def exchange() -> Schedule:
    """Two ranks send their chunk (steps 0, 1), copy (2, 3), and add what comes (4, 5)."""
    blocks = Blocks()
    for rank in (0, 1):
        blocks.send(rank, 0, 1 - rank, "i0")
    copies = [blocks.copy(rank, 1, "i0", "o0") for rank in (0, 1)]
    for rank in (0, 1):
        blocks.receive("rrc", rank, 2, 1 - rank, "o0", waits=(copies[rank],))
    return blocks.schedule("exchange", contracts.contract("allreduce", 2, 1, in_place=False))


def whole(*steps: int) -> list[OrderItem]:
    return [OrderItem(step) for step in steps]


def test_goals_are_met() -> None:
    shown = replay(exchange(), whole(0, 1, 2, 3, 4, 5))
    assert shown.executed == (0, 1, 2, 3, 4, 5)
    assert list(shown.wrong(exchange())) == []
    both = Counter({Contribution(0, 0): 1, Contribution(1, 0): 1})
    assert shown.goals == {(0, 0): both, (1, 0): both}


def test_a_beginning_of_an_order_can_be_shown() -> None:
    shown = replay(exchange(), whole(2))
    assert shown.goals[0, 0] == Counter({Contribution(0, 0): 1})
    assert shown.goals[1, 0] == Counter({"o[0] of rank 1": 1})


def test_reads_and_writes_take_effect_where_they_stand() -> None:
    blocks = Blocks()
    blocks.copy(0, 0, "i0", "o0")
    blocks.reduce(0, 1, "i1", "o0")
    blocks.reduce(0, 2, "i2", "o0")
    starts = (tuple(Contribution(0, c) for c in range(3)),)
    goal = contracts.Goal(0, 0, starts[0])
    schedule = blocks.schedule("lost", contracts.Contract("custom", starts, (goal,)))
    read = [OrderItem(1, ItemKind.READ, 0, k) for k in (0, 1)]
    order = [*whole(0), *read, *whole(2), OrderItem(1, ItemKind.WRITE)]
    assert list(replay(schedule, whole(0, 1, 2)).wrong(schedule)) == []
    lost = replay(schedule, order).goals[0, 0]
    assert lost == Counter({Contribution(0, 0): 1, Contribution(0, 1): 1})


def test_in_place_input_and_output_are_one() -> None:
    blocks = Blocks()
    blocks.send(0, 0, 1, "i0")
    blocks.receive("r", 1, 0, 0, "o0")
    schedule = blocks.schedule("gather", contracts.contract("allgather", 2, 1, in_place=True))
    shown = replay(schedule, whole(0, 1))
    assert shown.goals[1, 0] == Counter({Contribution(0, 0): 1})
    assert shown.goals[1, 1] == Counter({Contribution(1, 0): 1})
    assert shown.goals[0, 1] == Counter({"o[1] of rank 0": 1})


def test_starts_and_ends_have_a_place() -> None:
    """Steps 2, 3 are the starts, 4, 5 the ends of ranks 0 and 1."""
    blocks = Blocks()
    blocks.add(1, 0, "get", reads=(at("i0", 0),), writes=(at("o0", 1),))
    blocks.add(1, 1, "put", reads=(at("i0", 1),), writes=(at("o0", 0),))
    contract = contracts.contract("allreduce", 2, 1, in_place=False)
    schedule = blocks.schedule("remote", contract)
    early = replay(schedule, whole(0, 2, 4, 1)).goals
    assert early[1, 0] == Counter({"i[0] of rank 0": 1})
    assert early[0, 0] == Counter({"o[0] of rank 0": 1})
    late = replay(schedule, whole(2, 0, 1, 4)).goals
    assert late[1, 0] == Counter({Contribution(0, 0): 1})
    assert late[0, 0] == Counter({Contribution(1, 0): 1})


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (whole(4), "comes after"),
        (whole(2, 4), "without its message"),
        (whole(0, 0), "twice"),
        ([OrderItem(0, ItemKind.WRITE)], "not an access"),
        ([OrderItem(2, ItemKind.WRITE)], "before the reads"),
        ([OrderItem(2, ItemKind.READ), OrderItem(2, ItemKind.READ)], "twice"),
        (whole(8), "ends before"),
        (whole(0, 6), "comes after"),
    ],
)
def test_impossible_orders_are_refused(order: list[OrderItem], message: str) -> None:
    with pytest.raises(ImpossibleOrder, match=message):
        replay(exchange(), order)


def test_connections_hold_as_many_messages_as_they_hold() -> None:
    blocks = Blocks()
    for _ in range(2):
        blocks.send(0, 0, 1, "i0")
    for _ in range(2):
        blocks.receive("r", 1, 0, 0, "o0")
    schedule = blocks.schedule("two", contracts.contract("broadcast", 2, 1, in_place=False))
    assert replay(schedule, whole(0, 1, 2, 3)).executed == (0, 1, 2, 3)
    with pytest.raises(ImpossibleOrder, match="room"):
        replay(schedule, whole(0, 1, 2, 3), depth=1)
    assert replay(schedule, whole(0, 2, 1, 3), depth=1).executed == (0, 2, 1, 3)


def test_signals_packets_and_barriers_are_waited_for() -> None:
    blocks = Blocks()
    blocks.add(0, 0, "post", count=0, posts=("c",))
    blocks.add(0, 1, "wait", count=0, awaits=("c",))
    blocks.add(0, 2, "ppkt", reads=(at("i0", 0),), writes=(at("s0", 0, packet=True),))
    blocks.add(0, 3, "upkt", reads=(at("s0", 0, packet=True),), writes=(at("o0", 0),))
    blocks.add(0, 4, "barrier", count=0, barrier="b")
    blocks.add(0, 5, "barrier", count=0, barrier="b")
    blocks.add(0, 5, "nop", count=0)
    schedule = blocks.schedule("all", contracts.contract("allreduce", 1, 1, in_place=False), 1)
    assert list(replay(schedule, whole(0, 1, 2, 3, 5, 4, 6)).wrong(schedule)) == []
    for order, what in (((1,), "signal"), ((3,), "packet"), ((5, 6), "comes after")):
        with pytest.raises(ImpossibleOrder, match=what):
            replay(schedule, whole(*order))
    with pytest.raises(ImpossibleOrder, match="ends before"):
        replay(schedule, whole(0, 1, 2, 3, 5, 8))


def test_messages_are_taken_in_order() -> None:
    blocks = Blocks()
    blocks.send(0, 0, 1, "i0")
    blocks.send(0, 0, 1, "i1")
    way = Connection(0, 1, 0)
    for chunk in (0, 1):
        blocks.add(1, 0, "r", receive=way, writes=(at(f"o{chunk}", 1),))
    blocks.add(1, 1, "nop", count=0, waits=(StepRef(0, 1),))
    schedule = blocks.schedule("fifo", contracts.contract("broadcast", 2, 2, in_place=False))
    goals = replay(schedule, whole(0, 1, 2, 3, 4)).goals
    assert [goals[1, c] for c in (0, 1)] == [Counter({Contribution(0, c): 1}) for c in (0, 1)]

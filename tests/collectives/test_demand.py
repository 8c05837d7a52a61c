"""Demands expanded to sets, against the contract of each request and against other demands."""

from __future__ import annotations

import pytest

from p2smt.collectives.contract import RULES, request_contract
from p2smt.collectives.demand import Chunks, Demand, Givers, Held, demand_of
from p2smt.collectives.names import COLLECTIVES, DIRECT, MSCCL_NAMES, RequestKind
from p2smt.errors import InputError
from p2smt.problems.placement import InstructionSet, ProgramProblem
from p2smt.programs import semantics

K = 3
START = Held(Chunks.EVERY, Givers.OWN)
Part = tuple[int, int]
"""(chunk, contributor)."""


def parts(held: Held, device: int) -> set[Part]:
    """What a device holds; of one chunk each, the one of its number."""
    chunks = range(K) if held.chunks is Chunks.EVERY else [device]
    givers = {
        Givers.EVERY: range(K),
        Givers.OWN: range(device, device + 1),
        Givers.BEFORE: range(max(0, device - 1), device),
    }[held.givers]
    return {(chunk, giver) for chunk in chunks for giver in givers}


def asked(kind: RequestKind) -> list[set[Part]]:
    """What each member holds when its contract is met, as (chunk, contributor).

    Buffers have K chunks or one.  The data of an all-gather counts as complete: it may be the sum
    of anything.
    """
    row = K if kind is RequestKind.SEND else 1
    wanted = request_contract(kind, [tuple(range(K))], row, range(K), in_place=False)
    found: list[set[Part]] = [set() for _ in range(K)]
    for goal in wanted.goals:
        for part in goal.parts:
            if kind is RequestKind.ALL_GATHER:
                found[goal.rank] |= {(part.rank, giver) for giver in range(K)}
            else:
                found[goal.rank].add((part.chunk, part.rank))
    return found


@pytest.mark.parametrize("kind", list(RequestKind))
def test_demands_and_contracts_ask_the_same(kind: RequestKind) -> None:
    goal = demand_of(kind).goal
    assert [parts(goal, device) for device in range(K)] == asked(kind)


@pytest.mark.parametrize("kind", list(RequestKind))
def test_what_is_added_up_is_added_in_the_contract(kind: RequestKind) -> None:
    demand = demand_of(kind)
    apart = demand.start.givers is Givers.OWN and demand.goal.givers is Givers.EVERY
    wanted = request_contract(kind, [tuple(range(K))], 1, range(K), in_place=False)
    assert any(len(goal.parts) > 1 for goal in wanted.goals) is (apart and demand.goal.summed)


def test_programs_are_for_requests_with_a_collective_of_their_own() -> None:
    assert {kind for kind in RequestKind if kind.has_programs} == set(DIRECT)


def test_a_send_is_refused_and_only_an_all_to_all_has_exchanges() -> None:
    demand = demand_of(RequestKind.SEND)
    with pytest.raises(InputError, match="request send: has one fixed step"):
        ProgramProblem(demand, (2,), 1, InstructionSet.of(1))
    for kind in RequestKind:
        only = kind is RequestKind.ALL_TO_ALL
        assert (kind.has_exchanges, demand_of(kind).has_exchanges) == (only, only)


@pytest.mark.parametrize("kind", [RequestKind.ALL_TO_ALL, RequestKind.SEND])
def test_the_others_have_no_state_matrices(kind: RequestKind) -> None:
    demand = demand_of(kind)
    with pytest.raises(InputError, match="no state matrices"):
        semantics.initial_state(demand, 2)


@pytest.mark.parametrize(
    "start",
    [
        Held(Chunks.ONE_EACH, Givers.EVERY),
        Held(Chunks.EVERY, Givers.BEFORE),
        Held(Chunks.EVERY, Givers.OWN, summed=False),
    ],
)
def test_a_start_is_a_state(start: Held) -> None:
    with pytest.raises(InputError, match="a start with"):
        Demand(start, START)


def test_a_demand_of_no_request_is_described() -> None:
    other = Demand(START, Held(Chunks.OWN, Givers.EVERY))
    assert str(other) == (
        "from every chunk, of its own to the chunk of its own number, of every device"
    )
    assert not other.has_programs


def test_every_name_has_a_rule() -> None:
    assert set(RULES) == set(COLLECTIVES) > set(MSCCL_NAMES)

"""The fewest steps after which some goal chunk is final and wrong, by trying every interleaving."""

from __future__ import annotations

from collections.abc import Iterator

from p2smt.schedules.model import Buffer, Schedule
from tests.schedules.oracles.events import Event, State, Wrong, enabled, happen, initial_state
from tests.schedules.oracles.interleavings import TooBig
from tests.schedules.oracles.machine import Machine, compile_schedule


def shortest_wrong(schedule: Schedule, depth: int = 8, limit: int = 50_000) -> int | None:
    """Steps begun in the cheapest state that shows a wrong goal; None if no interleaving does.

    A goal's chunk is final once everything that ever writes it has, or its rank's end reads it.

    Raises:
        TooBig: more than ``limit`` states.
    """
    machine = compile_schedule(schedule)
    first = initial_state(machine)
    seen, todo, best = {first}, [first], None
    while todo:
        state = todo.pop()
        if _shows_wrong(machine, schedule, state):
            cost = _begun(schedule, state)
            best = cost if best is None else min(best, cost)
        for event in enabled(machine, state, depth):
            later = _after(machine, state, event)
            if later is not None and later not in seen:
                seen.add(later)
                todo.append(later)
        if len(seen) > limit:
            raise TooBig(f"more than {limit} states")
    return best


def _after(machine: Machine, state: State, event: Event) -> State | None:
    try:
        return happen(machine, state, event)
    except Wrong:
        return None  # the end of a rank with a wrong goal, which the state before shows


def _begun(schedule: Schedule, state: State) -> int:
    steps = state.records[schedule.ranks : schedule.ranks + len(schedule.steps)]
    return sum(record != 0 for record in steps)


def _shows_wrong(machine: Machine, schedule: Schedule, state: State) -> bool:
    return any(_wrong_goals(machine, schedule, state))


def _wrong_goals(machine: Machine, schedule: Schedule, state: State) -> Iterator[bool]:
    ends = schedule.ranks + len(schedule.steps)
    places = [0] * schedule.ranks
    for goal in schedule.contract.goals:
        place = places[goal.rank]
        places[goal.rank] += 1
        wanted = machine.values.of(goal.multiset())
        record = state.records[ends + goal.rank]
        if isinstance(record, tuple) and record[place][1]:
            yield record[place][0] != wanted
        cell = machine.cell_of(schedule.contract, goal.rank, Buffer.OUTPUT, goal.chunk)
        assert cell is not None
        if record == 0 and not _to_come(machine, state, cell):
            yield state.cells[cell] != wanted


def _to_come(machine: Machine, state: State, cell: int) -> bool:
    """Whether a write of a cell has not happened."""
    for operation, record in zip(machine.operations, state.records, strict=True):
        for j, position in enumerate(operation.positions):
            for k, target in enumerate(position.writes):
                written = record == 1 or (isinstance(record, tuple) and record[j][2] >> k & 1)
                if target == cell and not written:
                    return True
    return False

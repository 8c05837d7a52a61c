"""Exhaustive oracle: runs a small schedule in every interleaving of its atomic events.

The states form a graph without cycles (every event is progress), searched depth first; a state
that was seen is not searched again.  Where some event is *safe*, only that one is tried first:

    e is safe in a state if no run from there that leaves e out has an event that conflicts with e
    (touches the same cell, one of both writing; pushes to, or sets room aside on, the same
    connection; takes from the same connection or the same counter).

Then {e} is a persistent set (P. Godefroid, Partial-Order Methods for the Verification of
Concurrent Systems, 1996, chapter 4): every run from the state is, up to swapping neighbours that
do not conflict, a run that starts with e, so the same final states, the same deadlocks and the
same values read are found.  Whether another operation's conflicting event can come first is
decided on the safe side, by :func:`_possible`: a run in which nothing that exists is ever used
up, counted per operation, and e never happens.  Things that only ever help (a counter raised, a
message pushed behind others, room made, a flag set, a barrier reached) do not conflict.

Schedules with relaxed signals are split first (:mod:`tests.schedules.oracles.relaxed`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from p2smt.schedules.model import Schedule
from tests.schedules.oracles.events import (
    Event,
    State,
    Wrong,
    complete_mask,
    enabled,
    happen,
    initial_state,
)
from tests.schedules.oracles.machine import Machine, Operation, bits, compile_schedule
from tests.schedules.oracles.relaxed import relax


class TooBig(Exception):
    """More states than the limit."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether every interleaving is right; if not, why, and one that is wrong, as text."""

    right: bool
    reasons: frozenset[str] = frozenset()
    witness: tuple[str, ...] = ()
    states: int = 0


def explore(
    schedule: Schedule, depth: int = 8, limit: int = 20_000, *, reduced: bool = True
) -> Answer:
    """Try every interleaving; stop at the first that is wrong.

    Args:
        depth: messages that a connection holds.
        limit: states to visit at most.
        reduced: try safe events alone; False tries every event in every state.

    Raises:
        TooBig: more than ``limit`` states would be visited.
    """
    machine = compile_schedule(schedule)
    if machine.broken:
        return Answer(False, machine.broken)
    if any(step.relaxed for step in schedule.steps):
        relax(machine, schedule)
    return _search(machine, depth, limit, reduced=reduced)


def _search(machine: Machine, depth: int, limit: int, *, reduced: bool) -> Answer:
    first = initial_state(machine)
    seen = {first}
    visited = 1
    path: list[Event] = []
    stack = [iter(_choices(machine, first, depth, reduced=reduced))]
    states = [first]
    try:
        while stack:
            event = next(stack[-1], None)
            if event is None:
                stack.pop()
                states.pop()
                if path:
                    path.pop()
                continue
            path.append(event)
            state = happen(machine, states[-1], event)
            if state in seen:
                path.pop()
                continue
            seen.add(state)
            visited += 1
            if visited > limit:
                raise TooBig(f"more than {limit} states")
            states.append(state)
            stack.append(iter(_choices(machine, state, depth, reduced=reduced)))
    except Wrong as wrong:
        return Answer(False, _reasons(wrong), _witness(machine, path), visited)
    return Answer(True, states=visited)


def _reasons(wrong: Wrong) -> frozenset[str]:
    return frozenset(str(reason) for reason in wrong.args)


def _witness(machine: Machine, path: list[Event]) -> tuple[str, ...]:
    return tuple(
        f"{machine.operations[e.operation].label}: {e.what} {e.position}.{e.span}" for e in path
    )


def _choices(machine: Machine, state: State, depth: int, *, reduced: bool) -> list[Event]:
    """The events to try; raises Wrong in a final state that is wrong."""
    events = list(enabled(machine, state, depth))
    if not events:
        _check_final(machine, state)
    safe = (event for event in events if reduced and _safe(machine, state, event))
    event = next(safe, None)
    return events if event is None else [event]


def _check_final(machine: Machine, state: State) -> None:
    if any(record != 1 for record in state.records):
        raise Wrong("deadlock")
    reasons = []
    if any(messages for _, messages in state.queues):
        reasons.append("leftover message")
    for name, counter in machine.counters.items():
        above = state.counters[counter] > machine.initial.get(name, 0)
        if above and not name.startswith("semaphore"):
            reasons.append("leftover signal")
    if reasons:
        raise Wrong(*reasons)


def _safe(machine: Machine, state: State, event: Event) -> bool:
    """Whether no run without the event has one that conflicts with it."""
    n = event.operation
    rivals = [m for m in _rivals(machine, state, event) if not machine.operations[n].after >> m & 1]
    if not rivals:
        return True
    if n in rivals:
        return False
    possible = _possible(machine, state, event)
    return not any(possible >> m & 1 for m in rivals)


def _rivals(machine: Machine, state: State, event: Event) -> Iterator[int]:
    """Operations with a pending event that conflicts."""
    operation = machine.operations[event.operation]
    for m, record in enumerate(state.records):
        other = machine.operations[m]
        if record == 1 or (m == event.operation and event.what in ("start", "complete")):
            continue
        match event.what:
            case "start":
                conflict = record == 0 and _share(operation, other)
            case "complete":
                conflict = operation.send is not None and other.send == operation.send
            case _:
                conflict = _touches(machine, state, event, m)
        if conflict:
            yield m


def _share(one: Operation, other: Operation) -> bool:
    counters = dict(one.takes + one.owes).keys() & dict(other.takes + other.owes).keys()
    receive = one.receive is not None and one.receive == other.receive
    send = one.send is not None and one.send == other.send
    return bool(counters) or receive or send


def _touches(machine: Machine, state: State, event: Event, m: int) -> bool:
    """Whether operation m still has a read or write that conflicts with a read or write."""
    position = machine.operations[event.operation].positions[event.position]
    writing = event.what == "write"
    cell = (position.writes if writing else position.reads)[event.span]
    record = state.records[m]
    for j, place in enumerate(machine.operations[m].positions):
        read, written = (0, 0) if isinstance(record, int) else record[j][1:]
        later = m == event.operation and j == event.position and not writing
        for k, target in enumerate(place.writes):
            own = m == event.operation and (event.position, event.span) == (j, k) and writing
            if target == cell and not written >> k & 1 and not own and not later:
                return True
        if writing:
            for k, source in enumerate(place.reads):
                if source == cell and not read >> k & 1:
                    return True
    return False


def _possible(machine: Machine, state: State, event: Event) -> int:
    """Mask of operations that may have an event before ``event`` happens, at least."""
    done = complete_mask(state)
    blocked = event.operation
    running = {n for n, record in enumerate(state.records) if isinstance(record, tuple)}
    alive, may_end = set(running), set(bits(done))
    changed = True
    while changed:
        changed = False
        for n, record in enumerate(state.records):
            if n == blocked or record == 1:
                continue
            if n not in alive and _may_start(machine, state, event, n, alive, may_end):
                alive.add(n)
                changed = True
            if n in alive and n not in may_end and _may_end(machine, state, n, alive):
                may_end.add(n)
                changed = True
    return sum(1 << n for n in alive)


def _may_end(machine: Machine, state: State, n: int, alive: set[int]) -> bool:
    group = bits(machine.operations[n].together)
    return all(m in alive or state.records[m] != 0 for m in group)


def _may_start(
    machine: Machine, state: State, event: Event, n: int, alive: set[int], may_end: set[int]
) -> bool:
    operation = machine.operations[n]
    if not all(m in may_end for m in bits(operation.before)):
        return False
    earlier = [m for m in (*bits(operation.first), n) if state.records[m] == 0]
    new = [m for m in may_end if state.records[m] != 1]
    if operation.receive is not None:
        sent = sum(machine.operations[m].send == operation.receive for m in new)
        there = sent + len(state.queues[operation.receive][1])
        if there < sum(machine.operations[m].receive == operation.receive for m in earlier):
            return False
    for counter, _ in operation.takes:
        posted = sum(machine.operations[m].posts.count(counter) for m in new)
        needed = sum(_taken(machine.operations[m], counter) for m in earlier)
        if state.counters[counter] + posted < needed:
            return False
    return all(
        state.flags >> cell & 1 or _may_flag(machine, event, cell, alive)
        for cell in operation.needs
    )


def _taken(operation: Operation, counter: int) -> int:
    return dict(operation.takes + operation.owes).get(counter, 0)


def _may_flag(machine: Machine, event: Event, cell: int, alive: set[int]) -> bool:
    """Whether a packet may be written to a cell without the event."""
    for m in alive:
        if cell in machine.operations[m].marks and (m != event.operation or event.what != "write"):
            return True
        if m == event.operation and event.what == "write":
            position = machine.operations[m].positions[event.position]
            own = position.writes[event.span]
            if cell in machine.operations[m].marks and cell != own:
                return True
    return False

"""The atomic events of a machine: which can happen now, and what they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.schedules.oracles.machine import Machine, Operation, bits

Progress = tuple[int, int, int]  # sum so far, mask of sources read, mask of destinations written
Record = int | tuple[Progress, ...]  # 0: not started, 1: complete, else progress per position
Queue = tuple[int, tuple[tuple[int, ...], ...]]  # slots set aside, messages


class State(NamedTuple):
    """Everything that an interleaving can change."""

    records: tuple[Record, ...]
    cells: tuple[int, ...]
    flags: int
    queues: tuple[Queue, ...]
    counters: tuple[int, ...]


class Event(NamedTuple):
    """``what`` is start, read, write or complete; position and number of source or destination."""

    operation: int
    what: str
    position: int = 0
    span: int = 0


class Wrong(Exception):
    """An event shows that the schedule is wrong."""


def initial_state(machine: Machine) -> State:
    """Nothing started, nothing initialised."""
    counters = sorted(machine.counters, key=lambda name: machine.counters[name])
    return State(
        (0,) * len(machine.operations),
        (0,) * len(machine.cells),
        0,
        ((0, ()),) * len(machine.connections),
        tuple(machine.initial.get(name, 0) for name in counters),
    )


def complete_mask(state: State) -> int:
    """The operations that are complete."""
    return sum(1 << n for n, record in enumerate(state.records) if record == 1)


def enabled(machine: Machine, state: State, depth: int) -> Iterator[Event]:
    """All events that can happen now."""
    done = complete_mask(state)
    for n, record in enumerate(state.records):
        operation = machine.operations[n]
        if record == 0:
            if not operation.before & ~done and _ready(operation, state, depth):
                yield Event(n, "start")
        elif isinstance(record, tuple):
            yield from _inside(state, n, operation, record)


def _ready(operation: Operation, state: State, depth: int) -> bool:
    if operation.receive is not None and not state.queues[operation.receive][1]:
        return False
    if operation.send is not None:
        aside, messages = state.queues[operation.send]
        if aside + len(messages) >= depth:
            return False
    if any(state.counters[counter] < n for counter, n in operation.takes):
        return False
    return all(state.flags >> cell & 1 for cell in operation.needs)


def _inside(
    state: State, n: int, operation: Operation, record: tuple[Progress, ...]
) -> Iterator[Event]:
    finished = True
    for j, (_, read, written) in enumerate(record):
        position = operation.positions[j]
        if read + 1 < 1 << len(position.reads):
            finished = False
            for k in range(len(position.reads)):
                if not read >> k & 1:
                    yield Event(n, "read", j, k)
        elif written + 1 < 1 << len(position.writes):
            finished = False
            for k in range(len(position.writes)):
                if not written >> k & 1:
                    yield Event(n, "write", j, k)
    if finished and all(state.records[m] != 0 for m in bits(operation.together)):
        yield Event(n, "complete")


def happen(machine: Machine, state: State, event: Event) -> State:
    """The state after an event.

    Raises:
        Wrong: it takes a message of another length, or reads a goal that is not met.
    """
    operation = machine.operations[event.operation]
    match event.what:
        case "start":
            return _start(machine, state, event.operation, operation)
        case "read":
            return _read(machine, state, event, operation)
        case "write":
            return _write(state, event, operation)
        case _:
            return _complete(machine, state, event.operation, operation)


def _with_record(state: State, n: int, record: Record) -> tuple[Record, ...]:
    return (*state.records[:n], record, *state.records[n + 1 :])


def _start(machine: Machine, state: State, n: int, operation: Operation) -> State:
    sums = [position.initial for position in operation.positions]
    queues = list(state.queues)
    if operation.receive is not None:
        aside, messages = queues[operation.receive]
        if len(messages[0]) != len(sums):
            raise Wrong("count")
        sums = [machine.values.add(a, b) for a, b in zip(sums, messages[0], strict=True)]
        queues[operation.receive] = (aside + 1, messages[1:])
    if operation.send is not None:
        aside, messages = queues[operation.send]
        queues[operation.send] = (aside + 1, messages)
    counters = list(state.counters)
    for counter, number in operation.takes + operation.owes:
        counters[counter] -= number
    record = tuple((value, 0, 0) for value in sums)
    records = _with_record(state, n, record)
    return State(records, state.cells, state.flags, tuple(queues), tuple(counters))


def _replace(record: Record, j: int, progress: Progress) -> Record:
    assert isinstance(record, tuple)
    return (*record[:j], progress, *record[j + 1 :])


def _progress(state: State, event: Event) -> Progress:
    record = state.records[event.operation]
    assert isinstance(record, tuple)
    return record[event.position]


def _read(machine: Machine, state: State, event: Event, operation: Operation) -> State:
    value, read, written = _progress(state, event)
    source = operation.positions[event.position].reads[event.span]
    progress = (machine.values.add(value, state.cells[source]), read | 1 << event.span, written)
    record = _replace(state.records[event.operation], event.position, progress)
    return state._replace(records=_with_record(state, event.operation, record))


def _write(state: State, event: Event, operation: Operation) -> State:
    value, read, written = _progress(state, event)
    target = operation.positions[event.position].writes[event.span]
    progress = (value, read, written | 1 << event.span)
    record = _replace(state.records[event.operation], event.position, progress)
    cells = (*state.cells[:target], value, *state.cells[target + 1 :])
    flags = state.flags | (1 << target if target in operation.marks else 0)
    records = _with_record(state, event.operation, record)
    return state._replace(records=records, cells=cells, flags=flags)


def _complete(machine: Machine, state: State, n: int, operation: Operation) -> State:
    record = state.records[n]
    assert isinstance(record, tuple)
    for position, (value, _, _) in zip(operation.positions, record, strict=True):
        if position.expect is not None and position.expect != value:
            expected = machine.values.text(position.expect)
            raise Wrong(f"value: {machine.values.text(value)} instead of {expected}")
    queues, counters = list(state.queues), list(state.counters)
    if operation.receive is not None:
        aside, messages = queues[operation.receive]
        queues[operation.receive] = (aside - 1, messages)
    if operation.send is not None:
        aside, messages = queues[operation.send]
        message = tuple(value for value, _, _ in record)
        queues[operation.send] = (aside - 1, (*messages, message))
    for counter in operation.posts:
        counters[counter] += 1
    return State(
        _with_record(state, n, 1), state.cells, state.flags, tuple(queues), tuple(counters)
    )

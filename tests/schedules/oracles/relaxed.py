"""Relaxed signals in the exhaustive oracle: every step becomes two operations.

The *control* operation has the step's place in the order, its messages (without content), posts,
awaits and barrier, and touches no data.  The *data* operation comes after it and does the reads
and writes; it is ordered by everything but relaxed signals.  So control can run ahead of data
along a relaxed signal, and what was written before such a signal may be seen after it, or later.
The start of a rank comes before both: its input was there before anything was signalled.

Data operations have counters of their own: there, an ordinary post counts when the data before it
is written, a relaxed one as soon as it is posted; an ordinary await waits for as many posts as
there were awaits before it and itself, and a relaxed one only counts (``owes``).  Where blocks
compete for the tokens of a counter, control and data could decide differently, so this finds at
least what can go wrong.
"""

from __future__ import annotations

from dataclasses import replace

from p2smt.schedules.model import Schedule
from tests.schedules.oracles.machine import Machine, bits, close


def relax(machine: Machine, schedule: Schedule) -> None:
    """Split the steps of a compiled schedule that has relaxed ones."""
    copies = {n: _copy_counter(machine, name) for name, n in list(machine.counters.items())}
    ways = {n: _copy_connection(machine, n) for n in range(len(machine.connections))}
    ranks, steps = schedule.ranks, len(schedule.steps)
    moved = {ranks + k: 2 * ranks + steps + k for k in range(steps)}
    for (n, later), step in zip(moved.items(), schedule.steps, strict=True):
        operation = machine.operations[n]
        takes = tuple((copies[counter], k) for counter, k in operation.takes)
        posts = tuple(copies[counter] for counter in operation.posts)
        control = replace(
            operation,
            label=f"{operation.label} (control)",
            positions=(),
            marks=frozenset(),
            before=_move(operation.before, moved),
            together=_move(operation.together, moved),
            receive=None if operation.receive is None else ways[operation.receive],
            send=None if operation.send is None else ways[operation.send],
            posts=operation.posts + posts * step.relaxed,
            owes=takes * step.relaxed,
        )
        machine.operations.append(control)
        machine.operations[n] = replace(
            operation,
            before=operation.before | 1 << later,
            takes=takes * (not step.relaxed),
            posts=posts * (not step.relaxed),
        )
    close(machine.operations)


def _move(mask: int, moved: dict[int, int]) -> int:
    return sum(1 << moved.get(n, n) for n in bits(mask))


def _copy_counter(machine: Machine, name: str) -> int:
    copy = f"semaphore for the data of {name}"
    machine.initial[copy] = machine.initial.get(name, 0)
    return machine.counters.setdefault(copy, len(machine.counters))


def _copy_connection(machine: Machine, number: int) -> int:
    way = next(way for way, n in machine.connections.items() if n == number)
    copy = way._replace(channel=-1 - way.channel)
    return machine.connections.setdefault(copy, len(machine.connections))

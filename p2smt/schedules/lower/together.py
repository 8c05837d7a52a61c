"""Schedules of several groups as one schedule of a whole cluster, in which they run together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from p2smt.collectives.contract import Contract, Contribution, Goal
from p2smt.collectives.names import CUSTOM
from p2smt.schedules.model import Connection, Schedule, Sizes, Span, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_NONE = Sizes(0, 0, 0)


@dataclass(frozen=True, slots=True)
class GroupSchedule:
    """The schedule of one group of devices; ``devices[r]`` is the device of its rank r."""

    devices: tuple[int, ...]
    schedule: Schedule


def together(groups: Sequence[GroupSchedule], devices: int) -> Schedule:
    """The schedules of disjoint groups; rank r is device r, of so many.

    All run in place, or none does.
    """
    first = groups[0].schedule
    sizes, shift = [_NONE] * devices, [0] * devices
    starts: list[tuple[Contribution | None, ...]] = [()] * devices
    goals: list[Goal] = []
    for group in groups:
        wanted = group.schedule.contract
        goals += _goals(group)
        for rank, device in enumerate(group.devices):
            sizes[device] = group.schedule.sizes[rank]
            starts[device] = tuple(
                None if start is None else start._replace(rank=group.devices[start.rank])
                for start in wanted.starts[rank]
            )
            shift[device] = wanted.shift[rank] if wanted.shift else 0
    in_place = first.contract.in_place
    places = tuple(shift) if in_place else ()
    goal = Contract(CUSTOM, tuple(starts), tuple(sorted(goals)), in_place, places)
    steps = tuple(step for n, group in enumerate(groups) for step in _steps(n, group))
    return replace(first, contract=goal, sizes=tuple(sizes), steps=steps)


def _goals(group: GroupSchedule) -> Iterator[Goal]:
    """The goals of a group on its devices; many have the same parts."""
    moved: dict[int, tuple[Contribution, ...]] = {}
    for goal in group.schedule.contract.goals:
        if id(goal.parts) not in moved:
            moved[id(goal.parts)] = _moved(goal.parts, group)
        yield Goal(group.devices[goal.rank], goal.chunk, moved[id(goal.parts)])


def _moved(parts: Iterable[Contribution], group: GroupSchedule) -> tuple[Contribution, ...]:
    return tuple(part._replace(rank=group.devices[part.rank]) for part in parts)


def _steps(number: int, group: GroupSchedule) -> Iterator[Step]:
    """The steps of a group on its devices; its counters carry its number."""
    for step in group.schedule.steps:
        yield replace(
            step,
            rank=group.devices[step.rank],
            reads=_spans(step.reads, group),
            writes=_spans(step.writes, group),
            receive=_connection(step.receive, group),
            send=_connection(step.send, group),
            posts=tuple(f"group {number}: {name}" for name in step.posts),
            awaits=tuple(f"group {number}: {name}" for name in step.awaits),
        )


def _spans(spans: Iterable[Span], group: GroupSchedule) -> tuple[Span, ...]:
    return tuple(replace(span, rank=group.devices[span.rank]) for span in spans)


def _connection(connection: Connection | None, group: GroupSchedule) -> Connection | None:
    if connection is None:
        return None
    source, target, channel = connection
    return Connection(group.devices[source], group.devices[target], channel)

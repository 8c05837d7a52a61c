"""Counters of a schedule as channels and semaphores of an MSCCL++ plan.

A counter that one rank raises and another awaits is one direction of a channel between the two;
a counter of a single rank is a semaphore.  Names of the reader keep their numbers, others get
the smallest free ones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.interop.mscclpp.execution_plan import Channel

if TYPE_CHECKING:
    from p2smt.schedules.model import Schedule, Step

_CHANNEL = re.compile(r"(memory|port) channel (\d{1,6})->(\d{1,6}) #(\d{1,4})")
_SEMAPHORE = re.compile(r"semaphore (\d{1,4}) of rank (\d{1,6})")


@dataclass(slots=True)
class Counters:
    """What each counter is.

    raised, awaited: channel ends: of the rank that raises, and of the one that awaits.
    semaphores: counter -> its number on its rank.  values: by rank, the initial values.
    proxies: (rank, block) of background steps -> the channel that carries them.
    ends: all channel ends.  lists: ``connected_to`` by rank and kind.
    """

    raised: dict[str, Channel] = field(default_factory=dict)
    awaited: dict[str, Channel] = field(default_factory=dict)
    semaphores: dict[str, int] = field(default_factory=dict)
    values: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    proxies: dict[tuple[int, int], Channel] = field(default_factory=dict)
    ends: set[Channel] = field(default_factory=set)
    lists: dict[tuple[int, str], list[int]] = field(default_factory=dict)

    def peers(self, rank: int, kind: str) -> list[int]:
        """``connected_to`` of a rank: every peer as often as there are channels to it."""
        return self.lists.get((rank, kind), [])

    def place(self, channel: Channel) -> int:
        """The channel's id on its gpu."""
        return self.peers(channel.rank, channel.kind).index(channel.peer) + channel.number


def counters_of(schedule: Schedule) -> Counters:
    """Channels and semaphores for all counters.

    Raises:
        InputError: a counter is none of both.
    """
    found = Counters()
    posts, awaits = _users(schedule)
    names = [*dict.fromkeys((*posts, *awaits, *(name for name, _ in schedule.initial)))]
    for name in names:
        ends = _CHANNEL.fullmatch(name)
        if ends and _agree(ends, posts.get(name, []), awaits.get(name, [])):
            kind, source, target, number = ends.groups()
            _channel(found, name, kind, int(source), int(target), int(number))
    for name in names:
        if name not in found.raised:
            _unnamed(found, name, posts.get(name, []), awaits.get(name, []))
    for name, value in schedule.initial:
        _initial(found, name, value, posts.get(name, []) + awaits.get(name, []))
    background = [step for step in schedule.steps if step.background]
    for step in background:
        for name in step.posts:
            if name in found.raised:
                found.proxies.setdefault((step.rank, step.block), found.raised[name])
    for step in background:
        _proxy(found, step)
    found.lists.update(_lists(found.ends))
    return found


def _lists(ends: set[Channel]) -> dict[tuple[int, str], list[int]]:
    most: dict[tuple[int, str], dict[int, int]] = defaultdict(dict)
    for end in ends:
        held = most[end.rank, end.kind]
        held[end.peer] = max(held.get(end.peer, 0), end.number + 1)
    return {
        where: [peer for peer in sorted(held) for _ in range(held[peer])]
        for where, held in most.items()
    }


def _users(schedule: Schedule) -> tuple[dict[str, list[Step]], dict[str, list[Step]]]:
    posts: dict[str, list[Step]] = defaultdict(list)
    awaits: dict[str, list[Step]] = defaultdict(list)
    for step in schedule.steps:
        for name in step.posts:
            posts[name].append(step)
        for name in step.awaits:
            awaits[name].append(step)
    return posts, awaits


def _agree(ends: re.Match[str], posts: list[Step], awaits: list[Step]) -> bool:
    """Whether a channel's name says what the steps do."""
    kind, source, target = ends[1], int(ends[2]), int(ends[3])
    return (
        source != target
        and all(s.rank == source and s.background == (kind == "port") for s in posts)
        and all(step.rank == target for step in awaits)
    )


def _channel(found: Counters, name: str, kind: str, source: int, target: int, number: int) -> None:
    found.raised[name] = Channel(kind, source, target, number)
    found.awaited[name] = Channel(kind, target, source, number)
    found.ends |= {found.raised[name], found.awaited[name]}


def _free(found: Counters, kind: str, source: int, target: int) -> int:
    used = {
        channel.number
        for channel in (*found.raised.values(), *found.proxies.values())
        if (channel.kind, channel.rank, channel.peer) == (kind, source, target)
    }
    return next(number for number in count() if number not in used)


def _unnamed(found: Counters, name: str, posts: list[Step], awaits: list[Step]) -> None:
    sources, targets = {s.rank for s in posts}, {s.rank for s in awaits}
    if len(sources | targets) <= 1:
        _semaphore(found, name, min(sources | targets, default=0))
        return
    if len(sources) > 1 or len(targets) > 1 or len({s.background for s in posts}) > 1:
        rule = "is raised or awaited by several ranks, or both by blocks and in the background"
        raise InputError(f"counter {name[:60]!r}", rule, "use one counter for each pair of ranks")
    kind = "port" if posts[0].background else "memory"
    source, target = min(sources), min(targets)
    _channel(found, name, kind, source, target, _free(found, kind, source, target))


def _semaphore(found: Counters, name: str, rank: int) -> None:
    held = found.values[rank]
    match = _SEMAPHORE.fullmatch(name)
    number = int(match[1]) if match and int(match[2]) == rank else len(held)
    if number in held:
        number = next(n for n in count() if n not in held)
    found.semaphores[name], held[number] = number, 0


def _initial(found: Counters, name: str, value: int, users: list[Step]) -> None:
    if name not in found.semaphores:
        rule = f"is between ranks and starts at {value}"
        raise InputError(f"counter {name[:60]!r}", rule, "only semaphores of a rank start above 0")
    match = _SEMAPHORE.fullmatch(name)
    rank = users[0].rank if users else int(match[2]) if match else 0
    found.values[rank][found.semaphores[name]] = value


def _proxy(found: Counters, step: Step) -> None:
    """The port channel that the background steps of a block go over: that of their signals."""
    where = (step.rank, step.block)
    targets = {span.rank for span in step.writes}
    if where not in found.proxies and len(targets) == 1 and targets != {step.rank}:
        number = _free(found, "port", step.rank, min(targets))
        found.proxies[where] = Channel("port", step.rank, min(targets), number)
    known = found.proxies.get(where)
    if known is None or known.kind != "port" or not targets <= {known.peer}:
        raise InputError(f"{step}", "is no transfer of a port channel", "write to one peer")
    if any(found.raised.get(name) != known for name in step.posts) or step.awaits:
        rule = "signals over another channel than other steps of its block, or waits"
        raise InputError(f"{step}", rule, "use a block for each channel")
    found.ends |= {known, Channel("port", known.peer, known.rank, known.number)}

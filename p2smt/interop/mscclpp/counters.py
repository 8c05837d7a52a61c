"""Counters of a schedule as channels and semaphores of an MSCCL++ plan.

A counter that one rank raises and another awaits is one direction of a channel between the two;
a counter of a single rank is a semaphore.  Names of the reader keep their numbers, others get
the smallest free ones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.interop.mscclpp.execution_plan import Channel
from p2smt.schedules.model import StepRef

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


# The steps of a rank in the order in which they are written, each as simple as an operation.
# A step that waits, moves data and signals becomes one step for each of these, in a row.  A step
# of the proxy is put where its thread hands it over: behind the last step of a block that it must
# come after.


def predecessors(step: Step) -> tuple[StepRef, ...]:
    """The steps of its rank that a step names, or has by program order, as coming before it."""
    before = step.after
    if before is None:
        before = (StepRef(step.block, step.index - 1),) if step.index else ()
    return (*before, *step.waits)


def simple_steps(steps: Sequence[Step]) -> dict[StepRef, Step]:
    """The steps of a rank by reference, split into simple ones and numbered anew."""
    parts = {StepRef(s.block, s.index): _parts(s) for s in steps}
    sizes: dict[int, int] = defaultdict(int)
    first: dict[StepRef, int] = {}
    for ref in sorted(parts, key=lambda ref: (ref.block, ref.index)):
        first[ref] = sizes[ref.block]
        sizes[ref.block] += len(parts[ref])
    last = {r: StepRef(r.block, first[r] + len(p) - 1) for r, p in parts.items()}
    found: dict[StepRef, Step] = {}
    for ref, pieces in parts.items():
        for k, piece in enumerate(pieces):
            at = StepRef(ref.block, first[ref] + k)
            after = _renamed(piece, last) if k == 0 else None
            waits = tuple(last.get(w, w) for w in piece.waits) if k == 0 else ()
            same = (piece.index, piece.after, piece.waits) == (at.index, after, waits)
            kept = piece if same else replace(piece, index=at.index, after=after, waits=waits)
            found[at] = kept
    return found


def _renamed(step: Step, last: Mapping[StepRef, StepRef]) -> tuple[StepRef, ...] | None:
    return None if step.after is None else tuple(last.get(ref, ref) for ref in step.after)


def _parts(step: Step) -> list[Step]:
    data = bool(step.reads or step.writes)
    if step.send or step.receive:
        rule = "sends or receives a message, which MSCCL++ has no operation for"
        raise InputError(f"{step}", rule, "write it as put, signal and wait")
    if step.barrier is not None and (data or step.posts or step.awaits):
        rule = "is a barrier that does more than wait for the other blocks"
        raise InputError(f"{step}", rule, "make the barrier a step of its own")
    if step.background or len(step.posts) + len(step.awaits) + data <= 1:
        return [step]
    bare = replace(step, posts=(), awaits=(), reads=(), writes=(), count=0)
    before = [replace(bare, awaits=(name,)) for name in step.awaits]
    middle = [replace(step, posts=(), awaits=(), relaxed=False)] if data else []
    return [*before, *middle, *(replace(bare, posts=(name,)) for name in step.posts)]


def in_blocks(steps: Mapping[StepRef, Step]) -> dict[int, list[Step]]:
    """The steps of each block that is no proxy's, with the proxy's steps put among them.

    Raises:
        InputError: a step waits for another block, which takes a semaphore or a barrier.
    """
    homes = _homes(steps)
    places: dict[StepRef, tuple[int, int]] = {}
    blocks: dict[int, list[tuple[int, Step]]] = defaultdict(list)
    for ref in sorted(steps, key=lambda ref: (steps[ref].background, ref.block, ref.index)):
        step = steps[ref]
        if not step.background:
            places[ref] = (ref.block, ref.index)
        else:
            known = [places[p] for p in predecessors(step) if p in places]
            home = homes[ref.block] if homes[ref.block] is not None else min(blocks, default=0)
            places[ref] = max(known, key=lambda place: place[1], default=(home or 0, -1))
        _check_block(step, places, steps)
        blocks[places[ref][0]].append((places[ref][1], step))
    return {
        number: [step for _, step in sorted(found, key=lambda entry: entry[0])]
        for number, found in sorted(blocks.items())
    }


def _homes(steps: Mapping[StepRef, Step]) -> dict[int, int | None]:
    """For each block of the proxy, the block that uses its channel, if only one does."""
    users: dict[int, set[int]] = defaultdict(set)
    for step in steps.values():
        for ref in predecessors(step):
            other = steps.get(ref)
            if other is None:
                raise InputError(f"{step}", "comes after a step that does not exist", "remove it")
            if step.background and not other.background:
                users[step.block].add(other.block)
            elif other.background and not step.background:
                users[other.block].add(step.block)
    return defaultdict(lambda: None, {k: min(v) for k, v in users.items() if len(v) == 1})


def _check_block(
    step: Step, places: Mapping[StepRef, tuple[int, int]], steps: Mapping[StepRef, Step]
) -> None:
    block = places[StepRef(step.block, step.index)][0]
    for ref in predecessors(step):
        other = places.get(ref)
        if (other is not None and other[0] != block) or (other is None and ref.block != step.block):
            if other is None and steps[ref].background:
                continue
            rule = f"comes after {steps[ref]}, of another block"
            raise InputError(f"{step}", rule, "use a semaphore or a barrier between blocks")

"""Mistakes that people make in schedules: every function yields named variants of a schedule.

A mutant is what a file would hold after one edit.  Where a step is dropped, doubled or moved, the
steps of its block are numbered again; references then follow the steps that they meant, or
("as numbered") stay as the numbers they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from p2smt.schedules.model import Buffer, Connection, Schedule, Span, Step, StepRef

Mutants = Iterator[tuple[str, Schedule]]


def _with(schedule: Schedule, n: int, step: Step) -> Schedule:
    steps = (*schedule.steps[:n], step, *schedule.steps[n + 1 :])
    return replace(schedule, steps=steps)


def _each(schedule: Schedule, change: Callable[[Step], Iterator[tuple[str, Step]]]) -> Mutants:
    for n, step in enumerate(schedule.steps):
        for name, changed in change(step):
            if changed != step:
                yield f"{step}: {name}", _with(schedule, n, changed)


def _roles(step: Step) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The local source and destination that another type of the same line would use."""
    source = step.reads[-1:] or step.writes[:1]
    return source, step.writes or source


def _types(step: Step) -> Iterator[tuple[str, Step]]:
    source, target = _roles(step)
    if step.receive is not None and source:
        for kind in ("r", "rrc", "rcs", "rrs", "rrcs"):
            sends = kind in ("rcs", "rrs", "rrcs")
            if sends == (step.send is not None):
                reads = source if kind in ("rrc", "rrs", "rrcs") else ()
                writes = () if kind == "rrs" else target
                yield f"becomes {kind}", replace(step, kind=kind, reads=reads, writes=writes)
        if step.send is not None:
            yield "no longer sends", replace(step, kind="r", send=None, writes=target)
    elif step.reads and step.writes:
        yield "becomes cpy", replace(step, kind="cpy", reads=step.reads[-1:])
        both = step.writes[:1] + step.reads[-1:]
        yield "becomes re", replace(step, kind="re", reads=both)
    yield "becomes nop", _nop(step)


def _nop(step: Step) -> Step:
    return replace(step, kind="nop", count=0, reads=(), writes=(), receive=None, send=None)


def swapped_type(schedule: Schedule) -> Mutants:
    """Another type: r/rrc, rcs/rrs/rrcs, cpy/re, fused to plain, anything to nop."""
    yield from _each(schedule, _types)


def _put(spans: tuple[Span, ...], k: int, span: Span) -> tuple[Span, ...]:
    return (*spans[:k], span, *spans[k + 1 :])


def _each_span(schedule: Schedule, change: Callable[[Span], Span]) -> Mutants:
    yield from _each(schedule, lambda step: _spans(step, change))


def _spans(step: Step, change: Callable[[Span], Span]) -> Iterator[tuple[str, Step]]:
    for k, span in enumerate(step.reads):
        new = change(span)
        yield f"reads {new}", replace(step, reads=_put(step.reads, k, new))
    for k, span in enumerate(step.writes):
        new = change(span)
        yield f"writes {new}", replace(step, writes=_put(step.writes, k, new))


def changed_offset(schedule: Schedule) -> Mutants:
    """A source or destination one chunk further up or down."""
    yield from _each_span(schedule, lambda span: replace(span, start=span.start - 1))
    yield from _each_span(schedule, lambda span: replace(span, start=span.start + 1))


def changed_buffer(schedule: Schedule) -> Mutants:
    """A source or destination in another buffer."""
    yield from _each_span(schedule, lambda span: replace(span, buffer=Buffer.INPUT))
    yield from _each_span(schedule, lambda span: replace(span, buffer=Buffer.OUTPUT))
    yield from _each_span(schedule, lambda span: replace(span, buffer=Buffer.SCRATCH))


def _counts(step: Step) -> Iterator[tuple[str, Step]]:
    for by in (-1, 1):
        count = step.count + by
        if step.count > 0 and count > 0:
            reads = tuple(replace(span, count=count) for span in step.reads)
            writes = tuple(replace(span, count=count) for span in step.writes)
            yield f"count {count}", replace(step, count=count, reads=reads, writes=writes)


def changed_count(schedule: Schedule) -> Mutants:
    """One chunk more or less."""
    yield from _each(schedule, _counts)


def _elsewhere(step: Step, peer: int) -> Iterator[tuple[str, Step]]:
    """A step with another rank at the other end of what it does."""
    if step.receive is not None:
        way = step.receive._replace(source=peer)
        yield f"receives {way}", replace(step, receive=way)
    if step.send is not None:
        way = step.send._replace(target=peer)
        yield f"sends {way}", replace(step, send=way)
    yield from _spans(
        step, lambda span: span if span.rank == step.rank else replace(span, rank=peer)
    )


def changed_peer(schedule: Schedule) -> Mutants:
    """Another rank at the other end of a connection, or as the owner of a remote buffer."""

    def change(step: Step) -> Iterator[tuple[str, Step]]:
        for peer in range(schedule.ranks):
            if peer != step.rank:
                yield from _elsewhere(step, peer)

    yield from _each(schedule, change)


def changed_channel(schedule: Schedule) -> Mutants:
    """Another channel, at one end only."""

    def other(way: Connection) -> Connection:
        return way._replace(channel=1 - min(way.channel, 1))

    def change(step: Step) -> Iterator[tuple[str, Step]]:
        if step.receive is not None:
            yield "receives on another", replace(step, receive=other(step.receive))
        if step.send is not None:
            yield "sends on another", replace(step, send=other(step.send))

    yield from _each(schedule, change)


def removed_dependency(schedule: Schedule) -> Mutants:
    """A step no longer waits for another, or no longer follows another."""

    def change(step: Step) -> Iterator[tuple[str, Step]]:
        for ref in step.waits:
            left = tuple(other for other in step.waits if other != ref)
            yield f"does not wait for {ref.block}.{ref.index}", replace(step, waits=left)
        if step.after is None:
            yield "leaves its block's order", replace(step, after=())
        for ref in step.after or ():
            kept = tuple(other for other in step.after or () if other != ref)
            yield f"not after {ref.block}.{ref.index}", replace(step, after=kept)

    yield from _each(schedule, change)


def redirected_dependency(schedule: Schedule) -> Mutants:
    """A step waits for a neighbour of the step that it should wait for."""

    def change(step: Step) -> Iterator[tuple[str, Step]]:
        for k, ref in enumerate(step.waits):
            for block, index in ((0, -1), (0, 1), (-1, 0), (1, 0)):
                new = StepRef(ref.block + block, ref.index + index)
                waits = (*step.waits[:k], new, *step.waits[k + 1 :])
                yield f"waits for {new.block}.{new.index}", replace(step, waits=waits)

    yield from _each(schedule, change)


def added_dependency(schedule: Schedule) -> Mutants:
    """A step also waits for the last step of every block of its rank: often for ever."""
    last: dict[tuple[int, int], int] = {}
    for step in schedule.steps:
        last[step.rank, step.block] = max(step.index, last.get((step.rank, step.block), 0))

    def change(step: Step) -> Iterator[tuple[str, Step]]:
        for (rank, block), index in last.items():
            ref = StepRef(block, index)
            if rank == step.rank and ref not in step.waits:
                yield f"waits for {block}.{index}", replace(step, waits=(*step.waits, ref))

    yield from _each(schedule, change)


def _renumber(schedule: Schedule, order: list[tuple[int, Step]], *, follow: bool) -> Schedule:
    """Number the steps of each block again; (rank, block) -> old index by the pairs' first."""
    new_index: dict[tuple[int, int, int], int] = {}
    counts: dict[tuple[int, int], int] = {}
    numbered = []
    for old, step in order:
        key = (step.rank, step.block)
        index = counts.get(key, 0)
        counts[key] = index + 1
        new_index.setdefault((*key, old), index)
        numbered.append(replace(step, index=index))

    def moved(rank: int, refs: tuple[StepRef, ...]) -> tuple[StepRef, ...]:
        known = [r for r in refs if (rank, r.block, r.index) in new_index]
        return tuple(StepRef(r.block, new_index[rank, r.block, r.index]) for r in known)

    if follow:
        numbered = [
            replace(
                step,
                waits=moved(step.rank, step.waits),
                after=None if step.after is None else moved(step.rank, step.after),
            )
            for step in numbered
        ]
    return replace(schedule, steps=tuple(numbered))


def _edited(schedule: Schedule, name: str, order: list[tuple[int, Step]]) -> Mutants:
    follow = _renumber(schedule, order, follow=True)
    if follow.steps != schedule.steps:
        yield name, follow
    as_numbered = _renumber(schedule, order, follow=False)
    if as_numbered != follow:
        yield f"{name}, as numbered", as_numbered


def dropped_step(schedule: Schedule) -> Mutants:
    """A step is missing."""
    steps = [(step.index, step) for step in schedule.steps]
    for n, step in enumerate(schedule.steps):
        yield from _edited(schedule, f"{step}: dropped", steps[:n] + steps[n + 1 :])


def doubled_step(schedule: Schedule) -> Mutants:
    """A step is there twice."""
    steps = [(step.index, step) for step in schedule.steps]
    for n, step in enumerate(schedule.steps):
        order = [*steps[: n + 1], (-1, step), *steps[n + 1 :]]
        yield from _edited(schedule, f"{step}: doubled", order)


def reordered_steps(schedule: Schedule) -> Mutants:
    """A step changes places with the next one of its block."""
    where = {(step.rank, step.block, step.index): n for n, step in enumerate(schedule.steps)}
    for n, step in enumerate(schedule.steps):
        m = where.get((step.rank, step.block, step.index + 1))
        if m is not None:
            order = [(other.index, other) for other in schedule.steps]
            order[n], order[m] = order[m], order[n]
            yield from _edited(schedule, f"{step}: after the next", order)


def moved_step(schedule: Schedule) -> Mutants:
    """A step ends up at the end of the next block of its rank."""
    blocks = {(step.rank, step.block) for step in schedule.steps}
    for n, step in enumerate(schedule.steps):
        if (step.rank, step.block + 1) in blocks:
            order = [(other.index, other) for other in schedule.steps if other is not step]
            order.append((-1 - n, replace(step, block=step.block + 1)))
            yield f"{step}: in the next block", _renumber(schedule, order, follow=False)


def changed_signals(schedule: Schedule) -> Mutants:
    """A post or an await dropped, doubled, or on another counter."""
    names = sorted({name for step in schedule.steps for name in step.posts + step.awaits})

    def edits(held: tuple[str, ...], other: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        for k, name in enumerate(held):
            yield f"without {name}", held[:k] + held[k + 1 :]
            yield f"twice {name}", (*held, name)
            if other != name:
                yield f"{other} for {name}", (*held[:k], other, *held[k + 1 :])

    def change(step: Step) -> Iterator[tuple[str, Step]]:
        for other in names:
            for name, posts in edits(step.posts, other):
                yield f"posts {name}", replace(step, posts=posts)
            for name, awaits in edits(step.awaits, other):
                yield f"awaits {name}", replace(step, awaits=awaits)

    seen = set()
    for name, mutant in _each(schedule, change):
        if mutant.steps not in seen:
            seen.add(mutant.steps)
            yield name, mutant


def dropped_packet(schedule: Schedule) -> Mutants:
    """A packet access becomes an ordinary one, at one end only."""
    yield from _each_span(schedule, lambda span: replace(span, packet=False))


def dropped_barrier(schedule: Schedule) -> Mutants:
    """A barrier is not there any more, or another one."""

    def change(step: Step) -> Iterator[tuple[str, Step]]:
        if step.barrier is not None:
            yield "no barrier", replace(step, barrier=None)
            yield "another barrier", replace(step, barrier=step.barrier + " too")

    yield from _each(schedule, change)


def made_background(schedule: Schedule) -> Mutants:
    """A step that the rank's end should wait for is left to a proxy."""

    def change(step: Step) -> Iterator[tuple[str, Step]]:
        yield "in the background", replace(step, background=True)

    yield from _each(schedule, change)


def made_relaxed(schedule: Schedule) -> Mutants:
    """A signal or its wait orders control only."""

    def change(step: Step) -> Iterator[tuple[str, Step]]:
        if step.posts or step.awaits:
            yield "relaxed", replace(step, relaxed=True)

    yield from _each(schedule, change)


MUTATIONS: Mapping[str, Callable[[Schedule], Mutants]] = {
    "swapped type": swapped_type,
    "changed offset": changed_offset,
    "changed buffer": changed_buffer,
    "changed count": changed_count,
    "changed peer": changed_peer,
    "changed channel": changed_channel,
    "removed dependency": removed_dependency,
    "redirected dependency": redirected_dependency,
    "added dependency": added_dependency,
    "dropped step": dropped_step,
    "doubled step": doubled_step,
    "reordered steps": reordered_steps,
    "moved step": moved_step,
    "changed signals": changed_signals,
    "dropped packet": dropped_packet,
    "dropped barrier": dropped_barrier,
    "made background": made_background,
    "made relaxed": made_relaxed,
}


def mutants(schedule: Schedule) -> Iterator[tuple[str, str, Schedule]]:
    """(kind, name, mutant) for every mutation of a schedule."""
    for kind, mutate in MUTATIONS.items():
        for name, mutant in mutate(schedule):
            yield kind, name, mutant

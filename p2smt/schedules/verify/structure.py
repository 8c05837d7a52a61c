"""Checks that need no order: bounds, counts, peers, references, and what is never matched."""

from __future__ import annotations

from itertools import chain, pairwise, zip_longest
from typing import TYPE_CHECKING

from p2smt.schedules.verify.report import Kind, Violation, times

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from p2smt.schedules.index import Index
    from p2smt.schedules.model import Connection, Step


def broken_steps(index: Index) -> Iterator[Violation]:
    """Steps that are wrong on their own: nothing about their order can be said."""
    yield from _too_small(index)
    for number, step in enumerate(index.schedule.steps):
        yield from _bounds(index, number, step)
        if step.send or step.receive:
            yield from _peers(index, number, step)
        if step.waits or step.after or step.unannounced:
            yield from _references(index, number, step)
        if step.barrier is not None and _does_more(step):
            text = f"{step} meets others at a barrier and does something else as well"
            yield Violation(Kind.UNMATCHED_SIGNAL, text, (number,), step.rank)
        if step.count and (step.writes or step.send) and not (step.reads or step.receive):
            text = f"{step} stores or sends {step.count} chunks, but has no source for them"
            yield Violation(Kind.UNINITIALISED, text, (number,), step.rank)


def _does_more(step: Step) -> bool:
    """Whether a barrier step moves data or messages, or signals."""
    return any((step.reads, step.writes, step.send, step.receive, step.posts))


def _too_small(index: Index) -> Iterator[Violation]:
    """Buffers that do not hold what the collective is given or must produce."""
    contract, sizes = index.schedule.contract, index.schedule.sizes
    needed = [0] * len(sizes)
    for goal in contract.goals:
        needed[goal.rank] = max(needed[goal.rank], goal.chunk + 1)
    for rank, size in enumerate(sizes):
        for name, has, needs in (
            ("input", size.input, len(contract.starts[rank])),
            ("output", size.output, needed[rank]),
        ):
            if has < needs:
                text = f"rank {rank} has {has} {name} chunks, {contract.collective} needs {needs}"
                yield Violation(Kind.BOUNDS, text, (), rank)


def _bounds(index: Index, number: int, step: Step) -> Iterator[Violation]:
    for span in (*step.reads, *step.writes):
        if not index.memory.contains(span):
            sizes = index.schedule.sizes
            known = 0 <= span.rank < len(sizes)
            has = f"has {sizes[span.rank].of(span.buffer)} chunks" if known else "does not exist"
            text = f"{step} uses {span}, which {has}"
            yield Violation(Kind.BOUNDS, text, (number,), step.rank)
        if span.count != step.count:
            text = f"{step} handles {step.count} chunks, but {span} has {span.count}"
            yield Violation(Kind.COUNT, text, (number,), step.rank)


def _peers(index: Index, number: int, step: Step) -> Iterator[Violation]:
    ends = [("sends", step.send, True), ("receives", step.receive, False)]
    for verb, connection, out in ends:
        if connection is None:
            continue
        own, peer = connection.source, connection.target
        if not out:
            own, peer = peer, own
        if not 0 <= peer < index.schedule.ranks or own != step.rank or peer == step.rank:
            where = "no peer" if peer == -1 else f"peer {peer}"
            text = f"{step} {verb}, but its block has {where} for that"
            yield Violation(Kind.PEER, text, (number,), step.rank)


def _references(index: Index, number: int, step: Step) -> Iterator[Violation]:
    for ref in (*step.waits, *(step.after or ())):
        if index.number(step.rank, ref) is None:
            text = (
                f"{step} waits for block {ref.block} step {ref.index} of its rank, which does "
                "not exist: it never starts"
            )
            yield Violation(Kind.DEPENDENCY, text, (number,), step.rank)
    for ref in step.unannounced:
        awaited = index.number(step.rank, ref)
        if awaited is not None:
            text = (
                f"{step} waits for {index.schedule.steps[awaited]}, which is not announced "
                "(hasdep=0, or counted too low after a nop that waits for nothing), and no later "
                "step of that block is in its place: every run hangs"
            )
            yield Violation(Kind.NEVER_ANNOUNCED, text, (number, awaited), step.rank)


def unmatched(index: Index) -> Iterator[Violation]:
    """Messages and signals whose other end is missing, or differs in size."""
    for connection in dict.fromkeys(chain(index.sends, index.receives)):
        yield from _connection(index, connection)
    for counter in dict.fromkeys(chain(index.posts, index.awaits)):
        yield from _counter(index, counter)
    yield from _barriers(index)


def _connection(index: Index, connection: Connection) -> Iterator[Violation]:
    sends, receives = index.sends.get(connection, ()), index.receives.get(connection, ())
    yield from mismatched(index, connection, sends, receives)


def mismatched(
    index: Index, connection: Connection, sends: Sequence[int], receives: Sequence[int]
) -> Iterator[Violation]:
    """What is wrong with a connection that has these steps at its ends."""
    steps = index.schedule.steps
    for verb, ends in (("send", sends), ("receive", receives)):
        blocks = sorted({steps[number].block for number in ends})
        if len(blocks) > 1:
            text = (
                f"blocks {blocks[0]} and {blocks[1]} both {verb} on {connection}: a connection has "
                "one sending and one receiving block"
            )
            yield Violation(Kind.PEER, text, _firsts(index, ends, blocks), steps[ends[0]].rank)
            return
    for ends in (sends, receives):
        loose = next((pair for pair in pairwise(ends) if not index.follows(*pair)), None)
        if loose is not None:
            text = f"{steps[loose[0]]} and {steps[loose[1]]} use {connection} in no certain order"
            yield Violation(Kind.PEER, text, loose, steps[loose[0]].rank)
            return
    for k, (send, receive) in enumerate(zip_longest(sends, receives)):
        yield from _message(index, connection, k, send, receive)
        if send is None or receive is None:
            return


def _firsts(index: Index, ends: Sequence[int], blocks: list[int]) -> tuple[int, ...]:
    """The first step of each of two blocks."""
    steps = index.schedule.steps
    return tuple(next(e for e in ends if steps[e].block == block) for block in blocks[:2])


def _message(
    index: Index, connection: Connection, k: int, send: int | None, receive: int | None
) -> Iterator[Violation]:
    steps = index.schedule.steps
    if receive is None and send is not None:
        text = f"message {k} of {connection}, from {steps[send]}, is never received"
        yield Violation(Kind.UNMATCHED, text, (send,), steps[send].rank)
    elif send is None and receive is not None:
        text = f"{steps[receive]} waits for message {k} of {connection}, which is never sent"
        yield Violation(Kind.UNMATCHED, text, (receive,), steps[receive].rank)
    elif send is not None and receive is not None and steps[send].count != steps[receive].count:
        text = (
            f"message {k} of {connection} has {steps[send].count} chunks where it is sent "
            f"({steps[send]}) and {steps[receive].count} where it is received ({steps[receive]})"
        )
        yield Violation(Kind.COUNT, text, (receive, send), steps[receive].rank)


def _counter(index: Index, counter: str) -> Iterator[Violation]:
    steps = index.schedule.steps
    posts, awaits = index.posts.get(counter, ()), index.awaits.get(counter, ())
    there = len(posts) + index.initial(counter)
    if len(awaits) > there:
        step = awaits[there]
        text = (
            f"{counter} is awaited {times(len(awaits))}, last by {steps[step]}, but raised only "
            f"{times(there)}"
        )
        yield Violation(Kind.UNMATCHED_SIGNAL, text, (step,), steps[step].rank)
    elif len(posts) > len(awaits) and not counter.startswith("semaphore"):
        step = posts[-1]
        text = (
            f"{counter} is raised {times(len(posts))}, last by {steps[step]}, but awaited only "
            f"{times(len(awaits))}"
        )
        yield Violation(Kind.UNMATCHED_SIGNAL, text, (step,), steps[step].rank)


def _barriers(index: Index) -> Iterator[Violation]:
    """A block that reaches a barrier less often than another leaves that one waiting."""
    steps = index.schedule.steps
    most: dict[tuple[int, str], int] = {}
    for meeting in index.barriers:
        first = steps[meeting[0]]
        key = (first.rank, first.barrier or "")
        most[key] = max(most.get(key, 0), len(meeting))
        if len(meeting) < most[key]:
            text = (
                f"{first} waits at barrier {first.barrier}, which {len(meeting)} blocks reach "
                f"this often and {most[key]} blocks reached before"
            )
            yield Violation(Kind.UNMATCHED_SIGNAL, text, (meeting[0],), first.rank)

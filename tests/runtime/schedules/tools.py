"""Small schedules, right and wrong, and single mistakes made in them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from p2smt.collectives import contract as contracts
from p2smt.schedules.model import Schedule, Span, Step, StepRef
from tests.schedules.building import Blocks


def ring(ranks: int, *, kind: str = "rrc") -> Schedule:
    """All-reduce in place on a ring, one block per rank; ``kind`` is rank 0's first receive."""
    blocks = Blocks()
    for rank in range(ranks):
        before, behind = (rank - 1) % ranks, (rank + 1) % ranks
        for step in range(2 * (ranks - 1)):
            reduces = step < ranks - 1
            blocks.send(rank, 0, behind, f"i{(rank - step) % ranks}", line=len(blocks.steps) + 1)
            named = (kind if rank == step == 0 else "rrc") if reduces else "r"
            place = f"i{(rank - step - 1) % ranks}"
            blocks.receive(named, rank, 0, before, place, line=len(blocks.steps) + 1)
    return blocks.schedule(
        f"ring of {ranks}", contracts.contract("allreduce", ranks, ranks, in_place=True)
    )


def all_pairs(ranks: int) -> Schedule:
    """All-gather: a sending block per peer, a receiving one per peer, and one that copies."""
    blocks = Blocks()
    for rank in range(ranks):
        blocks.copy(rank, 0, "i0", f"o{rank}")
        for away in range(1, ranks):
            blocks.send(rank, away, (rank + away) % ranks, "i0")
            came = (rank - away) % ranks
            blocks.receive("r", rank, ranks + away, came, f"o{came}")
    return blocks.schedule("all pairs", contracts.contract("allgather", ranks, 1, in_place=False))


def sum_at_0(*, ordered: bool = True) -> Schedule:
    """Reduce to rank 0, its two receives in blocks of their own; unordered, an update is lost."""
    blocks = Blocks()
    copied = blocks.copy(0, 0, "i0", "o0")
    for rank in (1, 2):
        blocks.send(rank, 0, 0, "i0")
        waits = (copied, StepRef(1, 0)) if ordered and rank == 2 else (copied,)
        blocks.receive("rrc", 0, rank, rank, "o0", waits=waits)
    return blocks.schedule("sum at 0", contracts.contract("reduce", 3, 1, in_place=False))


def _all_before(before: Sequence[Sequence[int]], number: int) -> set[int]:
    found: set[int] = set()
    todo = [number]
    while todo:
        new = [earlier for earlier in before[todo.pop()] if earlier not in found]
        found.update(new)
        todo += new
    return found


def mutant(schedule: Schedule, draw: random.Random) -> Schedule:
    """The schedule with one random mistake."""
    steps = list(schedule.steps)
    number = draw.randrange(len(steps))
    change = draw.choice(_CHANGES)
    steps[number] = change(steps[number], draw)
    if draw.random() < 0.2:
        steps = _swapped(steps, number)
    elif draw.random() < 0.2:
        steps = _dropped(steps, number)
    return replace(schedule, steps=tuple(steps))


def _move(span: Span, draw: random.Random) -> Span:
    return replace(span, start=max(0, span.start + draw.choice((-1, 1))))


def _other_source(step: Step, draw: random.Random) -> Step:
    return replace(step, reads=tuple(_move(span, draw) for span in step.reads))


def _other_target(step: Step, draw: random.Random) -> Step:
    return replace(step, writes=tuple(_move(span, draw) for span in step.writes))


def _no_waits(step: Step, _: random.Random) -> Step:
    return replace(step, waits=(), awaits=())


def _no_order(step: Step, _: random.Random) -> Step:
    return replace(step, after=())


def _adds_or_not(step: Step, _: random.Random) -> Step:
    """A receive that adds what is there, or no longer does."""
    if step.receive is None:
        return step
    return replace(step, reads=() if step.reads else step.writes)


def _no_posts(step: Step, _: random.Random) -> Step:
    return replace(step, posts=(), barrier=None)


def _nothing(step: Step, _: random.Random) -> Step:
    return step


_CHANGES: Sequence[Callable[[Step, random.Random], Step]] = (
    _other_source,
    _other_target,
    _no_waits,
    _no_order,
    _adds_or_not,
    _no_posts,
    _nothing,
)


def _swapped(steps: list[Step], number: int) -> list[Step]:
    """Two neighbours of a block in each other's place."""
    step = steps[number]
    for other, neighbour in enumerate(steps):
        if (neighbour.rank, neighbour.block, neighbour.index) == (
            step.rank,
            step.block,
            step.index + 1,
        ):
            steps[number] = replace(neighbour, index=step.index)
            steps[other] = replace(step, index=neighbour.index)
    return steps


def _dropped(steps: list[Step], number: int) -> list[Step]:
    """Without one step; the later ones of its block move up."""
    gone = steps[number]
    return [
        replace(step, index=step.index - 1)
        if (step.rank, step.block) == (gone.rank, gone.block) and step.index > gone.index
        else step
        for other, step in enumerate(steps)
        if other != number
    ]

"""The steps of a rank in the order in which they are written, each as simple as an operation.

A step that waits, moves data and signals becomes one step for each of these, in a row.  A step
of the proxy is put where its thread hands it over: behind the last step of a block that it must
come after.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.schedules.model import StepRef

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from p2smt.schedules.model import Step


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

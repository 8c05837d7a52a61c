"""Turns the steps of a schedule into the elements of MSCCL XML.

A step has one dependency there: further ones become ``nop`` steps before it.  ``nop`` steps of
the schedule are folded into the step after them, as the runtime does; at the end of a block they
have no effect and are left out.  Blocks are numbered 0, 1, .. if they were not.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.interop.msccl.elements import RawBlock, RawStep
from p2smt.interop.msccl.step_types import peers_of, places_of, type_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from p2smt.interop.msccl.elements import RawPlace
    from p2smt.schedules.model import Connection, Schedule, Step, StepRef

NOP = "nop"


@dataclass(slots=True)
class _Line:
    """A step to be written, or a nop in front of one, and what it waits for."""

    wait: StepRef | None
    step: Step
    extra: bool = False


@dataclass(slots=True)
class _Block:
    """A block to be written; ``places``: where the steps of the schedule are in it."""

    number: int
    lines: list[_Line] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Gpu:
    """The blocks of a rank by the schedule's numbers, and which lines another one waits for."""

    blocks: Mapping[int, _Block]
    awaited: set[tuple[int, int]] = field(default_factory=set)


def raw_blocks(schedule: Schedule) -> dict[int, list[RawBlock]]:
    """By rank, the blocks of MSCCL XML that do what the schedule's do.

    Raises:
        InputError: the format cannot express one of the steps.
    """
    types = {id(step): type_of(step) for step in schedule.steps}
    found: dict[int, dict[int, list[Step]]] = defaultdict(lambda: defaultdict(list))
    for step in schedule.steps:
        found[step.rank][step.block].append(step)
    gpus = {rank: _gpu(blocks, types) for rank, blocks in found.items()}
    far = _far_ends(gpus, types)
    return {rank: [*_raw(gpu, types, far)] for rank, gpu in gpus.items()}


def _gpu(blocks: Mapping[int, list[Step]], types: Mapping[int, str]) -> _Gpu:
    kept = [n for n, steps in blocks.items() if any(types[id(step)] != NOP for step in steps)]
    dense = {old: new for new, old in enumerate(sorted(kept))}
    gpu = _Gpu({old: _laid_out(dense[old], blocks[old], types) for old in kept})
    for line in chain.from_iterable(block.lines for block in gpu.blocks.values()):
        if line.wait is not None:
            gpu.awaited.add(_target(gpu, line.step, line.wait))
    return gpu


def _laid_out(number: int, steps: list[Step], types: Mapping[int, str]) -> _Block:
    """One dependency per line; nop steps go into what follows them."""
    block = _Block(number)
    waits: list[StepRef] = []
    for index, step in enumerate(sorted(steps, key=lambda step: step.index)):
        if step.index != index:
            rule = f"is step {index} of its block in order"
            raise InputError(str(step), rule, "number the steps 0, 1, ..")
        waits += step.waits
        if types[id(step)] != NOP:
            distinct = list(dict.fromkeys(waits))
            block.lines += [_Line(wait, step, extra=True) for wait in distinct[:-1]]
            block.places[index] = len(block.lines)
            block.lines.append(_Line(distinct[-1] if distinct else None, step))
            waits = []
    return block


def _target(gpu: _Gpu, step: Step, wait: StepRef) -> tuple[int, int]:
    """The written block and step that a step waits for."""
    block = gpu.blocks.get(wait.block)
    place = None if block is None else block.places.get(wait.index)
    if block is None or place is None:
        rule = f"waits for block {wait.block} step {wait.index}, which is a nop or does not exist"
        raise InputError(str(step), rule, "MSCCL XML waits for steps that move data")
    return block.number, place


def _far_ends(gpus: Mapping[int, _Gpu], types: Mapping[int, str]) -> dict[int, RawPlace]:
    """For plain sends and receives, the place at the other end of the message.

    Only for people, and for runtimes that write directly into the peer's memory.
    """
    sent: dict[Connection, list[Step]] = defaultdict(list)
    received: dict[Connection, list[Step]] = defaultdict(list)
    for step in _steps(gpus):
        if step.send is not None:
            sent[step.send].append(step)
        if step.receive is not None:
            received[step.receive].append(step)
    far: dict[int, RawPlace] = {}
    for connection, sends in sent.items():
        for send, receive in zip(sends, received[connection], strict=False):
            source, stored = places_of(send, types[id(send)])
            read, target = places_of(receive, types[id(receive)])
            for step, place in ((send, target or read), (receive, source or stored)):
                if place is not None and types[id(step)] in ("s", "r"):
                    far[id(step)] = place
    return far


def _steps(gpus: Mapping[int, _Gpu]) -> Iterator[Step]:
    for gpu in gpus.values():
        for block in gpu.blocks.values():
            yield from (line.step for line in block.lines if not line.extra)


def _raw(gpu: _Gpu, types: Mapping[int, str], far: Mapping[int, RawPlace]) -> Iterator[RawBlock]:
    for block in gpu.blocks.values():
        peers = peers_of([line.step for line in block.lines])
        steps = []
        for number, line in enumerate(block.lines):
            wait = None if line.wait is None else _target(gpu, line.step, line.wait)
            announced = (block.number, number) in gpu.awaited
            steps.append(_raw_step(line, types[id(line.step)], far, wait, announced))
        yield RawBlock(0, block.number, *peers, tuple(steps))


def _raw_step(
    line: _Line,
    kind: str,
    far: Mapping[int, RawPlace],
    wait: tuple[int, int] | None,
    announced: bool,
) -> RawStep:
    if line.extra:
        return RawStep(0, NOP, None, None, 0, wait, announced)
    source, target = places_of(line.step, kind)
    other = far.get(id(line.step)) or source or target
    return RawStep(0, kind, source or other, target or other, line.step.count, wait, announced)

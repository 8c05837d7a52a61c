"""Bytes that a redistribution needs on a device: of states, and of the steps between them.

One array at a time (the theorem of arXiv 2112.01075) is what ``peak_bytes`` counts.  An allocator
sees a step's input and output together, and the buffer in which blocks are packed for sending or
unpacked from receiving:

| step | input | output | pack buffer |
|---|---|---|---|
| slice | b | b / G, a copy | none |
| all-gather | b | b G | b G, where the blocks do not follow each other in the output |
| all-to-all | b | b | b (nested: the larger of input and output) |
| permute | b | b | none |
| reduce-scatter | b | b / G | b, where the parts do not follow each other in the input |
| all-reduce | b | in place | none |

A reduce-scatter to nested parts of unequal length always packs, and pads each part to the longest:
its buffer has G outputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.arrays.frame import Frame
from p2smt.arrays.state import ArrayState
from p2smt.arrays.steps import ArrayStep, StepKind


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A cap in bytes per device.

    ``of_steps``: it bounds input, output and pack buffer of every step; else every state.
    ``keep_source``: the source stays alive beside the steps after the first.
    """

    limit_bytes: int
    of_steps: bool = False
    keep_source: bool = False


def step_bytes(frame: Frame, step: ArrayStep) -> int:
    """Input, output and pack buffer of a step."""
    before, after = frame.local_bytes(step.before), frame.local_bytes(step.after)
    return before + _output(step, after) + pack_bytes(frame, step)


def _output(step: ArrayStep, after: int) -> int:
    return 0 if step.kind is StepKind.ALL_REDUCE else after


def pack_bytes(frame: Frame, step: ArrayStep) -> int:
    """The buffer in which blocks are packed, or from which they are unpacked."""
    match step.kind:
        case StepKind.SLICE | StepKind.PERMUTE | StepKind.ALL_REDUCE:
            return 0
        case StepKind.ALL_TO_ALL:
            return max(frame.local_bytes(step.before), frame.local_bytes(step.after))
        case StepKind.ALL_GATHER:
            whole = leads(frame, step.before, step.lost)
            return 0 if whole else frame.local_bytes(step.after)
        case StepKind.REDUCE_SCATTER:
            if _padded(frame, step):
                return frame.ways(step.moved) * frame.local_bytes(step.after)
            whole = leads(frame, step.after, step.gained)
            return 0 if whole else frame.local_bytes(step.before)


def _padded(frame: Frame, step: ArrayStep) -> bool:
    """Whether the parts of a reduce-scatter may differ in length: only nested ones do."""
    cut = (i for i, digits in enumerate(step.gained) if digits)
    return any(not frame.is_even(i, step.after) for i in cut)


def leads(frame: Frame, small: ArrayState, lists: Sequence[Sequence[int]]) -> bool:
    """Whether the blocks of a group follow each other in memory: only the leading dimension is cut.

    ``small`` is the state of the smaller blocks.  The group's members must have the order of the
    blocks, too: that of their digits, ascending.
    """
    cut = [i for i, digits in enumerate(lists) if digits]
    if len(cut) != 1 or list(lists[cut[0]]) != sorted(lists[cut[0]]):
        return False
    return math.prod(frame.local_shape(small)[: cut[0]]) == 1


def peak_bytes(frame: Frame, states: Sequence[ArrayState]) -> int:
    """The largest single state."""
    return max(map(frame.local_bytes, states))


def peak_step_bytes(frame: Frame, steps: Sequence[ArrayStep], keep_source: bool = False) -> int:
    """The largest of the steps' bytes; without steps those of the one state are :func:`peak_bytes`.

    ``keep_source``: beside each step after the first stands the source, and a first all-reduce
    does not overwrite it.
    """
    every = (needed_bytes(frame, steps, number, keep_source) for number in range(len(steps)))
    return max(every, default=0)


def needed_bytes(
    frame: Frame, steps: Sequence[ArrayStep], number: int, keep_source: bool = False
) -> int:
    """Bytes of a step of a plan, counted from 0; with ``keep_source`` the kept one's among them."""
    own = step_bytes(frame, steps[number])
    return own + kept_bytes(frame, steps, number) if keep_source else own


def kept_bytes(frame: Frame, steps: Sequence[ArrayStep], number: int) -> int:
    """What keeping the source adds to a step, counted from 0."""
    first = steps[0]
    if number == 0 and first.kind is not StepKind.ALL_REDUCE:
        return 0
    return frame.local_bytes(first.before)


def within(
    frame: Frame, source: ArrayState, steps: Sequence[ArrayStep], limit: MemoryLimit
) -> bool:
    """Whether a plan keeps to a cap."""
    if limit.of_steps:
        peak = peak_step_bytes(frame, steps, limit.keep_source)
        return max(peak, frame.local_bytes(source)) <= limit.limit_bytes
    return peak_bytes(frame, [source, *(step.after for step in steps)]) <= limit.limit_bytes

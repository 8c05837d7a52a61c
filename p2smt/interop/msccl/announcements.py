"""What a wait for a step of another block comes to, given which steps the runtime announces.

The runtime announces a step only if its ``hasdep`` is 1, as one rising number per block, and a
waiting block compares with that number (``msccl_interpreter.h``).  So a wait for a step that is
not announced ends with the next one of its block that is.  Where there is none, it never ends: in
the last iteration over the data no higher number comes any more.  ``nop`` is folded into the step
after it and never announced itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from p2smt.interop.msccl.elements import RawAlgo, RawBlock, RawGpu


def says_announcements(algo: RawAlgo) -> bool:
    """Whether a file has ``hasdep`` at all; one dialect leaves it to the runtime."""
    blocks = (block for gpu in algo.gpus.values() for block in gpu.blocks.values())
    return any(step.announced is not None for block in blocks for step in block.steps)


def announcements_of(gpu: RawGpu) -> dict[int, list[int | None]]:
    """By block and step: the first step from it on that is announced, or None."""
    return {number: _announced(block) for number, block in gpu.blocks.items()}


def _announced(block: RawBlock) -> list[int | None]:
    found: list[int | None] = []
    following: int | None = None
    for index in range(len(block.steps) - 1, -1, -1):
        step = block.steps[index]
        if step.announced and step.kind != "nop":
            following = index
        found.append(following)
    return found[::-1]


def announced_by(
    announcements: Mapping[int, Sequence[int | None]], wait: tuple[int, int]
) -> int | None:
    """The step of that block whose announcement ends a wait; None: none does.

    A wait for a step that does not exist stays what it is.
    """
    block, index = wait
    known = announcements.get(block, ())
    return known[index] if 0 <= index < len(known) else index

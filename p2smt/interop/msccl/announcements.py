"""What a wait for a step of another block comes to, given which steps the runtime announces.

The runtime announces a step only if its ``hasdep`` is 1, as one rising number per block, and a
waiting block compares with that number (``msccl_interpreter.h``).  So a wait for a step that is
not announced ends with the next one of its block that is.  Where there is none, it never ends: in
the last iteration over the data no higher number comes any more.

``nop`` is folded into the step after it and never announced itself.  The interpreter counts a step
and one more for each dependency of it after the first; the loader (``msccl_parser.cc``,
``mscclGetAlgoFromXMLAndSetAlgo``) makes a dependency of a ``nop`` that waits, and nothing of one
that does not.  So a step is announced with its place less the idle ``nop`` steps before it, and a
wait, which names a place, ends with the first announced number that is no smaller.
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
    """By block and step: the step of that block whose announcement ends a wait for it, or None."""
    return {number: _announced(block) for number, block in gpu.blocks.items()}


def _announced(block: RawBlock) -> list[int | None]:
    found: list[int | None] = []
    idle = 0
    for index, step in enumerate(block.steps):
        if step.kind == "nop":
            idle += step.wait is None
        elif step.announced:
            found += [index] * (index - idle + 1 - len(found))
    return found + [None] * (len(block.steps) - len(found))


def announced_by(
    announcements: Mapping[int, Sequence[int | None]], wait: tuple[int, int]
) -> int | None:
    """The step of that block whose announcement ends a wait; None: none does.

    A wait for a step that does not exist stays what it is.
    """
    block, index = wait
    known = announcements.get(block, ())
    return known[index] if 0 <= index < len(known) else index

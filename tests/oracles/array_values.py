"""Redistributions element by element: every device's local array, every collective by the book.

An element of a local array is its global place with the list of the contributions in it.  Blocks
are cut and joined with numpy, one device after the other; types cut digit by digit, steps cut the
block into as many chunks as the group has parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.steps import ArrayStep, StepKind

Local = npt.NDArray[np.object_]
Place = tuple[int, ...]


def chunk(block: Local, ways: int, number: int, dim: int) -> Local:
    """As torch.chunk: chunks are rounded up, the last ones smaller or empty."""
    size = -(-block.shape[dim] // ways)
    part = [slice(None)] * block.ndim
    part[dim] = slice(number * size, (number + 1) * size)
    return block[tuple(part)]


def positions(frame: Frame) -> list[Place]:
    """The digits of every mesh position."""
    return list(itertools.product(*map(range, frame.sizes)))


def locals_of(frame: Frame, source: ArrayState, state: ArrayState) -> dict[int, Local]:
    """What each device holds in a state, if the source's contributions are numbered by digits."""
    whole = np.empty(frame.shape, dtype=object)
    found = {}
    for place, device in zip(positions(frame), frame.orders[state.order], strict=True):
        ways = [range(frame.sizes[d]) if d not in state.partial else [place[d]]
                for d in source.partial]  # fmt: skip
        for index in np.ndindex(*frame.shape):
            whole[index] = (index, tuple(sorted(itertools.product(*ways))))
        block = whole
        for dim, digits in enumerate(state.dims):
            for digit in digits:
                block = chunk(block, frame.sizes[digit], place[digit], dim)
        found[device] = block.copy()
    return found


def added(blocks: Sequence[Local]) -> Local:
    """The sum of blocks: contributions join; values of different places do not add."""
    if len({block.shape for block in blocks}) > 1:
        raise ValueError("adds blocks of different shapes")
    found = blocks[0].copy()
    for index in np.ndindex(*found.shape):
        parts = [block[index] for block in blocks]
        if len({part[0] for part in parts}) > 1:
            raise ValueError("adds values of different elements")
        every = sorted(itertools.chain.from_iterable(part[1] for part in parts))
        if len(set(every)) != len(every):
            raise ValueError("adds a contribution twice")
        found[index] = (parts[0][0], tuple(every))
    return found


def after_step(
    frame: Frame, held: dict[int, Local], step: ArrayStep, sources: Sequence[int]
) -> dict[int, Local]:
    """What each device holds after a step."""
    if step.kind is StepKind.PERMUTE:
        return {device: held[sources[device]] for device in held}
    order = frame.orders[step.before.order]
    at = dict(zip(positions(frame), order, strict=True))
    return {at[place]: _received(frame, held, step, at, place) for place in at}


def _received(
    frame: Frame, held: dict[int, Local], step: ArrayStep, at: dict[Place, int], place: Place
) -> Local:
    def member(values: dict[int, int]) -> Place:
        return tuple(values.get(digit, place[digit]) for digit in range(len(place)))

    def part_for_me(block: Local) -> Local:
        for dim, digits in enumerate(step.gained if step.kind in CUTS else ()):
            ways = number = 0
            for digit in digits:
                ways = max(ways, 1) * frame.sizes[digit]
                number = number * frame.sizes[digit] + place[digit]
            block = chunk(block, ways, number, dim) if ways else block
        return block

    reduced = [digit for digit in step.moved if step.kind in REDUCTIONS]
    if reduced:
        values = itertools.product(*(range(frame.sizes[d]) for d in reduced))
        group = [member(dict(zip(reduced, v, strict=True))) for v in values]
        return part_for_me(added([held[at[m]] for m in group]))
    lost = [
        (dim, digit)
        for dim, digits in enumerate(step.lost if step.kind in JOINS else ())
        for digit in digits
    ]

    def joined(values: dict[int, int]) -> Local:
        """Blocks of the digits that are not chosen yet, the last of a list innermost."""
        if len(values) == len(lost):
            return part_for_me(held[at[member(values)]])
        dim, digit = lost[len(values)]
        parts = [joined({**values, digit: v}) for v in range(frame.sizes[digit])]
        return np.concatenate(parts, axis=dim)

    return joined({})


JOINS = (StepKind.ALL_GATHER, StepKind.ALL_TO_ALL)
CUTS = (StepKind.SLICE, StepKind.ALL_TO_ALL, StepKind.REDUCE_SCATTER)
REDUCTIONS = (StepKind.REDUCE_SCATTER, StepKind.ALL_REDUCE)


def same(one: dict[int, Local], other: dict[int, Local]) -> bool:
    """Whether all devices hold the same."""
    return all(
        one[device].shape == other[device].shape and (one[device] == other[device]).all()
        for device in other
    )

"""Redistributions by hand: types as text, steps as the states that they pass through."""

from __future__ import annotations

import random
from collections.abc import Sequence

from p2smt.resharding.endpoints import Ends, ends_of
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.steps import KINDS, ArrayStep, StepKind
from p2smt.resharding.types import ArrayType, ElementType, Uneven, parse_layout, parse_mesh
from p2smt.runtime.arrays.block_values import block_of, part_of
from p2smt.runtime.arrays.rank_steps import ArrayJob
from tests.oracles.redistributions import all_steps


def ends(
    mesh: str,
    shape: Sequence[int],
    source: str,
    target: str,
    *,
    dtype: str = "f32",
    uneven: Uneven = Uneven.REFUSE,
    devices: Sequence[int] | None = None,
    to_devices: Sequence[int] | None = None,
) -> Ends:
    """Source and destination on common digits: of several orders of primes the first."""

    def kind(text: str, order: Sequence[int] | None) -> ArrayType:
        made = parse_mesh(mesh, order)
        element = ElementType.parse(dtype)
        return ArrayType(made, tuple(shape), element, parse_layout(text, made), uneven)

    return ends_of(kind(source, devices), kind(target, to_devices or devices))[0]


def senders(frame: Frame, step: ArrayStep, seed: int = 0) -> tuple[int, ...]:
    """Of a permute: for each device any of those that have its block."""
    if step.kind is not StepKind.PERMUTE:
        return ()
    draw, devices = random.Random(seed), range(frame.devices)
    holders: dict[object, list[int]] = {}
    for device in devices:
        key = block_of(frame, step.before, device), part_of(frame, step.before, device)
        holders.setdefault(key, []).append(device)
    return tuple(
        draw.choice(
            holders[block_of(frame, step.after, device), part_of(frame, step.after, device)]
        )
        for device in devices
    )


def job(
    frame: Frame, start: ArrayState, steps: Sequence[ArrayStep], *, keep_source: bool = False
) -> ArrayJob:
    """A job without predictions; permutes have sources by chance."""
    sources = tuple(senders(frame, step) for step in steps)
    return ArrayJob(frame, start, tuple(steps), sources, (0.0,) * len(steps), keep_source)


def walk(frame: Frame, start: ArrayState, length: int, seed: int) -> tuple[ArrayStep, ...]:
    """Steps by chance, every kind as often as the others where it can be had."""
    draw, found, state = random.Random(seed), [], start
    steps = all_steps(frame, start.partial)
    for _ in range(length):
        kinds = sorted({step.kind.value for step in steps[state]})
        if not kinds:
            break
        kind = StepKind(draw.choice(kinds))
        found.append(draw.choice([step for step in steps[state] if step.kind is kind]))
        state = found[-1].after
    return tuple(found)


def through(ends_: Ends, *path: tuple[str, ArrayState]) -> tuple[ArrayStep, ...]:
    """Steps of these kinds to these states, from the source on."""
    found, state = [], ends_.source
    for kind, after in path:
        found.append(KINDS[StepKind(kind)](state, after))
        state = after
    return tuple(found)

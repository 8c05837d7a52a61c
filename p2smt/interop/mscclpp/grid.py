"""The units a plan's chunks are cut into, and where in them an operation finds its data.

A chunk becomes ``per_chunk`` units, enough that each iteration of a pipeline and each part of a
thread block group is a whole number of them.  With pipelines a chunk is as many bytes as the
asked number of iterations of the largest unit size handles.  With ``reuse_resources`` the
scratch buffer has a fixed size, the number of scratch chunks shares it evenly, and a pipeline's
offset wraps around inside its scratch chunk where the chunk is larger than that share.

Packets take twice their data: scratch chunk q of packets lies where the plain scratch chunks 2q
and 2q+1 would.  Ranks whose scratch is used both ways get the plain chunks as memory of their
own behind the packets; uses that would overlap are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, lcm
from typing import TYPE_CHECKING, TypeAlias

from p2smt.errors import TooLarge
from p2smt.interop.mscclpp.execution_plan import letters
from p2smt.schedules.model import Buffer, Sizes, Span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from p2smt.interop.mscclpp.execution_plan import ExecutionPlan, Op, Operand

SCRATCH_BYTES = 1 << 26
"""Bytes of scratch that the executor divides up for plans with reuse_resources."""

_Use: TypeAlias = "tuple[int, int, Op]"

MAX_RATIO = 64
MAX_UNITS = 1 << 20


@dataclass(frozen=True, slots=True)
class Window:
    """An iteration of a pipeline: where it begins and how much it handles, in units."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Grid:
    """How chunks are cut.

    per_chunk: units of a chunk.
    step_bytes, step_units: the largest measure of all pipelines' unit sizes, in both.
    strides: by rank, units from one scratch chunk to the next.
    plain: by rank, where plain scratch chunks begin, if the rank has packets in scratch too.
    """

    per_chunk: int
    step_bytes: int
    step_units: int
    strides: tuple[int, ...]
    plain: Mapping[int, int]

    def iteration(self, op: Op) -> int:
        """Units that one iteration of a pipeline handles."""
        return op.unit // self.step_bytes * self.step_units

    def part(self, op: Op, operand: Operand) -> tuple[int, int]:
        """Begin and size, in units, of this block's part of an operand."""
        number, parts = op.part
        size = operand.size * self.per_chunk // parts
        return number * size, size

    def handled(self, op: Op, operand: Operand, window: Window | None) -> int:
        """Units handled, as the kernel computes them: past the end a whole iteration again."""
        size = self.part(op, operand)[1]
        if window is None:
            return size
        left = size - window.offset
        return window.size if left < 0 else min(left, window.size)

    def spans(
        self, rank: int, op: Op, operand: Operand, window: Window | None, count: int, view: str
    ) -> tuple[Span, ...]:
        """The chunks of an operand; ``rank`` runs it, ``view`` is its letter in the pattern."""
        offset = window.offset if window else 0
        stride = self.per_chunk
        if operand.buffer is Buffer.SCRATCH:
            stride = self.strides[rank]
            offset = offset % stride if stride < self.per_chunk else offset
        start = operand.index * stride + self.part(op, operand)[0] + offset
        packet = view in "lrs"
        found = []
        for at in operand.ranks:
            shift = self.plain.get(at, 0) if view in "LRS" else 0
            begin = start + (shift if operand.buffer is Buffer.SCRATCH else 0)
            found.append(Span(at, operand.buffer, begin, count, packet))
        return tuple(found)

    def sizes(self, plan: ExecutionPlan) -> tuple[Sizes, ...]:
        """Buffer sizes in units."""
        return tuple(
            Sizes(
                gpu.sizes[0] * self.per_chunk,
                (gpu.sizes[1] or gpu.sizes[0] * plan.in_place) * self.per_chunk,
                gpu.sizes[2] * stride + 2 * self.plain.get(gpu.rank, 0),
            )
            for gpu, stride in zip(plan.gpus, self.strides, strict=True)
        )


def grid_of(plan: ExecutionPlan, iterations: int) -> Grid:
    """The grid of a plan, its pipelines running ``iterations`` times per chunk or more.

    Raises:
        TooLarge: unit sizes or thread block groups with no small common measure.
        InputError: scratch used as packets and plainly at the same place.
    """
    ops = list(plan.operations())
    parts = lcm(*{op.part[1] for op in ops})
    units = {op.unit for op in ops if op.unit}
    smallest = gcd(*units) if units else 1
    ratio = lcm(*units) // smallest if units else 1
    per_chunk = parts * ratio * (iterations if units else 1)
    if parts > MAX_RATIO * 16 or ratio > MAX_RATIO or per_chunk > MAX_UNITS:
        given = f"{plan.value.source}: {per_chunk} units per chunk"
        rule = "unit sizes, thread block groups and iterations cut chunks too finely"
        raise TooLarge(given, rule, "ask for fewer iterations, or use sizes with common factors")
    strides = tuple(
        _stride(plan, gpu.sizes[2], per_chunk, smallest, parts) if units else per_chunk
        for gpu in plan.gpus
    )
    plain = _plain_places(plan, strides)
    return Grid(per_chunk, smallest, parts, strides, plain)


def wrap_bytes(plan: ExecutionPlan, scratch_chunks: int) -> int:
    """Bytes of a scratch chunk with reuse_resources, as the executor rounds them."""
    room = SCRATCH_BYTES // 2 if plan.double_scratch else SCRATCH_BYTES
    share = -(-room // scratch_chunks)
    return -(-share // plan.alignment) * plan.alignment


def _stride(plan: ExecutionPlan, scratch: int, per_chunk: int, smallest: int, parts: int) -> int:
    if not plan.reuse or not scratch:
        return per_chunk
    share = wrap_bytes(plan, scratch) * parts
    if share >= per_chunk * smallest:
        return per_chunk
    if share % smallest:
        given = f"{plan.value.source}: scratch chunks of {share // parts} bytes"
        rule = f"do not hold a whole number of steps of {smallest} bytes, so that steps overlap"
        raise TooLarge(given, f"{rule} where they wrap around", "ask for fewer iterations")
    return share // smallest


def _plain_places(plan: ExecutionPlan, strides: Sequence[int]) -> dict[int, int]:
    """Where plain scratch begins on ranks that also hold packets there."""
    plain: dict[int, list[_Use]] = {gpu.rank: [] for gpu in plan.gpus}
    packets: dict[int, list[_Use]] = {gpu.rank: [] for gpu in plan.gpus}
    for op in plan.operations():
        for operand, view in zip((*op.sources, *op.targets), letters(op), strict=True):
            if operand.buffer is Buffer.SCRATCH:
                kind, wide = (plain, 1) if view in "LRS" else (packets, 2)
                begin, end = operand.index * wide, (operand.index + operand.size) * wide
                for at in operand.ranks:
                    kind[at].append((begin, end, op))
    for rank, uses in plain.items():
        _refuse_overlap(rank, uses, packets[rank])
    return {
        gpu.rank: gpu.sizes[2] * strides[gpu.rank]
        for gpu in plan.gpus
        if plain[gpu.rank] and packets[gpu.rank]
    }


def _refuse_overlap(rank: int, plain: list[_Use], packets: list[_Use]) -> None:
    """A sweep over the begins: how far each kind of use reaches so far."""
    reach = {True: 0, False: 0}
    for begin, end, is_packet, op in sorted(
        [(b, e, False, op) for b, e, op in plain] + [(b, e, True, op) for b, e, op in packets],
        key=lambda use: use[:3],
    ):
        if begin < reach[not is_packet]:
            rule = f"uses scratch of rank {rank} both as packets and plainly, at the same bytes"
            raise op.value.error(rule, "keep packets and plain data apart in scratch")
        reach[is_packet] = max(reach[is_packet], end)

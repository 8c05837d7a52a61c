"""Memory cells: one number for every chunk of every rank, with input and output shared in place."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from p2smt.schedules.model import BUFFERS, Buffer, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from p2smt.schedules.model import Schedule, Sizes


@dataclass(frozen=True, slots=True)
class Memory:
    """Cells 0 .. total-1; those of rank r are ``starts[r] .. starts[r + 1] - 1``."""

    sizes: tuple[Sizes, ...]
    offsets: tuple[tuple[int, int, int], ...]
    starts: tuple[int, ...]

    @property
    def total(self) -> int:
        """How many cells there are."""
        return self.starts[-1]

    def cell(self, rank: int, buffer: Buffer, chunk: int) -> int:
        """The cell of a chunk, which must be in bounds."""
        return self.starts[rank] + self.offsets[rank][BUFFERS.index(buffer)] + chunk

    def input_cell(self, rank: int, chunk: int) -> int:
        """The cell of an input chunk."""
        return self.cell(rank, Buffer.INPUT, chunk)

    def output_cell(self, rank: int, chunk: int) -> int:
        """The cell of an output chunk."""
        return self.cell(rank, Buffer.OUTPUT, chunk)

    def cells(self, span: Span) -> range:
        """The cells of a span, which must be in bounds."""
        first = self.cell(span.rank, span.buffer, span.start)
        return range(first, first + span.count)

    def contains(self, span: Span) -> bool:
        """Whether a span lies in its buffer."""
        if not 0 <= span.rank < len(self.sizes):
            return False
        return span.start >= 0 and span.start + span.count <= self.sizes[span.rank].of(span.buffer)

    def chunks(self, cell: int) -> Iterator[Span]:
        """The names of a cell: two where input and output overlap."""
        rank = bisect_right(self.starts, cell) - 1
        for buffer, offset in zip(Buffer, self.offsets[rank], strict=True):
            chunk = cell - self.starts[rank] - offset
            if 0 <= chunk < self.sizes[rank].of(buffer):
                yield Span(rank, buffer, chunk, 1)

    def name(self, cell: int) -> str:
        """A cell for people: ``o[3] of rank 1``, the output's name where it has two."""
        found = list(self.chunks(cell))
        outputs = [span for span in found if span.buffer is Buffer.OUTPUT]
        return str((outputs or found)[0])


def memory_of(schedule: Schedule) -> Memory:
    """The cells of a schedule, input and output shared where it runs in place."""
    shifts = schedule.contract.shift if schedule.in_place else (None,) * schedule.ranks
    laid = [
        _rank_offsets(sizes, shift) for sizes, shift in zip(schedule.sizes, shifts, strict=True)
    ]
    starts = accumulate((total for _, total in laid), initial=0)
    return Memory(schedule.sizes, tuple(offsets for offsets, _ in laid), tuple(starts))


def _rank_offsets(sizes: Sizes, shift: int | None) -> tuple[tuple[int, int, int], int]:
    """Where input, output and scratch of a rank begin, and how many cells it has."""
    if shift is None:
        scratch = sizes.input + sizes.output
        return (0, sizes.input, scratch), scratch + sizes.scratch
    at_input, at_output = max(shift, 0), max(-shift, 0)
    scratch = max(at_input + sizes.input, at_output + sizes.output)
    return (at_input, at_output, scratch), scratch + sizes.scratch

"""What the steps of a redistribution do to index maps: the specification of their plans.

Each collective is simulated from its definition, group by group.  A member's block is one list of
cells per dimension and the contributions that its elements hold, counted:

* slice: a member keeps the chunk, in each dimension, that its digits number;
* all-gather, all-to-all: along each dimension that loses digits, the blocks of the group follow
  each other, those of the first digit value first; of the joined block a member keeps its chunk;
* reduce-scatter, all-reduce: the contributions of the group are added; a member keeps its chunk;
* permute: a device gets the block of the one that the plan names.

Nothing is taken from the steps' own rules, from search or from costs; a step says its kind, its
digits, and the state that it claims to reach, which is compared after each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from p2smt.parallelism.placement import BoolArray, IntArray
from p2smt.resharding.index_maps import (
    NONE,
    CellArray,
    CountArray,
    DeviceBlocks,
    DimensionCells,
    GroupMembers,
    blocks_of_state,
    blocks_of_type,
    intervals,
    spans,
)
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.steps import ArrayStep, StepKind
from p2smt.resharding.types import ArrayType

SourcedStep = tuple[ArrayStep, Sequence[int]]
"""A step and, of a permute, the device that sends to each device; () takes the k-th holder of a
block for its k-th taker.  Devices are ascending: those of a frame, whatever their numbers."""
StepOrSourced = ArrayStep | SourcedStep


_JOINS = (StepKind.ALL_GATHER, StepKind.ALL_TO_ALL)
_CUTS = (StepKind.SLICE, StepKind.ALL_TO_ALL, StepKind.REDUCE_SCATTER)
_REDUCES = (StepKind.REDUCE_SCATTER, StepKind.ALL_REDUCE)


class ArrayViolationKind(Enum):
    """What can be wrong with a sequence of steps."""

    SEQUENCE = "does not begin where the step before it ends"
    CUT = "cuts a block where no block of the plan ends"
    TANGLED = "both joins and cuts one dimension"
    MIXED = "joins blocks that do not belong together"
    SUMMED_APART = "adds values of different elements"
    SUMMED_TWICE = "adds a contribution twice"
    DEVICES = "is on other devices than its type says"
    SOURCES = "names no source for each device"
    ELEMENTS = "leaves other elements than its type says"
    CONTRIBUTIONS = "leaves other contributions than its type says"


@dataclass(frozen=True, slots=True)
class ArrayViolation:
    """The first thing wrong: at ``step`` (from 1; 0: with the source), seen at ``device``.

    ``chunk``: the dimension and the global index there of the first element concerned.
    """

    kind: ArrayViolationKind
    step: int
    device: int
    chunk: tuple[int, int] | None = None

    @property
    def message(self) -> str:
        """One line for people."""
        what = f"step {self.step}" if self.step else "the source"
        where = f" (at element {self.chunk[1]} of dim {self.chunk[0]})" if self.chunk else ""
        return f"{what} {self.kind.value}: device {self.device}{where}"


@dataclass(frozen=True, slots=True)
class HeldBlocks:
    """What devices hold: ``rows[i]`` per device the cells of dimension i, then :data:`NONE`.

    ``counts[d, c]`` is how often contribution c is in the values of device d.
    """

    rows: tuple[CellArray, ...]
    counts: CountArray


class _Wrong(Exception):
    """Carries a violation out of a step."""

    def __init__(
        self, kind: ArrayViolationKind, device: int, chunk: tuple[int, int] | None = None
    ) -> None:
        super().__init__(kind, device, chunk)
        self.kind, self.device, self.chunk = kind, device, chunk


def check_types(
    source: ArrayType,
    target: ArrayType,
    frame: Frame,
    start: ArrayState,
    steps: Sequence[StepOrSourced],
) -> tuple[ArrayViolation, ...]:
    """What is wrong with a plan from a type to another: the first violation, or nothing.

    Nothing means that every element is where it must be, in the padding of padded types as
    elsewhere, and that nothing is lost or summed twice.  Source and target are taken by their own
    meshes, and every state between them by the frame.
    """
    for number, kind in ((0, source), (len(steps), target)):
        other = set(kind.mesh.devices) ^ set(frame.orders[0])
        if other:
            return (ArrayViolation(ArrayViolationKind.DEVICES, number, min(other)),)
    ends = (blocks_of_type(source), blocks_of_type(target))
    return _violations(_World(frame, start, _moves(steps), ends).run())


def check_result(
    frame: Frame, source: ArrayState, steps: Sequence[StepOrSourced], target: ArrayState
) -> tuple[ArrayViolation, ...]:
    """The same between two states of a frame."""
    ends = (blocks_of_state(frame, source), blocks_of_state(frame, target))
    return _violations(_World(frame, source, _moves(steps), ends).run())


def _violations(found: HeldBlocks | ArrayViolation) -> tuple[ArrayViolation, ...]:
    return (found,) if isinstance(found, ArrayViolation) else ()


def _moves(steps: Sequence[StepOrSourced]) -> list[SourcedStep]:
    return [(step, ()) if isinstance(step, ArrayStep) else step for step in steps]


def run_steps(
    frame: Frame, start: ArrayState, moves: Sequence[SourcedStep]
) -> HeldBlocks | ArrayViolation:
    """What devices hold after all steps, or the first violation."""
    last = moves[-1][0].after if moves else start
    ends = (blocks_of_state(frame, start), blocks_of_state(frame, last))
    return _World(frame, start, moves, ends).run()


class _World:
    """A plan in its frame: the cells that its blocks need, and the run of its steps."""

    def __init__(
        self,
        frame: Frame,
        start: ArrayState,
        moves: Sequence[SourcedStep],
        ends: tuple[DeviceBlocks, DeviceBlocks],
    ) -> None:
        self.frame, self.moves = frame, moves
        self.first, self.last = ends
        self.devices = np.unique(frame.orders[0])
        states = [start, *(step.after for step, _ in moves)]
        self.states, self.blocks = states, [blocks_of_state(frame, state) for state in states]
        self.cells = [
            DimensionCells.of(size, [one.dims[i] for one in (*ends, *self.blocks)], frame.devices)
            for i, size in enumerate(frame.shape)
        ]

    def run(self) -> HeldBlocks | ArrayViolation:
        number = 0
        try:
            held = self._of_blocks(self.first)
            self._compare(held, self.blocks[0])
            for number, (step, sources) in enumerate(self.moves, 1):
                if step.before != self.states[number - 1]:
                    raise _Wrong(ArrayViolationKind.SEQUENCE, 0)
                held = self._after(held, step, sources)
                self._compare(held, self.blocks[number])
            self._compare(held, self.last)
        except _Wrong as wrong:
            return ArrayViolation(wrong.kind, number, int(self.devices[wrong.device]), wrong.chunk)
        return held

    def _of_blocks(self, blocks: DeviceBlocks) -> HeldBlocks:
        """What devices hold where these are their blocks, by the source's contributions."""
        pairs = zip(self.cells, blocks.dims, strict=True)
        rows = tuple(cells.rows(splits, self.frame.devices) for cells, splits in pairs)
        return HeldBlocks(rows, blocks.contributions(self.first.partial))

    def _compare(self, held: HeldBlocks, blocks: DeviceBlocks) -> None:
        """Whether devices hold what these blocks say."""
        wanted = self._of_blocks(blocks)
        for dim, (has, wants) in enumerate(zip(held.rows, wanted.rows, strict=True)):
            has, wants = _widened(has, wants.shape[1]), _widened(wants, has.shape[1])
            self._refuse(has != wants, ArrayViolationKind.ELEMENTS, dim, wants)
        self._refuse(held.counts > 1, ArrayViolationKind.SUMMED_TWICE)
        self._refuse(held.counts != wanted.counts, ArrayViolationKind.CONTRIBUTIONS)

    def _refuse(
        self,
        wrong: BoolArray,
        kind: ArrayViolationKind,
        dim: int | None = None,
        cells: CellArray | None = None,
        devices: IntArray | None = None,
    ) -> None:
        """Raise where an entry is wrong; rows are of ``devices``, or of all in order."""
        if not wrong.any():
            return
        row, column = (int(place) for place in np.argwhere(wrong)[0])
        device = row if devices is None else int(devices[row])
        if dim is None or cells is None:
            raise _Wrong(kind, device)
        cell = max(int(cells[row, column]), 0)
        raise _Wrong(kind, device, (dim, int(self.cells[dim].bounds[cell])))

    def _after(self, held: HeldBlocks, step: ArrayStep, sources: Sequence[int]) -> HeldBlocks:
        if step.kind is StepKind.PERMUTE:
            return self._permuted(held, step, sources)
        group = GroupMembers.of(self.frame, step)
        rows = tuple(self._dimension(dim, has, step, group) for dim, has in enumerate(held.rows))
        return HeldBlocks(rows, self._counted(held.counts, step, group))

    def _permuted(self, held: HeldBlocks, step: ArrayStep, sources: Sequence[int]) -> HeldBlocks:
        chosen = self._any_sources(step)
        if len(sources):
            given = np.array(sources, dtype=np.int64)
            if given.shape != chosen.shape or not np.isin(given, self.devices).all():
                raise _Wrong(ArrayViolationKind.SOURCES, 0)
            chosen = np.searchsorted(self.devices, given)
        return HeldBlocks(tuple(rows[chosen] for rows in held.rows), held.counts[chosen])

    def _any_sources(self, step: ArrayStep) -> IntArray:
        """For the k-th taker of each block its k-th holder, by number of the device."""
        found = np.zeros(self.frame.devices, dtype=np.int64)
        holders, takers = (np.lexsort(self._block(s)) for s in (step.before, step.after))
        found[takers] = holders
        return found

    def _block(self, state: ArrayState) -> list[IntArray]:
        """Per device what tells its block in a state from others."""
        blocks = blocks_of_state(self.frame, state)
        partial = np.empty(self.frame.devices, dtype=np.int64)
        partial[blocks.devices] = blocks.partial
        pairs = zip(self.frame.shape, blocks.dims, strict=True)
        first = [intervals(size, splits, self.frame.devices)[0] for size, splits in pairs]
        return [partial, *first]

    def _dimension(
        self, dim: int, has: CellArray, step: ArrayStep, group: GroupMembers
    ) -> CellArray:
        """The rows of a dimension after a step."""
        lost = step.lost[dim] if step.kind in _JOINS else ()
        gained = step.gained[dim] if step.kind in _CUTS else ()
        if lost and gained:
            raise _Wrong(ArrayViolationKind.TANGLED, 0, (dim, 0))
        if step.kind is StepKind.SLICE:
            return self._chunks(dim, has, self.frame.ways(gained), group.own(gained))
        joined = self._joined(dim, has[group.members], group.number(lost), step.kind, group)
        every = np.repeat(joined, group.size, axis=0)
        rows = self._chunks(dim, every, self.frame.ways(gained), group.tiled(gained))
        found = np.empty((self.frame.devices, rows.shape[1]), dtype=np.int32)
        found[group.members.ravel()] = rows
        return found

    def _joined(
        self, dim: int, blocks: CellArray, place: IntArray, kind: StepKind, group: GroupMembers
    ) -> CellArray:
        """The blocks of each group one after the other, that of ``place`` 0 first.

        Members of one place must have the same cells there; of a reduction all must.
        """
        first = np.unique(place, return_index=True)[1]
        apart = ArrayViolationKind.SUMMED_APART if kind in _REDUCES else ArrayViolationKind.MIXED
        same = blocks[:, first][:, place]
        flat = (-1, blocks.shape[2])
        devices = group.members.ravel()
        self._refuse((blocks != same).reshape(flat), apart, dim, same.reshape(flat), devices)
        return _packed(blocks[:, first].reshape(len(blocks), -1))

    def _chunks(self, dim: int, rows: CellArray, ways: int, part: IntArray) -> CellArray:
        """Of each row its chunk number ``part`` of ``ways``."""
        width = rows.shape[1]
        if ways == 1:
            return rows
        if self.cells[dim].alike and width % ways == 0 and (rows != NONE).all():
            taken = part[:, None] * (width // ways) + np.arange(width // ways)
            return np.take_along_axis(rows, taken, axis=1)
        return self._uneven_chunks(dim, rows, ways, part)

    def _uneven_chunks(self, dim: int, rows: CellArray, ways: int, part: IntArray) -> CellArray:
        """The same by the lengths of cells: chunks are rounded up, and the last ones smaller.

        In a frame without nested dimensions every chunk must be of one length.
        """
        lengths = self.cells[dim].lengths[rows]
        end = lengths.cumsum(axis=1)
        total = end[:, -1:]
        chunk = np.maximum(-(-total // ways), 1)
        which = np.where(rows == NONE, ways, (end - lengths) // chunk)
        cut = (rows != NONE) & (end > (which + 1) * chunk)
        if not self.frame.nested:
            cut |= total % ways != 0
        self._refuse(cut, ArrayViolationKind.CUT, dim, rows)
        wanted = spans((which < part[:, None]).sum(axis=1), (which <= part[:, None]).sum(axis=1))
        taken = np.take_along_axis(rows, np.maximum(wanted, 0), axis=1)
        return np.where(wanted == NONE, NONE, taken).astype(np.int32)

    def _counted(self, counts: CountArray, step: ArrayStep, group: GroupMembers) -> CountArray:
        """The contributions after a collective."""
        if step.kind is StepKind.SLICE:
            return counts
        devices, found = group.members.ravel(), counts.copy()
        blocks = counts[group.members]
        if step.kind in _REDUCES:
            found[devices] = np.repeat(blocks.sum(axis=1, dtype=np.int16), group.size, axis=0)
            return found
        differ = (blocks != blocks[:, :1]).reshape(-1, counts.shape[1])
        self._refuse(differ, ArrayViolationKind.MIXED, devices=devices)
        return found


def _widened(rows: CellArray, width: int) -> CellArray:
    """Rows with at least so many columns."""
    more = max(width - rows.shape[1], 0)
    return np.pad(rows, ((0, 0), (0, more)), constant_values=NONE) if more else rows


def _packed(rows: CellArray) -> CellArray:
    """Rows whose cells come first, and whose last column some row needs."""
    there = rows != NONE
    if there.all():
        return rows
    width = int(there.sum(axis=1).max(initial=0))
    found = np.full((len(rows), width), NONE, dtype=np.int32)
    found[np.nonzero(there)[0], (there.cumsum(axis=1) - 1)[there]] = rows[there]
    return found

"""Where places of chunks are in the buffers of ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p2smt.collectives.contract import Contract, contract
from p2smt.errors import InputError
from p2smt.problems.edge_ways import EdgeRow
from p2smt.schedules.construction.builder import Builder
from p2smt.schedules.lower.chunked.demand import at_home, classes_of, rule_of
from p2smt.schedules.lower.chunked.keeping import FINAL, OWN
from p2smt.schedules.lower.chunked.placed import ChunkRooms, PlacedChunk
from p2smt.schedules.model import Buffer, Span


@dataclass(frozen=True, slots=True)
class AskedChunks:
    """A collective, of ``chunks`` chunks a rank, pair or in all, and whether it runs in place."""

    collective: str
    ranks: int
    chunks: int
    root: int
    in_place: bool

    @property
    def contract(self) -> Contract:
        """What it is given and must produce."""
        return contract(
            self.collective, self.ranks, self.chunks, in_place=self.in_place, root=self.root
        )

    @property
    def shift(self) -> tuple[int, ...]:
        """By rank, how its input and its output lie to each other in place; else empty."""
        rule = rule_of(self.collective)
        ranks = range(self.ranks if self.in_place else 0)
        return tuple(rule.shift(rank, self.chunks) for rank in ranks)

    @property
    def buffers(self) -> tuple[int, int]:
        """Chunks of input and of output, on every rank."""
        rule = rule_of(self.collective)
        whole = self.ranks * self.chunks
        return (
            whole if rule.input_parts else self.chunks,
            whole if rule.output_parts else self.chunks,
        )

    def rooms(self) -> ChunkRooms:
        """What ranks have of the chunks of every class.

        Raises:
            InputError: an all-to-all in place: what arrives would overwrite what is to be sent.
        """
        rule = rule_of(self.collective)
        if self.in_place and rule.input_parts and rule.output_parts:
            raise InputError(f"{self.collective} in place", "has no memory for what arrives")
        classes = classes_of(self.collective, self.ranks, self.chunks, self.root)
        shift = self.shift
        shared = frozenset(
            (number, rank)
            for number, one in enumerate(classes)
            for rank in set(one.givers) & set(one.takers)
            if self.in_place and one.input + shift[rank] == one.output
        )
        return ChunkRooms(classes, self.chunks, shared, self.in_place)


@dataclass(frozen=True, slots=True)
class ChunkLayout:
    """The span of every place of a chunk; chunks by their new numbers.

    larger: of input and output.  scratch: by rank, where (plane, chunk) lies.
    """

    asked: AskedChunks
    rooms: ChunkRooms
    shift: tuple[int, ...]
    larger: Buffer
    scratch: Mapping[int, Mapping[tuple[int, int], int]]

    def span(self, chunk: int, rank: int, place: int) -> Span:
        """The chunk's place at a rank; in place, in the larger of input and output."""
        if place not in (OWN, FINAL):
            return Span(rank, Buffer.SCRATCH, self.scratch[rank][place, chunk], 1)
        number, part = divmod(chunk, self.asked.chunks)
        one = self.rooms.classes[number]
        if place == OWN:
            return self.at(rank, Buffer.INPUT, one.input + part)
        return self.at(rank, Buffer.OUTPUT, one.output + part)

    def at(self, rank: int, buffer: Buffer, start: int, count: int = 1) -> Span:
        """Chunks of input or output; in place by the name of the larger one."""
        if self.shift:
            shift = self.shift[rank]
            start += max(shift, 0) if buffer is Buffer.INPUT else max(-shift, 0)
            buffer = self.larger
        return Span(rank, buffer, start, count)


def layout_of(
    asked: AskedChunks,
    rooms: ChunkRooms,
    chunks: Sequence[PlacedChunk],
    order: Sequence[int],
    edges: Sequence[EdgeRow],
) -> ChunkLayout:
    """The layout; scratch holds what is used of it, plane by plane, in the order of the chunks."""
    used: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for new, old in enumerate(order):
        for rank, place in _places(chunks[old], edges):
            if place not in (OWN, FINAL):
                used[rank].add((place, new))
    scratch = {
        rank: {key: start for start, key in enumerate(sorted(keys))} for rank, keys in used.items()
    }
    inputs, outputs = asked.buffers
    larger = Buffer.OUTPUT if outputs >= inputs else Buffer.INPUT
    return ChunkLayout(asked, rooms, asked.shift, larger, scratch)


def _places(chunk: PlacedChunk, edges: Sequence[EdgeRow]) -> set[tuple[int, int]]:
    """The places of a chunk that anything uses, by rank."""
    found = {
        (rank, place)
        for rank, moves in chunk.moves
        for m in moves
        for place in (m.source, m.target)
    }
    for step in chunk.messages:
        for message in step:
            source, target, _ = edges[message.edge]
            found |= {(source, message.source), (target, message.target)}
    return found


def copy_home(b: Builder, layout: ChunkLayout, most: int) -> None:
    """What ranks have for themselves alone goes from their input to their output."""
    asked = layout.asked
    for one in at_home(asked.collective, asked.ranks, asked.chunks, asked.root):
        for first in range(0, asked.chunks, most):
            count, rank = min(most, asked.chunks - first), one.givers[0]
            source = layout.at(rank, Buffer.INPUT, one.input + first, count)
            target = layout.at(rank, Buffer.OUTPUT, one.output + first, count)
            if source != target:
                b.copy(source, target)

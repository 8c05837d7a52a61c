"""Memory and collectives for a symbolic number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.collectives.contract import COLLECTIVES
from p2smt.problems.claim import Operator, Term, both, infix, named, whole
from p2smt.schedules.families.invariants import NOTHING, Content, choose
from p2smt.schedules.families.lock_step import NoArgument
from p2smt.schedules.language.expression import parse
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from p2smt.schedules.language.file_model import CollectiveModel

ZERO, ONE = whole(0), whole(1)
Cells = Callable[[Term, Term], Content]
"""What a chunk of a rank's memory holds, by rank and place."""


def plus(a: Term, b: Term) -> Term:
    """a + b."""
    return infix(Operator.PLUS, a, b)


def minus(a: Term, b: Term) -> Term:
    """a - b."""
    return infix(Operator.MINUS, a, b)


def within(value: Term, low: Term, end: Term) -> Term:
    """low <= value < end."""
    return both((infix(Operator.AT_MOST, low, value), infix(Operator.LESS, value, end)))


@dataclass(frozen=True, slots=True)
class Goals:
    """On ranks with ``where``, output chunk ``chunk`` must hold ``content``.

    ranges: of the names used, as terms: ``rank`` and others.
    """

    chunk: Term
    content: Content
    where: Term
    ranges: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class SymbolicMemory:
    """A collective on n ranks, in chunks.

    inputs, outputs, scratch: buffer sizes.  shift: as in ``Contract.shift``, as a multiple of
    ``rank`` (in place).
    """

    kind: str
    size: Term
    chunks: Term
    root: Term
    inputs: Term
    outputs: Term
    scratch: Term
    in_place: bool

    def room(self, buffer: Buffer) -> Term:
        """Chunks in a buffer."""
        match buffer:
            case Buffer.INPUT:
                return self.inputs
            case Buffer.OUTPUT:
                return self.outputs
            case Buffer.SCRATCH:
                return self.scratch

    def offset(self, buffer: Buffer, rank: Term) -> Term:
        """Where the buffer begins in its memory."""
        if not self.in_place or buffer is Buffer.SCRATCH:
            return ZERO
        shifted = {"allgather": Buffer.INPUT, "gather": Buffer.INPUT}
        shifted |= {"reduce_scatter": Buffer.OUTPUT, "scatter": Buffer.OUTPUT}
        own = infix(Operator.TIMES, rank, self.chunks)
        return own if shifted.get(self.kind) is buffer else ZERO

    def memory(self, buffer: Buffer) -> str:
        """The name of its memory: one for input and output in place."""
        return "io" if self.in_place and buffer is not Buffer.SCRATCH else buffer.value

    def extent(self, memory: str) -> Term:
        """Chunks in a memory."""
        if memory != "io":
            return self.room(Buffer(memory))
        return self.inputs if self.kind in ("reduce_scatter", "scatter") else self.outputs

    def memories(self) -> tuple[str, ...]:
        """All memories."""
        return ("io", "s") if self.in_place else ("i", "o", "s")

    def start(self) -> Mapping[str, Cells]:
        """What memory holds at the start."""
        own = self.memory(Buffer.INPUT)
        return {name: self._inputs if name == own else _nothing for name in self.memories()}

    def _inputs(self, rank: Term, place: Term) -> Content:
        chunk = minus(place, self.offset(Buffer.INPUT, rank))
        given = within(chunk, ZERO, self.inputs)
        if self.kind in ("broadcast", "scatter"):
            given = both((given, infix(Operator.EQUAL, rank, self.root)))
        return choose(given, Content(rank, ONE, chunk), NOTHING)

    def goals(self) -> Goals:
        """What the output must hold, in the names rank, part! and chunk!."""
        rank, part, chunk = named("rank"), named("part!"), named("chunk!")
        ranges = (within(part, ZERO, self.size), within(chunk, ZERO, self.chunks))
        everywhere, at_root = ONE, infix(Operator.EQUAL, rank, self.root)
        own = plus(infix(Operator.TIMES, rank, self.chunks), chunk)
        placed = plus(infix(Operator.TIMES, part, self.chunks), chunk)
        where, at, content = {
            "allreduce": (everywhere, chunk, self._sum(chunk)),
            "reduce": (at_root, chunk, self._sum(chunk)),
            "broadcast": (everywhere, chunk, Content(self.root, ONE, chunk)),
            "allgather": (everywhere, placed, Content(part, ONE, chunk)),
            "gather": (at_root, placed, Content(part, ONE, chunk)),
            "reduce_scatter": (everywhere, chunk, self._sum(own)),
            "scatter": (everywhere, chunk, Content(self.root, ONE, own)),
            "alltoall": (everywhere, placed, Content(part, ONE, own)),
        }[self.kind]
        return Goals(at, content, where, ranges)

    def _sum(self, chunk: Term) -> Content:
        return Content(ZERO, self.size, chunk)


def _nothing(_rank: Term, _place: Term) -> Content:
    return NOTHING


def symbolic_memory_of(
    model: CollectiveModel, size: str, scratch: Term, fill: Callable[[Term, int], Term]
) -> SymbolicMemory:
    """The collective of a file; ``fill`` fills in derived names and refuses what is not.

    Raises:
        NoArgument: it has no number of chunks.
    """
    if model.chunks is None or model.kind not in COLLECTIVES:
        raise NoArgument("the collective is not a named one")
    n, chunks, root = named(size), fill(parse(model.chunks), 0), fill(parse(model.root), 0)
    many = infix(Operator.TIMES, n, chunks)
    inputs = many if model.kind in ("reduce_scatter", "scatter", "alltoall") else chunks
    outputs = many if model.kind in ("allgather", "gather", "alltoall") else chunks
    return SymbolicMemory(model.kind, n, chunks, root, inputs, outputs, scratch, model.in_place)

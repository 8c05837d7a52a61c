"""Memory and collectives for a symbolic number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.collectives.contract import RULES, CollectiveRule, MadeOf
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
    """A collective on n ranks, in chunks: its rule, written in terms.

    inputs, outputs, scratch: buffer sizes.  shift: as in ``Contract.shift``, as a multiple of
    ``rank`` (in place).
    """

    rule: CollectiveRule
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
        parted = {Buffer.INPUT: self.rule.input_parts, Buffer.OUTPUT: self.rule.output_parts}
        smaller = any(parted.values()) and not parted[buffer]
        return infix(Operator.TIMES, rank, self.chunks) if smaller else ZERO

    def memory(self, buffer: Buffer) -> str:
        """The name of its memory: one for input and output in place."""
        return "io" if self.in_place and buffer is not Buffer.SCRATCH else buffer.value

    def extent(self, memory: str) -> Term:
        """Chunks in a memory."""
        if memory != "io":
            return self.room(Buffer(memory))
        return self.inputs if self.rule.input_parts else self.outputs

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
        if self.rule.source is MadeOf.ROOT:
            given = both((given, infix(Operator.EQUAL, rank, self.root)))
        return choose(given, Content(rank, ONE, chunk), NOTHING)

    def goals(self) -> Goals:
        """What the output must hold, in the names rank, part! and chunk!."""
        rank, part, chunk = named("rank"), named("part!"), named("chunk!")
        ranges = (within(part, ZERO, self.size), within(chunk, ZERO, self.chunks))
        where = infix(Operator.EQUAL, rank, self.root) if self.rule.at_root else ONE
        own = plus(infix(Operator.TIMES, rank, self.chunks), chunk)
        placed = plus(infix(Operator.TIMES, part, self.chunks), chunk)
        taken = own if self.rule.input_parts else chunk
        content = self._content(part, taken)
        return Goals(placed if self.rule.output_parts else chunk, content, where, ranges)

    def _content(self, part: Term, chunk: Term) -> Content:
        """What an output chunk of the part of rank ``part`` is made of: these input chunks."""
        match self.rule.source:
            case MadeOf.SUM:
                return Content(ZERO, self.size, chunk)
            case MadeOf.ROOT:
                return Content(self.root, ONE, chunk)
            case MadeOf.OWNER:
                return Content(part, ONE, chunk)
            case MadeOf.BEFORE_IN_RING:
                before = plus(named("rank"), minus(self.size, ONE))
                return Content(infix(Operator.MOD, before, self.size), ONE, chunk)
            case MadeOf.BEFORE:
                raise NoArgument("the first rank of a send ends with nothing")


def _nothing(_rank: Term, _place: Term) -> Content:
    return NOTHING


def symbolic_memory_of(
    model: CollectiveModel, size: str, scratch: Term, fill: Callable[[Term, int], Term]
) -> SymbolicMemory:
    """The collective of a file; ``fill`` fills in derived names and refuses what is not.

    Raises:
        NoArgument: it has no number of chunks.
    """
    if model.chunks is None or model.kind not in RULES:
        raise NoArgument("the collective is not a named one")
    rule = RULES[model.kind]
    n, chunks, root = named(size), fill(parse(model.chunks), 0), fill(parse(model.root), 0)
    many = infix(Operator.TIMES, n, chunks)
    inputs = many if rule.input_parts else chunks
    outputs = many if rule.output_parts else chunks
    return SymbolicMemory(rule, n, chunks, root, inputs, outputs, scratch, model.in_place)

"""Recognises schedules that the inductive proof is for: every rank runs one block in lock-step.

All ranks run the same block, of plain steps on single chunks of their own memory and loops of
such steps, without conditions, waits, counters or barriers.  Then position p of one rank's
block is the same line, in the same turn of the same loop, as position p of another's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.problems.race import Operator, Term, infix, named, substituted, whole
from p2smt.schedules.language.expression import TokenStream, parse, take_term
from p2smt.schedules.language.file_model import BuffersModel
from p2smt.schedules.language.grammar import RANK, PeerText, SpanText, StepText
from p2smt.schedules.language.items import Group, Line, located
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from p2smt.schedules.language.schedule_file import Symbolic


_ZERO = whole(0)
_NOT_LINEAR = (Operator.FLOOR, Operator.MOD, Operator.POWER, Operator.LOG2, Operator.XOR)


class NoArgument(Exception):
    """There is no argument for all sizes; says why, in words."""


@dataclass(frozen=True, slots=True)
class SymbolicMove:
    """A step; ``source`` and ``target`` are the ranks it receives from and sends to."""

    line: int
    reads: tuple[SpanText, ...]
    writes: tuple[SpanText, ...]
    source: Term | None
    target: Term | None
    channels: tuple[int, int]


@dataclass(frozen=True, slots=True)
class SymbolicPhase:
    """Moves that all ranks make: once, or for ``name`` = ``low`` .. ``high``."""

    line: int
    moves: tuple[SymbolicMove, ...]
    name: str = ""
    low: Term = _ZERO
    high: Term = _ZERO
    holds: tuple[Holds, ...] = ()


@dataclass(frozen=True, slots=True)
class LockStep:
    """A family of schedules of this shape.

    size: the parameter that is the number of ranks.
    ranges: what is known about the parameters.
    """

    size: str
    ranges: tuple[Term, ...]
    phases: tuple[SymbolicPhase, ...]
    scratch: Term


def lock_step(symbolic: Symbolic) -> LockStep:
    """The family as one of this shape.

    Raises:
        NoArgument: it is not of this shape.
        InputError: an invariant cannot be parsed.
    """
    names = {name for name, _ in symbolic.free}
    if symbolic.ranks.op is not Operator.NAME or symbolic.ranks.name not in names:
        raise NoArgument("the number of ranks is not a free parameter")
    if len(symbolic.blocks) != 1 or symbolic.blocks[0].rank is not None:
        raise NoArgument("the ranks do not all run one block of the same template")
    (block,) = symbolic.blocks
    plain = block.block.op is Operator.NUMBER and not block.repeat and block.when is None
    if not plain or symbolic.initial or symbolic.model.collective.goals:
        raise NoArgument("it has blocks that vary, counters or goals of its own")
    buffers, known = symbolic.model.buffers, _ranges(symbolic)
    if not isinstance(buffers, BuffersModel) or buffers.input or buffers.output:
        raise NoArgument("buffer sizes are given that do not follow from the collective")
    fill = filler_of(symbolic)
    phases = tuple(_phases(symbolic, block.parts, fill))
    return LockStep(symbolic.ranks.name, known, phases, _scratch(symbolic))


def _scratch(symbolic: Symbolic) -> Term:
    buffers = symbolic.model.buffers
    text = buffers.scratch if isinstance(buffers, BuffersModel) else "0"
    return filler_of(symbolic)(parse(text), symbolic.line("buffers"))


def _ranges(symbolic: Symbolic) -> tuple[Term, ...]:
    found = []
    for name, spec in symbolic.free:
        found.append(infix(Operator.AT_LEAST, named(name), whole(spec.at_least)))
        if spec.at_most is not None:
            found.append(infix(Operator.AT_MOST, named(name), whole(spec.at_most)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Filler:
    """Fills in names that stand for terms; ``known`` are the other names."""

    size: str
    values: dict[str, Term]
    known: frozenset[str]

    def __call__(self, term: Term, line: int) -> Term:
        """The term without the names that stand for others.

        Raises:
            NoArgument: an operator can fail or is one that no solver decides, or a name is
                unknown.
        """
        found = substituted(term, self.values)
        where = f"line {line}" if line else "the collective"
        _refuse_others(found, self.size, where)
        unknown = sorted({*found.names()} - self.known)
        if unknown:
            raise NoArgument(f"{where} has the unknown name {unknown[0]!r}")
        return found

    def inside(self, names: Sequence[str], values: dict[str, Term], line: int) -> Filler:
        """With more names.

        Raises:
            NoArgument: one is known already.
        """
        for name in (*names, *values):
            if name in self.known or name in self.values:
                raise NoArgument(f"line {line} has the name {name!r} a second time")
        known = self.known | frozenset(names)
        return Filler(self.size, {**self.values, **values}, known)


def _refuse_others(term: Term, size: str, where: str) -> None:
    remainder = term.op is Operator.MOD and term.args[1] == named(size)
    if term.op in _NOT_LINEAR and not remainder:
        raise NoArgument(f"{where} has an expression ({term.op}) that is not linear")
    for part in term.args:
        _refuse_others(part, size, where)


def filler_of(symbolic: Symbolic) -> Filler:
    """What fills in the derived parameters."""
    known = frozenset(name for name, _ in symbolic.free)
    return Filler(symbolic.ranks.name, _derived(symbolic), known)


def _derived(symbolic: Symbolic) -> dict[str, Term]:
    found: dict[str, Term] = {}
    for name, term in symbolic.derived:
        found[name] = substituted(term, found)
    return found


def _phases(
    symbolic: Symbolic, parts: Sequence[Line[StepText] | Group[StepText]], fill: Filler
) -> list[SymbolicPhase]:
    on_rank = fill.inside(["rank"], {}, 0)
    phases: list[SymbolicPhase] = []
    plain: list[SymbolicMove] = []
    for part in parts:
        if isinstance(part, Line):
            plain.append(_move(part, on_rank))
            continue
        if plain:
            phases.append(SymbolicPhase(plain[0].line, tuple(plain)))
            plain = []
        phases.append(_loop(symbolic, part, fill))
    return [*phases, SymbolicPhase(plain[0].line, tuple(plain))] if plain else phases


def _loop(symbolic: Symbolic, group: Group[StepText], fill: Filler) -> SymbolicPhase:
    if group.when is not None or not group.repeat:
        raise NoArgument(f"line {group.line} has a condition")
    if not group.holds:
        raise NoArgument(f"the loop at line {group.line} has no invariant (holds)")
    first, *others = group.repeat
    low, high = fill(first.low, group.line), fill(first.high, group.line)
    inside = fill.inside(["rank", first.name], {}, group.line)
    for one in others:
        if one.low != one.high:
            raise NoArgument(f"the loop at line {group.line} runs over more than one name")
        value = inside(one.low, group.line)
        inside = inside.inside([], {one.name: value}, group.line)
    moves = []
    for part in group.parts:
        if not isinstance(part, Line):
            raise NoArgument(f"line {part.line} is a loop or a condition inside a loop")
        moves.append(_move(part, inside))
    holds = tuple(_holds(symbolic, line, inside) for line in group.holds)
    return SymbolicPhase(group.line, tuple(moves), first.name, low, high, holds)


def _holds(symbolic: Symbolic, line: Line[str], fill: Filler) -> Holds:
    with located(symbolic.source, line.line):
        found = parse_holds(line.value)
    inside = fill.inside([found.cell], {}, line.line)
    given = (found.content.first, found.content.length, found.content.chunk)
    content = Content(*(inside(term, line.line) for term in given))
    return Holds(found.buffer, found.cell, content, inside(found.when, line.line))


def _move(line: Line[StepText], fill: Filler) -> SymbolicMove:
    step = line.value
    ordered = step.waits or step.after is not None or step.posts or step.awaits or step.barrier
    if ordered or step.background or step.lane or step.count is not None:
        raise NoArgument(f"line {line.line} has more than chunks and peers")
    reads, writes = (
        tuple(_own(span, line.line, fill) for span in spans) for spans in (step.reads, step.writes)
    )
    source, incoming = _peer(step.receive, line.line, fill, receives=True)
    target, outgoing = _peer(step.send, line.line, fill, receives=False)
    return SymbolicMove(line.line, reads, writes, source, target, (incoming, outgoing))


def _own(span: SpanText, line: int, fill: Filler) -> SpanText:
    if span.rank != RANK or span.packet or span.first != span.last:
        raise NoArgument(f"line {line} names more than single chunks of the rank itself")
    first = fill(span.first, line)
    return SpanText(span.buffer, first, first)


def _peer(
    peer: PeerText | None, line: int, fill: Filler, *, receives: bool
) -> tuple[Term | None, int]:
    if peer is None:
        return None, 0
    own, other = (peer.target, peer.source) if receives else (peer.source, peer.target)
    if own != RANK or peer.channel.op is not Operator.NUMBER:
        raise NoArgument(f"line {line} has a connection that depends on more than the peer")
    return fill(other, line), peer.channel.value


# What memory holds, as intervals of ranks: the invariants of loops.
#     BUFFER[NAME] is chunk EXPRESSION of ranks FIRST..LAST [when CONDITION]
#     BUFFER[NAME] is chunk EXPRESSION of rank EXPRESSION [when CONDITION]
#
# Ranks count round: n - 1 is followed by 0.  Of several lines for a chunk the first whose
# condition holds counts; a chunk without one may hold anything.


_WORDS = frozenset({"is", "chunk", "of", "ranks", "when"})


@dataclass(frozen=True, slots=True)
class Content:
    """The sum of a chunk of ``length`` ranks from ``first`` on; of no rank: anything."""

    first: Term
    length: Term
    chunk: Term

    def replaced(self, values: dict[str, Term]) -> Content:
        """With names replaced."""
        parts = (substituted(part, values) for part in (self.first, self.length, self.chunk))
        return Content(*parts)


NOTHING = Content(whole(0), whole(0), whole(0))


def choose(condition: Term, then: Content, other: Content) -> Content:
    """One content or the other."""
    pairs = ((then.first, other.first), (then.length, other.length), (then.chunk, other.chunk))
    return Content(*(Term(Operator.IF, (condition, a, b)) for a, b in pairs))


@dataclass(frozen=True, slots=True)
class Holds:
    """A line of an invariant, about chunk ``cell`` of a buffer of rank ``rank``."""

    buffer: Buffer
    cell: str
    content: Content
    when: Term


def parse_holds(text: str) -> Holds:
    """The line of an invariant.

    Raises:
        InputError: the text is none.
    """
    tokens = TokenStream(text, _WORDS)
    buffer, cell = _cell(tokens)
    for word in ("is", "chunk"):
        tokens.expect(word)
    chunk = take_term(tokens)
    tokens.expect("of")
    first, length = _ranks(tokens)
    when = take_term(tokens) if tokens.accept("when") else whole(1)
    if tokens.peek():
        raise tokens.error("expected the end", "see docs/schedule-file.md")
    return Holds(buffer, cell, Content(first, length, chunk), when)


def _cell(tokens: TokenStream) -> tuple[Buffer, str]:
    if tokens.peek() not in ("i", "o", "s"):
        raise tokens.error("expected a chunk", "such as i[c]")
    buffer = Buffer(tokens.take())
    tokens.expect("[")
    name = take_term(tokens)
    if name.op is not Operator.NAME or name.name == "rank":
        raise InputError("the chunk of an invariant", "must be a name", "such as i[c]")
    tokens.expect("]")
    return buffer, name.name


def _ranks(tokens: TokenStream) -> tuple[Term, Term]:
    if not tokens.accept("ranks"):
        tokens.expect("rank")
        return take_term(tokens), whole(1)
    first = take_term(tokens)
    tokens.expect("..")
    last = take_term(tokens)
    return first, infix(Operator.PLUS, infix(Operator.MINUS, last, first), whole(1))

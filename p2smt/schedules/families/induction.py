"""A proof for every number of ranks, by induction over the turns of loops, where there is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.collectives.contract import RULES, CollectiveRule, MadeOf
from p2smt.problems.race import Claim, Operator, Term, both, infix, named, substituted, whole
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.schedules.families.lock_step import (
    NOTHING,
    Content,
    Holds,
    LockStep,
    NoArgument,
    SymbolicMove,
    SymbolicPhase,
    choose,
    filler_of,
    lock_step,
)
from p2smt.schedules.language.expression import parse
from p2smt.schedules.language.grammar import RANK
from p2smt.schedules.model import Buffer
from p2smt.solvers.ask import Proof, Solver, ask

if TYPE_CHECKING:
    from p2smt.schedules.language.file_model import CollectiveModel
    from p2smt.schedules.language.grammar import SpanText
    from p2smt.schedules.language.schedule_file import Symbolic


@dataclass(frozen=True, slots=True)
class Induction:
    """Whether a family is proved right for all its sizes.

    proved: a proof was found; otherwise nothing is known beyond single sizes.
    scope: the sizes, as in "all n >= 2".
    claims: how many claims the proof has.
    reason: why there is no proof.
    """

    proved: bool
    scope: str
    claims: int = 0
    reason: str = ""


def prove_all_sizes(
    symbolic: Symbolic, fifo_depth: int = 8, time_limit_s: float = 30.0
) -> Induction:
    """Looks for the inductive proof; the argument is in ``claims``.

    Raises:
        InputError: an invariant of the file cannot be parsed; names the line.
    """
    scope = _scope(symbolic)
    try:
        family = lock_step(symbolic)
        fill = filler_of(symbolic)
        space = symbolic_memory_of(symbolic.model.collective, family.size, family.scratch, fill)
        claims = claims_of(family, space)
    except NoArgument as error:
        return Induction(False, scope, reason=str(error))
    if fifo_depth < needed_depth(family):
        reason = f"the argument needs connections of depth {needed_depth(family)}"
        return Induction(False, scope, reason=reason)
    watch = StopWatch.start(SearchLimits(time_limit_s=time_limit_s))
    for claim in claims:
        if ask(claim, Proof(), Solver.Z3, watch.left()).status is not Status.COMPLETE:
            late = " within the time limit" if watch.expired() else ""
            return Induction(False, scope, reason=f"no proof of {claim.title}{late}")
    return Induction(True, scope, len(claims))


def _scope(symbolic: Symbolic) -> str:
    texts = []
    for name, spec in symbolic.free:
        most = "" if spec.at_most is None else f" up to {spec.at_most}"
        least = max(spec.at_least, int(name == symbolic.ranks.name))  # there is a rank
        texts.append(f"{name} >= {least}{most}")
    return f"all {', '.join(texts)}"


# The claims from which a lock-step schedule is right for every number of ranks.
# The argument.  All ranks run the same moves, so a position in a block means the same move of the
# same turn on every rank.  In every turn of a loop, and in every run of moves between loops, the
# k-th send on a channel is paired with the k-th receive on it.  The claims say that
#
# * peers: sender and receiver of a pair name each other, so the pairing is one to one, and on each
#   connection messages are received in the order in which they were sent;
# * bounds: chunks that are read or written exist;
# * defined, sum: what is read is defined, and what is added up is disjoint;
# * first, turn: an invariant holds before the first turn, and after each if before it;
# * goal: after the last move the output is what it must be.
#
# A receive has a later position than its send, and a send needs room that moves of earlier turns
# make, if a connection holds as many messages as a turn sends on one channel.  So whatever has the
# smallest position of all that is unfinished can go on: no interleaving is stuck.  A rank's memory
# is touched by its own block alone and messages are first-in first-out, so the values are the same
# in every interleaving: those that are computed here, position by position.


PLACE = named("place!")


def needed_depth(family: LockStep) -> int:
    """Messages that a connection must hold: those of one turn on one channel; at least 1."""
    turns = (Counter(m.channels[1] for m in p.moves if m.target) for p in family.phases)
    return max((most for turn in turns for most in turn.values()), default=1)


def claims_of(family: LockStep, space: SymbolicMemory) -> tuple[Claim, ...]:
    """The claims of a family.

    Raises:
        NoArgument: sends and receives of a turn cannot be paired.
    """
    known = (*family.ranges, infix(Operator.AT_LEAST, named(family.size), ONE))
    return _Argument(family, space, known, dict(space.start())).all()


def pairs_of(phase: SymbolicPhase) -> dict[int, int]:
    """The position of the send by the position of its receive, in one turn.

    Raises:
        NoArgument: their numbers differ, or a receive does not come after its send.
    """
    found: dict[int, int] = {}
    moves = list(enumerate(phase.moves))
    for channel in sorted({c for move in phase.moves for c in move.channels}):
        sends = [i for i, move in moves if move.target and move.channels[1] == channel]
        receives = [i for i, move in moves if move.source and move.channels[0] == channel]
        if len(sends) != len(receives):
            raise NoArgument(f"from line {phase.line} on, a turn leaves messages to later turns")
        found |= dict(zip(receives, sends, strict=True))
    for receive, send in found.items():
        if receive <= send:
            line = phase.moves[receive].line
            raise NoArgument(f"line {line} receives what a later line of the same turn sends")
    return found


@dataclass(slots=True)
class _Argument:
    """Goes through the moves, keeping what memory holds after them."""

    family: LockStep
    space: SymbolicMemory
    known: tuple[Term, ...]
    memory: dict[str, Cells]
    claims: list[Claim] = field(default_factory=list)

    def all(self) -> tuple[Claim, ...]:
        for phase in self.family.phases:
            if phase.name:
                self._loop(phase)
            else:
                self._moves(phase, ())
        self._goal()
        return tuple(self.claims)

    def _claim(self, title: str, given: tuple[Term, ...], conclusion: Term) -> None:
        ranks = within(RANK, ZERO, self.space.size)
        given = (*self.known, ranks, *given)
        self.claims.append(Claim(title, self.family.size, given, conclusion))

    def _loop(self, phase: SymbolicPhase) -> None:
        turn, line = named(phase.name), f"the loop at line {phase.line}"
        self._claim(f"{line}: turns", (), infix(Operator.AT_MOST, phase.low, plus(phase.high, ONE)))
        self._implied(f"{line}: first", (), self._invariant(phase, phase.low))
        self.memory = self._invariant(phase, turn)
        inside = (
            infix(Operator.AT_MOST, phase.low, turn),
            infix(Operator.AT_MOST, turn, phase.high),
        )
        self._moves(phase, inside)
        self._implied(f"{line}: turn", inside, self._invariant(phase, plus(turn, ONE)))
        self.memory = self._invariant(phase, plus(phase.high, ONE))

    def _implied(self, title: str, given: tuple[Term, ...], wanted: dict[str, Cells]) -> None:
        """What memory holds is what is wanted, where something is."""
        for name in self.space.memories():
            inside = within(PLACE, ZERO, self.space.extent(name))
            held, want = self.memory[name](RANK, PLACE), wanted[name](RANK, PLACE)
            anything = infix(Operator.EQUAL, want.length, ZERO)
            same = Term(Operator.OR, (anything, self._same(held, want)))
            self._claim(f"{title}, {name}", (*given, inside), same)

    def _invariant(self, phase: SymbolicPhase, turn: Term) -> dict[str, Cells]:
        return {name: self._held(phase, turn, name) for name in self.space.memories()}

    def _held(self, phase: SymbolicPhase, turn: Term, name: str) -> Cells:
        lines = [line for line in phase.holds if self.space.memory(line.buffer) == name]

        def cells(rank: Term, place: Term) -> Content:
            found = NOTHING
            for line in reversed(lines):
                found = self._line(line, {phase.name: turn, "rank": rank}, place, found)
            return found

        return cells

    def _line(
        self, line: Holds, values: dict[str, Term], place: Term, otherwise: Content
    ) -> Content:
        chunk = minus(place, self.space.offset(line.buffer, values["rank"]))
        values = {**values, line.cell: chunk}
        exists = within(chunk, ZERO, self.space.room(line.buffer))
        condition = both((exists, substituted(line.when, values)))
        return choose(condition, line.content.replaced(values), otherwise)

    def _moves(self, phase: SymbolicPhase, given: tuple[Term, ...]) -> None:
        pairs = pairs_of(phase)
        sent: dict[int, Content] = {}
        for position, move in enumerate(phase.moves):
            parts = [self._read(span, move, given) for span in move.reads]
            if move.source is not None:
                sender = phase.moves[pairs[position]]
                self._peers(sender, move, given)
                parts.insert(0, sent[pairs[position]].replaced({"rank": move.source}))
            if not parts:
                if move.writes or move.target is not None:
                    raise NoArgument(f"line {move.line} stores or sends a sum of nothing")
                continue
            value = parts[0]
            for part in parts[1:]:
                value = self._sum(value, part, move, given)
            for span in move.writes:
                self._write(span, value, move, given)
            sent[position] = value

    def _peers(self, sender: SymbolicMove, receiver: SymbolicMove, given: tuple[Term, ...]) -> None:
        target, source = sender.target, receiver.source
        if target is None or source is None:
            raise NoArgument("a pair without peers")
        title = f"lines {sender.line} and {receiver.line}: peers"
        for peer, back in ((target, source), (source, target)):
            other = infix(Operator.UNEQUAL, peer, RANK)
            found = infix(Operator.EQUAL, substituted(back, {"rank": peer}), RANK)
            self._claim(title, given, both((within(peer, ZERO, self.space.size), other, found)))

    def _bounds(self, span: SpanText, move: SymbolicMove, given: tuple[Term, ...]) -> Term:
        inside = within(span.first, ZERO, self.space.room(span.buffer))
        self._claim(f"line {move.line}: bounds", given, inside)
        return plus(span.first, self.space.offset(span.buffer, RANK))

    def _read(self, span: SpanText, move: SymbolicMove, given: tuple[Term, ...]) -> Content:
        place = self._bounds(span, move, given)
        held = self.memory[self.space.memory(span.buffer)](RANK, place)
        self._claim(f"line {move.line}: defined", given, infix(Operator.AT_LEAST, held.length, ONE))
        return held

    def _write(
        self, span: SpanText, value: Content, move: SymbolicMove, given: tuple[Term, ...]
    ) -> None:
        name, at = self.space.memory(span.buffer), self._bounds(span, move, given)
        before = self.memory[name]

        def cells(rank: Term, place: Term) -> Content:
            written = infix(Operator.EQUAL, place, substituted(at, {"rank": rank}))
            return choose(written, value.replaced({"rank": rank}), before(rank, place))

        self.memory = {**self.memory, name: cells}

    def _sum(self, a: Content, b: Content, move: SymbolicMove, given: tuple[Term, ...]) -> Content:
        """Two intervals that follow each other, together at most all ranks."""
        length = plus(a.length, b.length)
        behind = self._congruent(plus(a.first, a.length), b.first)
        before = self._congruent(plus(b.first, b.length), a.first)
        fits = (
            Term(Operator.OR, (behind, before)),
            infix(Operator.EQUAL, a.chunk, b.chunk),
            infix(Operator.AT_MOST, length, self.space.size),
            infix(Operator.AT_LEAST, a.length, ONE),
            infix(Operator.AT_LEAST, b.length, ONE),
        )
        self._claim(f"line {move.line}: sum", given, both(fits))
        return Content(Term(Operator.IF, (behind, a.first, b.first)), length, a.chunk)

    def _congruent(self, a: Term, b: Term) -> Term:
        return infix(Operator.EQUAL, infix(Operator.MOD, minus(a, b), self.space.size), ZERO)

    def _same(self, a: Content, b: Content) -> Term:
        everything = infix(Operator.EQUAL, a.length, self.space.size)
        first = Term(Operator.OR, (everything, self._congruent(a.first, b.first)))
        equal = (infix(Operator.EQUAL, a.length, b.length), infix(Operator.EQUAL, a.chunk, b.chunk))
        return both((*equal, first))

    def _goal(self) -> None:
        goals = self.space.goals()
        output = goals.chunk
        place = plus(output, self.space.offset(Buffer.OUTPUT, RANK))
        held = self.memory[self.space.memory(Buffer.OUTPUT)](RANK, place)
        given = (*goals.ranges, goals.where)
        root = within(self.space.root, ZERO, self.space.size)
        self._claim("root", (), root)
        self._claim("chunks", (), infix(Operator.AT_LEAST, self.space.chunks, ONE))
        self._claim("scratch", (), infix(Operator.AT_LEAST, self.space.scratch, ZERO))
        self._claim("goal", given, self._same(held, goals.content))


# Memory and collectives for a symbolic number of ranks.


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

"""The claims from which a lock-step schedule is right for every number of ranks.

The argument.  All ranks run the same moves, so a position in a block means the same move of the
same turn on every rank.  In every turn of a loop, and in every run of moves between loops, the
k-th send on a channel is paired with the k-th receive on it.  The claims say that

* peers: sender and receiver of a pair name each other, so the pairing is one to one, and on each
  connection messages are received in the order in which they were sent;
* bounds: chunks that are read or written exist;
* defined, sum: what is read is defined, and what is added up is disjoint;
* first, turn: an invariant holds before the first turn, and after each if before it;
* goal: after the last move the output is what it must be.

A receive has a later position than its send, and a send needs room that moves of earlier turns
make, if a connection holds as many messages as a turn sends on one channel.  So whatever has the
smallest position of all that is unfinished can go on: no interleaving is stuck.  A rank's memory
is touched by its own block alone and messages are first-in first-out, so the values are the same
in every interleaving: those that are computed here, position by position.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.problems.claim import Claim, Operator, Term, both, infix, named, substituted
from p2smt.schedules.families.invariants import NOTHING, Content, Holds, choose
from p2smt.schedules.families.lock_step import LockStep, NoArgument, SymbolicMove, SymbolicPhase
from p2smt.schedules.families.symbolic_memory import (
    ONE,
    ZERO,
    Cells,
    SymbolicMemory,
    minus,
    plus,
    within,
)
from p2smt.schedules.language.grammar import RANK
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from p2smt.schedules.language.grammar import SpanText

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

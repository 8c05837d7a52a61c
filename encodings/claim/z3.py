"""Claims about all whole numbers with z3: linear arithmetic, and "mod" by the number of ranks.

Problem: one :class:`p2smt.problems.race.Claim`: does the conclusion hold for all whole
numbers for which what is given holds?

Variables
    x          an integer per name
    m[e]       "e mod n" for an expression e and the number of ranks n, an integer
    u[..]      the value of anything else that is not linear, an integer

Constraints
    C1 given         what is given holds
    C2 remainder     0 <= m[e] < n, and m[e] = e - q n where q n <= e < (q + 1) n, for q in
                     -4 .. 3; for other q nothing is said about m[e]
    C3 refuted       the conclusion does not hold

All are linear, q being a number.  C2 says less than is true, and nothing is said about u:
so unsatisfiable means that the claim holds, and a solution may be no counterexample.

Objective: none.

Size: an integer and ten clauses per different "mod".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

import z3

from p2smt.encodings.run_z3 import new_solver, solution
from p2smt.errors import OutOfTimeError
from p2smt.problems.race import COMPARISONS, Claim, Operator, Term, named
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

_SOLVER = "z3"
_TURNS = range(-4, 4)


def prove_claim(problem: Claim, limits: SearchLimits) -> Result[bool]:
    """Whether a claim holds.

    COMPLETE with True: it does.  UNKNOWN: no proof within the limits or the encoding; never
    a proof of the contrary.
    """
    watch = StopWatch.start(limits)
    v = Vars(new_solver(limits.seed), problem.size)
    for given in problem.given:
        c1_given(v, given)
    c3_refuted(v, problem)
    try:
        value = decode(solution(v.solver, watch))
    except OutOfTimeError:
        value = None
    status = Status.UNKNOWN if value is None else Status.COMPLETE
    return Result(status, value, stats=SolveStats(_SOLVER, watch.elapsed_s()))


def decode(refuting: z3.ModelRef | None) -> bool | None:
    """True without a refuting solution; None with one, which may be no counterexample."""
    return True if refuting is None else None


def c1_given(v: Vars, given: Term) -> None:
    """C1: what is given holds."""
    v.solver.add(v.truth(given))


def c2_remainder(v: Vars, value: z3.ArithRef, found: z3.ArithRef) -> None:
    """C2: ``found`` is ``value`` mod n, as far as the turns go; in any case within 0 .. n - 1."""
    size = z3.Int(v.size)
    v.solver.add(found >= 0, found < size)
    for q in _TURNS:
        inside = z3.And(value >= q * size, value < (q + 1) * size)
        v.solver.add(z3.Implies(inside, found == value - q * size))


def c3_refuted(v: Vars, claim: Claim) -> None:
    """C3: the conclusion does not hold."""
    v.solver.add(z3.Not(v.truth(claim.conclusion)))


@dataclass(frozen=True, slots=True)
class Vars:
    """x by name; m and u by what they stand for: they fill up as terms are met.

    ``solver`` gets C2 for each m when it is met; ``seen`` keeps terms by their identity.
    """

    solver: z3.Solver
    size: str
    seen: dict[int, tuple[Term, z3.ArithRef]] = field(default_factory=dict)
    others: dict[tuple[object, ...], z3.ArithRef] = field(default_factory=dict)

    def number(self, term: Term) -> z3.ArithRef:
        """The value of a term."""
        known = self.seen.get(id(term))
        if known is None:
            known = self.seen[id(term)] = (term, self._number(term))
        return known[1]

    def truth(self, term: Term) -> z3.BoolRef:
        """Whether a term is true."""
        match term.op:
            case Operator.AND:
                return z3.And([self.truth(part) for part in term.args])
            case Operator.OR:
                return z3.Or([self.truth(part) for part in term.args])
            case Operator.NOT:
                return z3.Not(self.truth(term.args[0]))
        if term.op in COMPARISONS:
            return _compared(term.op, *map(self.number, term.args))
        return self.number(term) != 0

    def _number(self, term: Term) -> z3.ArithRef:
        match term.op:
            case Operator.NUMBER:
                return z3.IntVal(term.value)
            case Operator.NAME:
                return z3.Int(term.name)
            case Operator.IF:
                condition, then, other = term.args
                return z3.If(self.truth(condition), self.number(then), self.number(other))
            case Operator.MOD if term.args[1] == named(self.size):
                return self._remainder(self.number(term.args[0]))
            case Operator.AND | Operator.OR | Operator.NOT:
                return z3.If(self.truth(term), z3.IntVal(1), z3.IntVal(0))
            case Operator.LESS | Operator.AT_MOST | Operator.MORE | Operator.AT_LEAST:
                return z3.If(self.truth(term), z3.IntVal(1), z3.IntVal(0))
            case Operator.EQUAL | Operator.UNEQUAL:
                return z3.If(self.truth(term), z3.IntVal(1), z3.IntVal(0))
            case Operator.NEGATE | Operator.PLUS | Operator.MINUS | Operator.TIMES:
                return self._linear(term.op, [self.number(part) for part in term.args])
            case Operator.MIN | Operator.MAX:
                return _extreme(term.op, [self.number(part) for part in term.args])
            case Operator.MOD | Operator.FLOOR | Operator.POWER | Operator.XOR | Operator.LOG2:
                return self._unknown(term.op, [self.number(part) for part in term.args])
        assert_never(term.op)

    def _linear(self, op: Operator, args: list[z3.ArithRef]) -> z3.ArithRef:
        match op, args:
            case Operator.NEGATE, [a]:
                return -a
            case Operator.PLUS, [a, b]:
                return a + b
            case Operator.MINUS, [a, b]:
                return a - b
            case Operator.TIMES, [a, b] if z3.is_int_value(a) or z3.is_int_value(b):
                return a * b
        return self._unknown(op, args)

    def _unknown(self, op: Operator, args: list[z3.ArithRef]) -> z3.ArithRef:
        """u: any integer, the same one for the same operator and values."""
        return self._other((op, *(part.get_id() for part in args)))

    def _other(self, key: tuple[object, ...]) -> z3.ArithRef:
        """Any integer, the same one for the same key."""
        return self.others.setdefault(key, z3.Int(f"u{len(self.others)}!"))

    def _remainder(self, value: z3.ArithRef) -> z3.ArithRef:
        """m[value]; ``seen`` keeps the expression alive, so that no other gets its number."""
        key = (Operator.MOD, value.get_id())
        if key in self.others:
            return self.others[key]
        found = self._other(key)
        c2_remainder(self, value, found)
        return found


def _compared(op: Operator, a: z3.ArithRef, b: z3.ArithRef) -> z3.BoolRef:
    pairs = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}
    return pairs[op]


def _extreme(op: Operator, args: list[z3.ArithRef]) -> z3.ArithRef:
    found = args[0]
    for other in args[1:]:
        better = other < found if op is Operator.MIN else other > found
        found = z3.If(better, other, found)
    return found

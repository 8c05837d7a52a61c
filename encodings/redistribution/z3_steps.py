"""Layouts and steps for z3: C1 to C9 of :mod:`p2smt.encodings.redistribution.z3`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise

import z3

from p2smt.problems.redistribution import PARTIAL, REPLICATED, Move, RedistributionProblem

_SHARDS = "shards"
_TRAVEL: Mapping[Move, tuple[str | int, str | int]] = {
    Move.SLICE: (REPLICATED[0], _SHARDS),
    Move.GATHER: (_SHARDS, REPLICATED[0]),
    Move.ALL_TO_ALL: (_SHARDS, _SHARDS),
    Move.REDUCE_SCATTER: (PARTIAL[0], _SHARDS),
    Move.ALL_REDUCE: (PARTIAL[0], REPLICATED[0]),
}
"""From where to where each kind takes digits."""


@dataclass(frozen=True, slots=True)
class Vars:
    """dim, pos and turned by layer; the others by step."""

    dims: tuple[tuple[z3.ArithRef, ...], ...]
    positions: tuple[tuple[z3.ArithRef, ...], ...]
    turned: tuple[z3.BoolRef, ...]
    kinds: tuple[z3.ArithRef, ...]
    packed: tuple[z3.BoolRef, ...]
    ticks: tuple[z3.ArithRef, ...]

    def moved(self, t: int, q: int) -> z3.BoolRef:
        """Whether step t moves digit q."""
        return z3.Or(
            self.dims[t][q] != self.dims[t + 1][q], self.positions[t][q] != self.positions[t + 1][q]
        )


def new_vars(problem: RedistributionProblem) -> Vars:
    """The variables."""
    layers, steps = range(problem.max_steps + 1), range(problem.max_steps)
    digits = range(len(problem.sizes))
    return Vars(
        tuple(tuple(z3.Int(f"dim{t},{q}") for q in digits) for t in layers),
        tuple(tuple(z3.Int(f"pos{t},{q}") for q in digits) for t in layers),
        tuple(z3.Bool(f"turned{t}") for t in layers),
        tuple(z3.Int(f"kind{t}") for t in steps),
        tuple(z3.Bool(f"packed{t}") for t in steps),
        tuple(z3.Int(f"c{t}") for t in steps),
    )


def c1_place(solver: z3.Solver, problem: RedistributionProblem, v: Vars) -> None:
    """C1: dim is one of the dimensions, or -1 or -2; only a list has positions."""
    for dims, positions in zip(v.dims, v.positions, strict=True):
        for dim, place in zip(dims, positions, strict=True):
            solver.add(PARTIAL[0] <= dim, dim < problem.dims, place >= 0)
            solver.add(z3.Implies(dim < 0, place == 0))


def c2_lists(solver: z3.Solver, v: Vars) -> None:
    """C2: positions of a list differ, and each is less than its length."""
    for dims, positions in zip(v.dims, v.positions, strict=True):
        digits = list(zip(dims, positions, strict=True))
        for (one, k), (other, m) in combinations(digits, 2):
            solver.add(z3.Or(one < 0, one != other, k != m))
        for dim, place in digits:
            length = z3.Sum([z3.If(other == dim, 1, 0) for other in dims])
            solver.add(z3.Or(dim < 0, place < length))


def c3_capacity(solver: z3.Solver, problem: RedistributionProblem, v: Vars) -> None:
    """C3: no prime has a larger exponent in the shards of a dimension than in its size."""
    for _, of_digits, of_dims in problem.factors():
        for dims in v.dims:
            for dim, most in enumerate(of_dims):
                solver.add(exponent(dims, of_digits, dim) <= most)


def exponent(dims: tuple[z3.ArithRef, ...], of_digits: tuple[int, ...], dim: int) -> z3.ArithRef:
    """The exponent of a prime in the shards of a dimension."""
    return z3.Sum([z3.If(d == dim, n, 0) for d, n in zip(dims, of_digits, strict=True)])


def c4_ends(solver: z3.Solver, problem: RedistributionProblem, v: Vars) -> None:
    """C4: the places of the first and of the last layer, and their orders of devices."""
    for t, wanted in ((0, problem.source), (-1, problem.target)):
        for dim, place, (at, k) in zip(v.dims[t], v.positions[t], wanted, strict=True):
            solver.add(dim == at, place == k)
    solver.add(z3.Not(v.turned[0]), v.turned[-1] == problem.turns)


def c5_kinds(solver: z3.Solver, v: Vars) -> None:
    """C5: nothing but NOTHING after NOTHING; which digits a kind may leave alone."""
    for t, kind in enumerate(v.kinds):
        solver.add(min(Move) <= kind, kind <= max(Move))
        some = z3.Or([v.moved(t, q) for q in range(len(v.dims[t]))])
        solver.add(z3.Implies(kind == Move.NOTHING, z3.Not(some)))
        solver.add(z3.Or(kind == Move.NOTHING, kind == Move.TURN, some))
    for one, after in pairwise(v.kinds):
        solver.add(z3.Implies(one == Move.NOTHING, after == Move.NOTHING))


def c6_travel(solver: z3.Solver, v: Vars) -> None:
    """C6: what moves is before and after where the kind takes it; a permute leaves PARTIAL."""
    for t, kind in enumerate(v.kinds):
        for q, (before, after) in enumerate(zip(v.dims[t], v.dims[t + 1], strict=True)):
            moved = v.moved(t, q)
            for move, (source, target) in _TRAVEL.items():
                there = z3.And(_is(before, source), _is(after, target))
                solver.add(z3.Implies(z3.And(kind == move, moved), there))
            whole = z3.And(before != PARTIAL[0], after != PARTIAL[0])
            solver.add(z3.Implies(z3.And(permutes(kind), moved), whole))


def _is(dim: z3.ArithRef, where: str | int) -> z3.BoolRef:
    return dim >= 0 if where == _SHARDS else dim == where


def permutes(kind: z3.ArithRef) -> z3.BoolRef:
    """Whether whole blocks change places."""
    return z3.Or(kind == Move.PERMUTE, kind == Move.TURN)


def c7_apart(solver: z3.Solver, v: Vars) -> None:
    """C7: of two moved digits, none joins the dimension that the other leaves."""
    for t, kind in enumerate(v.kinds):
        digits = range(len(v.dims[t]))
        for q in digits:
            for r in digits:
                both = z3.And(kind == Move.ALL_TO_ALL, v.moved(t, q), v.moved(t, r))
                solver.add(z3.Implies(both, v.dims[t][q] != v.dims[t + 1][r]))


def c8_blocks(solver: z3.Solver, problem: RedistributionProblem, v: Vars) -> None:
    """C8: in a permute the exponents of each prime in a dimension's shards stay."""
    for t, kind in enumerate(v.kinds):
        for _, of_digits, _ in problem.factors():
            for dim in range(problem.dims):
                before, after = (exponent(v.dims[t + i], of_digits, dim) for i in (0, 1))
                solver.add(z3.Implies(permutes(kind), before == after))


def c9_order(solver: z3.Solver, v: Vars) -> None:
    """C9: a layer has the destination's order if the one before has, or a TURN led to it."""
    for t, kind in enumerate(v.kinds):
        turn = kind == Move.TURN
        solver.add(v.turned[t + 1] == z3.Or(v.turned[t], turn))
        solver.add(z3.Implies(turn, z3.Not(v.turned[t])))

"""All solutions of a z3 placement model, in lexicographic order of their matrices.

Problem: list every matrix of a model once, the smallest first.

Variables: e[i, j, p] of :mod:`p2smt.encodings.placement.z3`.

Constraints
    C1 entry   in a branch the exponents of one entry are those of one of its values

A tree over the entries, row-major, values ascending.  A branch is entered only if z3 finds a
solution in it; the solution known at a node also serves the branch in which it lies.

Size: at most (answers) x (entries) x (values of an entry) checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import z3

from p2smt.encodings.placement.primes import Cell, PrimeSizes
from p2smt.encodings.run_z3 import solution
from p2smt.result import StopWatch

Variables = Mapping[Cell, z3.ArithRef]
Exponents = dict[Cell, int]
Choice = tuple[Exponents, z3.BoolRef]


def number(model: z3.ModelRef, variable: z3.ArithRef) -> int:
    """The value of an integer variable; any allowed one if the solver left it open."""
    return int(model.eval(variable, model_completion=True).as_long())


def decode(variables: Variables, model: z3.ModelRef) -> Exponents:
    """The exponents of a solution."""
    return {cell: number(model, exponent) for cell, exponent in variables.items()}


def leaves_of(
    solver: z3.Solver, sizes: PrimeSizes, variables: Variables, watch: StopWatch
) -> Iterator[Exponents]:
    """All solutions, smallest matrix first, by a tree over the entries.

    The last row and column are left out: the sums determine them.

    Raises:
        OutOfTimeError: the watch ran out.
    """
    inner = product(range(len(sizes.axes) - 1), range(len(sizes.levels) - 1))
    entries = [c1_entry(sizes, variables, i, j) for i, j in inner]
    model = solution(solver, watch)
    if model is not None:
        yield from _branches(solver, variables, entries, decode(variables, model), watch)


def c1_entry(sizes: PrimeSizes, variables: Variables, axis: int, level: int) -> list[Choice]:
    """C1: what an entry can be, ascending: its exponents, and the same as a formula."""
    part = sorted({p for _, _, p in variables})
    cells = [(axis, level, p) for p in part]
    found = []
    for _, exponents in sizes.entry_values(axis, level, part):
        choice = dict(zip(cells, exponents, strict=True))
        found.append((choice, z3.And([variables[c] == x for c, x in choice.items()])))
    return found


def _branches(
    solver: z3.Solver,
    variables: Variables,
    entries: Sequence[list[Choice]],
    known: Exponents,
    watch: StopWatch,
) -> Iterator[Exponents]:
    """The solutions below a node whose solution ``known`` needs no second check."""
    if not entries:
        yield known
        return
    for choice, formula in entries[0]:
        solver.push()
        solver.add(formula)
        below = known if choice.items() <= known.items() else None
        if below is None and (model := solution(solver, watch)) is not None:
            below = decode(variables, model)
        if below is not None:
            yield from _branches(solver, variables, entries[1:], below, watch)
        solver.pop()

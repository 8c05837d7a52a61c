"""The lexicographically smallest matrix of a CP-SAT placement model.

Problem: of all solutions of a model, find the one whose matrix is smallest, row-major.

Variables: e[i, j, p] of :mod:`p2smt.encodings.placement.cpsat`, and
    r[i, j]   rank of matrix[i][j] among the values it can have; with one prime e itself

Constraints
    C1 rank   (exponents of the entry, r) is a row of the list of its values, ascending

Objective: the ranks as digits of mixed-radix numbers (blocks) of bounded size, minimised and
fixed one after the other.  The last row and column are left out: the sums determine them.

Size: a rank has as many values as the entry has divisors; usually there is one block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from ortools.sat.python import cp_model

from p2smt.encodings.placement.primes import Cell, PrimeSizes
from p2smt.encodings.run_cpsat import run
from p2smt.parallelism.placement import Matrix
from p2smt.result import StopWatch

MAX_BLOCK = 2**32
Variables = Mapping[Cell, cp_model.IntVar]


def smallest(
    model: cp_model.CpModel,
    sizes: PrimeSizes,
    exponents: Variables,
    answer: Matrix,
    watch: StopWatch,
) -> tuple[Matrix, int, bool]:
    """The smallest matrix, the number of solves, and whether it is proved to be smallest.

    ``answer`` is any solution of the model.  The model's objective is replaced.
    """
    calls = 0
    for block in _blocks(model, sizes, exponents):
        _hint(model, sizes, exponents, answer)
        model.minimize(block)
        solver, status = run(model, watch.left())
        calls += 1
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            found = {cell: solver.value(exponent) for cell, exponent in exponents.items()}
            answer = min(answer, sizes.matrix(found))
        if status != cp_model.OPTIMAL:
            return answer, calls, False
        model.add(block == solver.value(block))
    return answer, calls, True


def c1_rank(
    model: cp_model.CpModel, parts: Sequence[cp_model.IntVar], values: Sequence[tuple[int, ...]]
) -> cp_model.LinearExpr:
    """C1: the rank of an entry with these exponents among its values, two or more."""
    if len(parts) == 1:
        return parts[0] - values[0][0]
    rank = model.new_int_var(0, len(values) - 1, "r")
    rows = [(*split, number) for number, split in enumerate(values)]
    model.add_allowed_assignments([*parts, rank], rows)
    return rank


def _blocks(
    model: cp_model.CpModel, sizes: PrimeSizes, exponents: Variables
) -> list[cp_model.LinearExpr]:
    """The mixed-radix numbers over the ranks, row-major; entries of one value are left out."""
    blocks: list[cp_model.LinearExpr] = []
    size, primes = MAX_BLOCK, range(len(sizes.primes))
    for i, j in product(range(len(sizes.axes) - 1), range(len(sizes.levels) - 1)):
        values = [split for _, split in sizes.entry_values(i, j, primes)]
        if len(values) == 1:
            continue
        rank = c1_rank(model, [exponents[i, j, p] for p in primes], values)
        if size * len(values) > MAX_BLOCK:
            blocks.append(rank)
            size = len(values)
        else:
            blocks[-1] = blocks[-1] * len(values) + rank
            size *= len(values)
    return blocks


def _hint(model: cp_model.CpModel, sizes: PrimeSizes, exponents: Variables, answer: Matrix) -> None:
    """Start from a known solution, for an answer even if time runs out."""
    model.clear_hints()  # type: ignore[no-untyped-call]
    for cell, value in (sizes.split(answer) or {}).items():
        model.add_hint(exponents[cell], value)

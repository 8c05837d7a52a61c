"""Programs for requests beyond the range in which one is proved best (docs/small-model.md).

The best nest is one (:mod:`p2smt.search.weaker.nests`).  And a program over a hierarchy with
neighbouring levels merged forms groups of the whole hierarchy.  So it is sought there, within the
range of the small-model theorem, with the costs of the real scene, and checked and costed on the
real hierarchy.  That no other program is better is not proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from p2smt.programs.program import small_model_length
from p2smt.result import SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.programs import Found, Priced, Task, best_program, price
from p2smt.search.programs_pipelined import (
    LISTED_DEPTH,
    ChunkedProgram,
    Listings,
    SoughtProgram,
    choices,
    first_choice,
)
from p2smt.search.weaker.nests import priced_nest
from p2smt.solvers.solver import Solver

LISTED_LENGTH = 5
"""Longest programs over merged levels: all of them are listed once, for all scenes."""


def best_merged(sought: SoughtProgram, limits: SearchLimits) -> Found:
    """The best nest, program on merged levels, or of a length in range: FEASIBLE; UNKNOWN if none.

    It is always sought by CP-SAT, since z3 takes few devices only.
    """
    watch, task = StopWatch.start(limits), sought.task
    nest, best = priced_nest(sought), _listed(sought, watch)
    known = small_model_length(task.hierarchy.depth)
    if sought.pipeline == 1 and known and not watch.expired():
        length = min(task.max_length, known)
        short = replace(task, max_length=length, solver=Solver.CPSAT)
        other = best_program(short, sought.scene, sought.payload_bytes, watch.left()).best
        if other is not None and (best is None or other.seconds < best.seconds):
            best = other
    if nest is not None and (best is None or nest.seconds < best.seconds):
        best = nest
    status = Status.UNKNOWN if best is None else Status.FEASIBLE
    return Found(status, best, 0.0, SolveStats(task.solver, watch.elapsed_s()))


def _listed(sought: SoughtProgram, watch: StopWatch) -> Priced | None:
    """The best of all short programs over each way to merge levels; checked on the whole."""
    best: tuple[Task, ChunkedProgram] | None = None
    for merged in _merged_tasks(sought.task, watch, sought.listings):
        _, programs = sought.listings.of(merged, watch.left())
        found = list(choices(replace(sought, task=merged), programs))
        if found:
            choice = first_choice(found)
            if best is None or choice.seconds < best[1].seconds:
                best = merged, choice
        if watch.expired():
            break
    if best is None:
        return None
    merged, choice = best
    program = merged.program(merged.problem(), choice.program)
    return price(sought.task, program, sought.scene, sought.payload_bytes, choice.chunks)


def _merged_tasks(task: Task, watch: StopWatch, listings: Listings) -> Iterator[Task]:
    """The task over every choice of levels to keep apart, as many as programs are listed over.

    Under a time limit fewer levels come first, whose lists are short; they hold nothing that the
    longer lists lack.
    """
    length, depth = min(task.max_length, LISTED_LENGTH), task.hierarchy.depth
    base = replace(task, max_length=length, solver=Solver.CPSAT)
    most = min(depth, LISTED_DEPTH)
    full = list(_cut(base, most))
    if watch.remaining_s() is not None and not listings.has(full[0]):
        for levels in range(1, most):
            yield from _cut(base, levels)
    yield from full


def _cut(task: Task, levels: int) -> Iterator[Task]:
    """The task with its hierarchy merged to so many levels, in every way."""
    for cuts in combinations(range(1, task.hierarchy.depth), levels - 1):
        yield replace(task, hierarchy=task.hierarchy.merged(cuts))
